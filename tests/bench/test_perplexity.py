"""The bench of n-gram models: parts of texts, and counts of parts."""

from __future__ import annotations

from bench.perplexity.measure import _counted, _first, _mb, _model, _table


def test_the_first_texts_reach_the_size() -> None:
    assert _first(["abc", "defg", "h"], 4) == ["abc", "defg"]
    assert _mb(["abc", "\u00e9"]) == 5e-6


def test_a_model_is_made_of_counted_texts() -> None:
    counts = _counted(["the river rose", "the rain fell"], [])
    model = _model(_table(counts, 1), [])
    assert len(model.token_bits("the")) == 3
