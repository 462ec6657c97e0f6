"""The bench of lexers and weights: its similarity, its copies and its judgement."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.lexers import (
    SIGNS,
    WEIGHTS,
    by_rules,
    by_shape,
    by_signs,
    cut,
    judged,
    replaced,
    tokens_of,
    weighted_jaccard,
)

texts = st.text("ab c(", min_size=1, max_size=30).filter(lambda text: any(it in text for it in "abc"))


@settings(deadline=None)
@given(texts, texts)
def test_similarity_is_the_sum_of_minima_over_the_sum_of_maxima(left: str, right: str) -> None:
    one, other = ((tokens, counts.astype(float)) for tokens, counts in cut("code", [left, right]))
    words = [Counter(text.replace("(", " ").split()) for text in (left, right)]
    expected = (words[0] & words[1]).total() / (words[0] | words[1]).total()
    assert weighted_jaccard(one, other) == pytest.approx(expected)


def test_signs_are_tokens_only_where_asked() -> None:
    with_signs, without = (cut(lexer, ["a(b, b)"])[0] for lexer in (SIGNS, "code"))
    assert sorted(with_signs[1]) == [1, 1, 1, 1, 2]
    assert sorted(without[1]) == [1, 2]


def test_a_copy_has_the_asked_share_of_foreign_lines() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    copy = replaced(text, "foreign\n\nother", (0.2, 0.2), random.Random(0))
    assert sum(line.strip() in ("foreign", "other") for line in copy.split("\n")) == 20


def test_identifiers_are_the_words_outside_strings_comments_and_keywords() -> None:
    code = '''def total(rows, n2=3):  # of all rows
    """The sum."""
    return f"{rows}" + r'it\\'s' + x_1 if rows else None or 0x1F
"""unfinished word'''
    assert by_rules(code) == {"total", "rows", "n2", "x_1"}


def test_identifiers_are_told_by_signs_and_shape_wherever_they_stand() -> None:
    text = "# see total(rows) and self.x_1 = n2, or aB: 'the end.'"
    assert by_signs(text) == {"total", "self", "x_1", "aB", "end"}
    assert by_shape(text) == {"x_1", "n2", "aB"}


def test_heavier_identifiers_change_similarity_as_their_weight_does() -> None:
    texts = ["a b c d", "a b c x", "a x y z", "p q r s"]
    bags, heavy = cut("code", texts), [tokens_of({word}) for word in "aaap"]
    plain = judged(bags, WEIGHTS["1"])
    assert judged(bags, WEIGHTS["1"], heavy, 1) == plain
    assert plain[1] == 0.0  # 3 of 5
    assert judged(bags, WEIGHTS["1"], heavy, 6)[1] == 1.0  # 8 of 10


def test_a_weight_that_orders_copies_tells_them_apart() -> None:
    words = [f"w{number}" for number in range(40)]
    copies = [[*words[: 40 - n], *(f"x{number}" for number in range(n))] for n in (0, 3, 12, 40)]
    bags = cut("code", [" ".join(it) for it in copies] * 3)
    apart, few, neighbours = judged(bags, WEIGHTS["1"])
    assert (apart, few, neighbours) == (1.0, 1.0, 0.0)
    assert judged([bags[0]] * 12, WEIGHTS["tf * idf"])[0] == 0.5
    assert np.isclose(judged(bags, lambda counts, _: np.ones(len(counts)))[0], 1)
