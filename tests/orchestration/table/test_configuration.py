"""Which values of a configuration changed, in words."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.filters.sets import RULE_SETS
from factory.lake.lineage import compact_text
from factory.orchestration.table.configuration import difference, values

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
    ),
    max_leaves=12,
)


def said(before: dict[str, Any], now: dict[str, Any]) -> str:
    return difference(values(before), values(now))


def rules(**limits: list[float | None]) -> dict[str, Any]:
    return {"rules": [{"name": name, "limit": limit, "one of": []} for name, limit in limits.items()]}


def test_rules_that_one_side_has_as_a_digest_are_one_change() -> None:
    now = values(rules(one=[1, 2], two=[1, 2]))
    assert difference({"rules": "#0123456789ab"}, now) == "rules changed"
    assert difference(now, {"rules": "#0123456789ab"}) == "rules changed"
    assert difference({"field": "#0123456789ab"}, {"field/x": "1", "other": "2"}) == "field changed, +other"


@pytest.mark.parametrize(
    "before, now, phrase",
    [
        (rules(word_count=[50, 100000]), rules(word_count=[100, 100000]), "word_count 50 -> 100"),
        (rules(word_count=[50, 100]), rules(word_count=[60, None]), "word_count [50, 100] -> [60, null]"),
        (rules(word_count=[None, 1]), rules(word_count=[2, 1]), "word_count none -> 2"),
        (rules(one=[1, 2]), rules(one=[1, 2], two=[1, 2]), "+two"),
        (rules(one=[1, 2], two=[1, 2]), rules(two=[1, 3]), "-one, two 2 -> 3"),
        (rules(one=[1, 2], two=[1, 2]), rules(two=[1, 2], one=[1, 2]), "rules in another order"),
        (
            {"rules": [{"name": "language", "one of": ["de", "en"]}]},
            {"rules": [{"name": "language", "one of": ["en", "fr"]}]},
            "language one of +fr -de",
        ),
        ({"threshold": 0.8}, {"threshold": 0.7}, "threshold 0.8 -> 0.7"),
        ({"file": "a.json"}, {"file": "b.json"}, "file a.json -> b.json"),
        ({"include": ["*.md"]}, {"include": ["*.md", "*.txt"]}, "include +*.txt"),
        ({"columns": {"path": "p"}}, {"columns": {"path": "p", "language": "l"}}, "+language"),
        ({"columns": {}}, {"columns": {"path": "p"}}, "+path"),
        ({"words": "a" * 300}, {"words": "b" * 300}, "words changed"),
        (
            dict.fromkeys("abcdefghi", 0),
            dict.fromkeys("abcdefghi", 1),
            "a 0 -> 1, b 0 -> 1, c 0 -> 1, d 0 -> 1, 5 more",
        ),
    ],
)
def test_a_difference_names_the_field_and_its_values(
    before: dict[str, Any], now: dict[str, Any], phrase: str
) -> None:
    assert said(before, now) == phrase


@given(before=st.dictionaries(st.text("abc", min_size=1), PLAIN), now=st.dictionaries(st.text("abc"), PLAIN))
def test_equal_configurations_alone_have_no_difference(before: dict[str, Any], now: dict[str, Any]) -> None:
    assert said(before, before) == ""
    if values(before) != values(now):
        assert said(before, now)


def test_values_stay_small_and_still_differ() -> None:
    large = {f"field_{n}": {f"{word:x}": 0 for word in _words(n, 40)} for n in range(100)}
    changed = large | {"field_7": {"other": 0}}
    assert len(compact_text(values(large))) < 5_000
    assert said(large, changed) == "field_7 changed"


def test_a_limit_among_all_rules_is_named() -> None:
    def rules(limit: int) -> dict[str, Any]:
        chosen = [rule.as_values() for rules in RULE_SETS.values() for rule in rules]
        return {
            "rules": [
                entry | ({"limit": limit} if entry["name"] == "c4_sentences" else {}) for entry in chosen
            ]
        }

    before = rules(3)
    assert len(before["rules"]) > 70
    assert said(before, rules(5)) == "c4_sentences 3 -> 5"
    assert said(before, {"rules": before["rules"][1:]}) == f"-{before['rules'][0]['name']}"


def _words(seed: int, number: int) -> list[int]:
    """Numbers that no compression shortens."""
    source = random.Random(seed)
    return [source.getrandbits(64) for _ in range(number)]
