"""Charts of models."""

from __future__ import annotations

import json
from collections import Counter

from factory.orchestration.asset import drawing
from factory.orchestration.asset.charts.counting import Chart, whole
from factory.orchestration.asset.charts.totals import Figures
from factory.orchestration.asset.rows import Rows


def token_lengths(rows: Rows) -> str:
    """Tokens of the tokenizer by number of characters."""
    tokenizers = whole(rows, ["tokenizer"])["tokenizer"].to_pylist()
    lengths = Counter(map(len, json.loads(tokenizers[0])["model"]["vocab"])) if tokenizers else Counter()
    ordered = sorted(lengths)
    return drawing.bars(
        [str(length) for length in ordered], [lengths[length] for length in ordered], "tokens by characters"
    )


CHARTS: dict[str, Chart] = {"tokenizer": token_lengths}
FIGURES: dict[str, Figures] = {}
