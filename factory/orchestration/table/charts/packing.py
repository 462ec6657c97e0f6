"""Charts and figures of tokens and of training sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from factory.lake.schemas.packing import SEQUENCE_LENGTH
from factory.orchestration.table import drawing
from factory.orchestration.table.charts.counting import Chart, counted, powers_of_two, sizes
from factory.orchestration.table.charts.totals import Figures, total
from factory.orchestration.table.drawing import Drawing
from factory.orchestration.table.rows import Rows


def fill(rows: Rows) -> Drawing:
    """Packed sequences by fill, relative to the fullest."""
    numbers, title = counted(rows, ["n_tokens"], lambda batch: batch["n_tokens"], "sequences by fill")
    fullest = max(numbers, default=0) or 1
    by_share = Counter[float]()
    for n_tokens, n_sequences in numbers.items():
        by_share[round(n_tokens / fullest, 1)] += n_sequences
    return drawing.bars([f"{share:.0%}" for share in by_share], list(by_share.values()), title)


def tokens(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float]:
    """Tokens of all documents."""
    return {"tokens": total(rows, "n_tokens")[0]}


def tokens_and_fill(rows: Rows, properties: Mapping[str, str]) -> dict[str, int | float]:
    """Tokens of all sequences, and their share of the room."""
    n_tokens, n_rows = total(rows, "n_tokens")
    room = n_rows * int(properties[SEQUENCE_LENGTH])
    return {"tokens": n_tokens, "fill": n_tokens / room} if room else {"tokens": n_tokens}


CHARTS: dict[str, Chart] = {
    "tokenized": powers_of_two("n_tokens", "documents by tokens"),
    "packed": fill,
    "placements": sizes("doc_id", "documents by pieces"),
}
FIGURES: dict[str, Figures] = {"tokenized": tokens, "packed": tokens_and_fill}
