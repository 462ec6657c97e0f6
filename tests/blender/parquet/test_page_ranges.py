"""Ranges are joined as far as the gap and the length allow, and no further."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from blender.parquet.page_ranges import Request, StoreRanges, requests

RANGES = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 60)).map(lambda it: (it[0], it[0] + it[1])), max_size=20
)


def test_a_gap_is_read_where_it_is_small_enough() -> None:
    wanted = [(50, 60), (0, 10), (12, 20)]
    assert requests(wanted, gap_bytes=2, request_bytes=100) == [Request(0, 20, (1, 2)), Request(50, 60, (0,))]
    assert requests(wanted, gap_bytes=1, request_bytes=100) == [
        Request(0, 10, (1,)),
        Request(12, 20, (2,)),
        Request(50, 60, (0,)),
    ]
    assert [it.end for it in requests(wanted, gap_bytes=99, request_bytes=20)] == [20, 60]


def test_touching_ranges_are_one_request_and_a_long_one_is_not_cut() -> None:
    assert requests([(0, 10), (10, 20)], gap_bytes=0, request_bytes=20) == [Request(0, 20, (0, 1))]
    assert requests([(0, 50)], gap_bytes=0, request_bytes=10) == [Request(0, 50, (0,))]


@settings(deadline=None)
@given(wanted=RANGES, gap=st.integers(0, 50), longest=st.integers(1, 200))
def test_every_range_lies_in_one_request_within_the_limits(
    wanted: list[tuple[int, int]], gap: int, longest: int
) -> None:
    made = requests(wanted, gap_bytes=gap, request_bytes=longest)
    assert sorted(number for it in made for number in it.holds) == list(range(len(wanted)))
    for it in made:
        inside = [wanted[number] for number in it.holds]
        assert (it.begin, it.end) == (min(one[0] for one in inside), max(one[1] for one in inside))
        alone = max(end - begin for begin, end in inside)
        assert it.end - it.begin <= max(longest, alone)


@settings(deadline=None)
@given(wanted=RANGES, gap=st.integers(0, 50))
def test_what_is_read_is_what_was_wanted(wanted: list[tuple[int, int]], gap: int) -> None:
    store = MemoryStore()
    content = bytes(range(256)) * 2
    store.put("some/object", content)
    ranges = StoreRanges(store, gap_bytes=gap, request_bytes=100)
    assert ranges.size("some/object") == 512
    assert ranges.read("some/object", wanted) == [content[begin:end] for begin, end in wanted]


def test_an_object_that_is_missing_is_said_to_be() -> None:
    with pytest.raises(FileNotFoundError):
        StoreRanges(MemoryStore()).size("missing")
