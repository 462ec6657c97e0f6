"""Patterns match paths by definition, in time that does not grow with their wildcards."""

from __future__ import annotations

import os
import time
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.ingest.globs import compiled


def matches(glob: str, path: str) -> bool:
    return compiled([glob]).fullmatch(os.fsencode(path)) is not None


def plain(glob: str, path: str) -> bool:
    """The definition, position by position."""

    @cache
    def fits(g: int, p: int) -> bool:
        if g == len(glob):
            return p == len(path)
        rest = glob[g:]
        if rest.startswith("**/") and (g == 0 or glob[g - 1] == "/"):
            starts = [p, *(at + 1 for at in range(p, len(path)) if path[at] == "/")]
            return any(fits(g + 3, start) for start in starts)
        if rest.startswith("**"):
            return any(fits(g + 2, at) for at in range(p, len(path) + 1))
        if rest[0] == "*":
            end = next((at for at in range(p, len(path)) if path[at] == "/"), len(path))
            return any(fits(g + 1, at) for at in range(p, end + 1))
        if p == len(path) or (path[p] == "/" if rest[0] == "?" else path[p] != rest[0]):
            return False
        return fits(g + 1, p + 1)

    return fits(0, 0)


@given(
    st.lists(st.sampled_from(["**/", "**", "*", "?", "/", "a", "b", "ab"]), max_size=9).map("".join),
    st.text("ab/", max_size=12),
)
def test_a_pattern_matches_by_its_definition(glob: str, path: str) -> None:
    assert matches(glob, path) == plain(glob, path)


@given(st.lists(st.sampled_from(["**/", "*", "a", "b", "/", "**"]), min_size=1, max_size=8), st.randoms())
def test_a_path_made_from_a_pattern_matches_it(parts: list[str], random: object) -> None:
    glob = "".join(parts)
    path = glob.replace("**/", "x/aa/").replace("**", "ab/b").replace("*", "ab").replace("?", "a")
    assert matches(glob, path) == plain(glob, path)


@pytest.mark.parametrize("unit", ["**/", "*a", "**a", "**/a", "*?", "**/*a*", "?*/"])
def test_many_wildcards_cost_no_more_than_a_few(unit: str) -> None:
    path = "a/a" * 300 + "a" * 200
    began = time.process_time()
    assert not matches(unit * 60 + "b", path)
    assert time.process_time() - began < 5  # a plain translation takes longer than the universe has


def test_no_pattern_matches_nothing() -> None:
    assert compiled([]).fullmatch(b"") is None
