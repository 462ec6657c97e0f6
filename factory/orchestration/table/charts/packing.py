"""Charts and figures of tokens and of training sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from factory.lake.schemas.packing import SEQUENCE_LENGTH
from factory.orchestration.table import drawing
from factory.orchestration.table.charts.counting import Chart, by_powers_of_two, counted, power_of_two, sizes
from factory.orchestration.table.charts.totals import Figures, evenness, total
from factory.orchestration.table.drawing import Drawing
from factory.orchestration.table.rows import Rows

_LENGTHS = {"n_tokens": "tokens", "n_bytes": "bytes"}


def fill(rows: Rows) -> Drawing:
    """Packed sequences by fill, relative to the fullest."""
    numbers, title = counted(rows, ["n_tokens"], lambda batch: batch["n_tokens"], "sequences by fill")
    fullest = max(numbers, default=0) or 1
    by_share = Counter[float]()
    for n_tokens, n_sequences in numbers.items():
        by_share[round(n_tokens / fullest, 1)] += n_sequences
    return drawing.bars([f"{share:.0%}" for share in by_share], list(by_share.values()), title)


def lengths(rows: Rows) -> Drawing:
    """Documents by length in tokens, then by length in bytes in another color, in powers of two."""
    powers, title = by_powers_of_two(rows, list(_LENGTHS), "documents by length in tokens and in bytes")
    bars = {
        f"{power_of_two(power)} {_LENGTHS[column]}": number
        for column, numbers in powers.items()
        for power, number in numbers.items()
    }
    in_bytes = [label for label in bars if label.endswith(_LENGTHS["n_bytes"])]
    return drawing.bars(list(bars), list(bars.values()), title, in_bytes)


def tokens(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float]:
    """Tokens of all documents, and how even their lengths are in tokens and in bytes, in powers of two."""
    powers, _ = by_powers_of_two(rows, list(_LENGTHS), "")
    evenness_of_lengths = {
        f"length in {_LENGTHS[column]}: {name}": number
        for column, numbers in powers.items()
        for name, number in evenness(list(numbers.values())).items()
    }
    return {"tokens": total(rows, "n_tokens")[0], **evenness_of_lengths}


def tokens_and_fill(rows: Rows, properties: Mapping[str, str]) -> dict[str, int | float]:
    """Tokens of all sequences, and their share of the room."""
    n_tokens, n_rows = total(rows, "n_tokens")
    room = n_rows * int(properties[SEQUENCE_LENGTH])
    return {"tokens": n_tokens, "fill": n_tokens / room} if room else {"tokens": n_tokens}


CHARTS: dict[str, Chart] = {
    "tokenized": lengths,
    "packed": fill,
    "placements": sizes("doc_id", "documents by pieces"),
}
FIGURES: dict[str, Figures] = {"tokenized": tokens, "packed": tokens_and_fill}
