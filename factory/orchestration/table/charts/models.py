"""Charts of models."""

from __future__ import annotations

import json
from collections import Counter

from factory.orchestration.table import drawing
from factory.orchestration.table.charts.counting import Chart, counts, most_first, whole
from factory.orchestration.table.charts.totals import Figures
from factory.orchestration.table.drawing import Drawing
from factory.orchestration.table.rows import Rows


def token_lengths(rows: Rows) -> Drawing:
    """Tokens of the tokenizer by number of characters."""
    tokenizers = whole(rows, ["tokenizer"])["tokenizer"].to_pylist()
    lengths = Counter(map(len, json.loads(tokenizers[0])["model"]["vocab"])) if tokenizers else Counter()
    ordered = sorted(lengths)
    return drawing.bars(
        [str(length) for length in ordered], [lengths[length] for length in ordered], "tokens by characters"
    )


def reliability(rows: Rows) -> Drawing:
    """Share of a class's documents over its predicted probability, a panel a class; the diagonal is right."""
    classes = whole(rows, ["class", "reliability"]).to_pylist()
    panels = {
        row["class"]: (
            [step["probability"] for step in row["reliability"]],
            [step["share"] for step in row["reliability"]],
        )
        for row in classes
        if row["reliability"]
    }
    return drawing.on_diagonal(panels, "share of the class over its probability, on documents held out")


def ngrams_by_language(rows: Rows) -> Drawing:
    """Counted n-grams of each language's model."""
    models = whole(rows, ["language", "counts"]).to_pylist()
    numbers = {row["language"]: len(row["counts"]) for row in models}
    return most_first(numbers, "counted n-grams by language")


CHARTS: dict[str, Chart] = {
    "tokenizer": token_lengths,
    "classifier": reliability,
    "examples": counts("class", "examples by class"),
    "word_list": counts("language", "entries by language"),
    "ngram_model": ngrams_by_language,
    "onnx_model": counts("input", "models by what they take"),
}
FIGURES: dict[str, Figures] = {}
