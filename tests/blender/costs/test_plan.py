"""The planned costs of a shuffle equal those of reading it, counted here row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.costs.plan import SourceFacts, candidates, shuffle_cost
from blender.spec.shuffle import Shuffle, permutation


@dataclass(frozen=True)
class Even:
    """Pages of so many rows each, page k of 1,000 + k bytes."""

    rows: int

    def of(self, ordinals: np.ndarray) -> np.ndarray:
        return ordinals // self.rows

    def n_bytes(self, numbers: np.ndarray) -> np.ndarray:
        return 1000 + numbers


def facts(n_rows: int, page_rows: int, ranks: Sequence[int], *columns: int) -> SourceFacts:
    pages = [Even(rows) for rows in (page_rows, *columns)]
    return SourceFacts("s", n_rows, 10.0, page_rows, np.array(ranks), pages)


def windows(order: Sequence[int], size: int) -> list[list[int]]:
    return [list(order[begin : begin + size]) for begin in range(0, len(order), size)]


@settings(deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 40), st.integers(1, 9), st.integers(1, 6), st.integers(1, 6), st.data()
)
def test_bytes_and_pages_of_an_epoch_are_those_its_windows_touch(
    n_windows: int, page_rows: int, file_rows: int, window_pages: int, width: int, data: st.DataObject
) -> None:
    n_rows = n_windows * page_rows * window_pages
    ranks = sorted(data.draw(st.lists(st.integers(0, 2), min_size=width, max_size=width)))
    source = facts(n_rows, file_rows, ranks)
    shuffle = Shuffle("page_window", page_rows, window_pages)
    found = shuffle_cost(source, shuffle, 4, shuffle)
    order = permutation(shuffle, n_rows, seed=4, epoch=0, source="s").forward(np.arange(n_rows)).tolist()
    of_one, of_all = [], []
    for window in windows(list(enumerate(order)), page_rows * window_pages):
        of_one += sorted({row // file_rows for _, row in window})
        of_all += sorted({(ranks[position % width], row // file_rows) for position, row in window})
    assert found.chosen
    assert found.window_bytes == min(n_rows, page_rows * window_pages) * 10
    assert found.pages_per_step == pytest.approx(len(of_one) / n_rows * width)
    assert found.bytes_per_step == pytest.approx(sum(1000 + page for page in of_one) / n_rows * width)
    assert found.bytes_of_ranks == pytest.approx(sum(1000 + page for _, page in of_all) / n_rows * width)


def test_a_full_shuffle_reads_a_page_for_every_row_and_keeps_none() -> None:
    found = shuffle_cost(facts(100_000, 10, [0, 0, 0, 0]), Shuffle("row"), 0, Shuffle())
    assert found.pages_per_step == pytest.approx(4, abs=0.01)
    assert (found.chosen, found.window_bytes, found.window_rows) == (False, 0, 100_000)
    assert found.score == pytest.approx(1, abs=0.06)


def test_the_order_none_reads_each_page_once_and_mixes_nothing() -> None:
    found = shuffle_cost(facts(64_000, 10, [0, 0, 1, 1]), Shuffle(), 0, Shuffle())
    assert found.pages_per_step == pytest.approx(0.4)
    assert found.bytes_of_ranks == pytest.approx(2 * found.bytes_per_step, rel=0.01)
    assert found.score == pytest.approx(4, rel=0.01)
    assert 128 < found.long_score < 257  # some batches have rows of two topics


def test_the_columns_of_a_row_are_added_up() -> None:
    shuffle = Shuffle("page", 10)
    one, two = facts(1000, 10, [0] * 5), facts(1000, 10, [0] * 5, 100)
    alone, both = shuffle_cost(one, shuffle, 0, shuffle), shuffle_cost(two, shuffle, 0, shuffle)
    assert alone.pages_per_step == pytest.approx(0.5)
    # A page of 100 rows is read for each of its 10 pages of 10.
    assert both.pages_per_step == pytest.approx(1)
    assert (alone.first_pages, both.first_pages) == (1, 2)


def test_the_first_step_reads_what_its_rows_touch() -> None:
    shuffle = Shuffle("page_window", 10, 64)
    source = facts(6400, 10, [0] * 8)
    found = shuffle_cost(source, shuffle, 9, shuffle)
    first = permutation(shuffle, 6400, seed=9, epoch=0, source="s").forward(np.arange(8)) // 10
    assert found.first_pages == len(set(first.tolist()))
    assert found.first_bytes == sum(1000 + page for page in set(first.tolist()))


def test_a_wider_window_scores_better_and_wants_more_memory() -> None:
    source = facts(1_000_000, 16, [0] * 256)
    found = [
        shuffle_cost(source, Shuffle("page_window", 16, pages), 0, Shuffle()) for pages in (64, 256, 1024)
    ]
    assert [candidate.score for candidate in found] == sorted(
        (candidate.score for candidate in found), reverse=True
    )
    assert [candidate.window_bytes for candidate in found] == [64 * 160, 256 * 160, 1024 * 160]
    assert found[2].score < 1.4 < 4 < found[0].score


def test_every_kind_is_compared_with_the_configured_one() -> None:
    source = facts(20_000, 16, [0])
    kinds = [
        (candidate.kind, candidate.page_rows, candidate.window_pages)
        for candidate in candidates(source, Shuffle("row"))
    ]
    assert kinds == [
        ("none", 0, 0),
        ("page", 16, 0),
        ("page_window", 16, 64),
        ("page_window", 16, 256),
        ("page_window", 16, 1024),
        ("row", 0, 0),
    ]
    found = candidates(source, Shuffle("page_window", 8, 300))
    assert [candidate.window_pages for candidate in found] == [0, 0, 64, 256, 300, 1024, 0]
    assert {
        candidate.page_rows for candidate in found if candidate.kind != "none" and candidate.kind != "row"
    } == {8}


@pytest.mark.parametrize("n_rows", [1, 2, 7])
@pytest.mark.parametrize("configured", [Shuffle(), Shuffle("page", 4), Shuffle("page_window", 4, 9)])
def test_a_source_smaller_than_a_step_is_priced(n_rows: int, configured: Shuffle) -> None:
    source = facts(n_rows, 4, [0] * 8)
    for shuffle in candidates(source, configured):
        found = shuffle_cost(source, shuffle, 0, configured)
        assert found.score == 1
        assert found.first_pages == -(-n_rows // 4)
