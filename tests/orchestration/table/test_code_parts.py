"""Which parts of an asset's code changed, in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.lake.names import STAGE_OF_NAMESPACE, TableName
from factory.lake.schemas.dedup import COMPONENTS
from factory.orchestration.table.code_parts import difference, text_of
from factory.orchestration.table.code_version import parts

BEFORE = {"filters/c4.py": "1", "filters/sets.py": "2", "kernel decide": "3", "schema raw.web": "4"}
NAMES = st.text("abc/", min_size=1, max_size=6)
PARTS = st.dictionaries(NAMES, st.text("01", max_size=4), max_size=8)


@pytest.mark.parametrize(
    "now, phrase",
    [
        ({"filters/c4.py": "5"}, "code of filters/c4.py changed"),
        ({"filters/c4.py": "5", "kernel decide": "5"}, "code of filters/c4.py and kernel decide changed"),
        (
            dict.fromkeys(BEFORE, "5"),
            "code of filters/c4.py, filters/sets.py, kernel decide and 1 other changed",
        ),
        ({"filters/new.py": "5"}, "code of filters/new.py is new"),
        ({"filters/c4.py": "5", "a": "5", "b": "5"}, "code of filters/c4.py changed, a and b are new"),
        ({}, ""),
    ],
)
def test_a_difference_names_the_parts(now: dict[str, str], phrase: str) -> None:
    assert difference(text_of(BEFORE), BEFORE | now) == phrase


def test_what_is_gone_has_no_name() -> None:
    assert difference(text_of(BEFORE), {"filters/c4.py": "1"}) == ""
    assert difference("", BEFORE) == ""  # of a table of an older version


@given(before=PARTS.filter(bool), now=PARTS)
def test_every_part_that_differs_makes_a_phrase(before: dict[str, str], now: dict[str, str]) -> None:
    names = [name for name, content in now.items() if before.get(name) != content]
    said = difference(text_of(before), now)
    assert bool(said) == bool(names)
    assert said.count(",") + said.count(" and ") + 1 >= min(len(names), 3)


@pytest.mark.parametrize("stage", sorted(set(STAGE_OF_NAMESPACE.values())))
def test_the_parts_of_a_stage_are_few_bytes_of_a_snapshot(stage: str) -> None:
    def function() -> None:
        """What an asset would be declared with."""

    found = parts(function, stage, {TableName("raw", "web"): COMPONENTS})
    assert "tests/orchestration/table/test_code_parts.py:function" in found
    assert "schema raw.web" in found
    assert any(name.startswith("factory/") for name in found)
    assert len(text_of(found)) < 1_500
    for name in found:
        assert difference(text_of(found), {**found, name: "other"}) == f"code of {name} changed"
