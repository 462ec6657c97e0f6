"""Youmu's buffer shuffle: every row once, from one read of each page, and the same from any state."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import accumulate, chain, permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.errors import InvalidRequest
from blender.parquet.buffer_shuffle import BufferOrder, BufferShuffle, BufferState
from blender.parquet.matrix import IndexMatrix, get_idx_matrix, shuffle_index
from blender.spec.permutation import keyed
from blender.spec.shuffle import derive_key
from tests.blender.parquet_files import rows_per_page, write

ROWS, PAGE_ROWS = 500, 10


def pages_of(sizes: Sequence[int]) -> list[range]:
    """Pages of so many rows each, numbered one after another."""
    return [range(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]


def batches(order: BufferOrder) -> list[list[int]]:
    return [rows.tolist() for _, rows in order]


def shuffled_list(sizes: Sequence[int], batch_rows: int, buffer_rows: int) -> list[list[int]]:
    """The oracle: a list that is really shuffled, whole, whenever pages came."""
    pages = pages_of(sizes)
    buffer: list[int] = []
    found, arrivals = [], 0
    while pages or buffer:
        n_pages = len(pages)
        while pages and (len(buffer) < batch_rows or len(buffer) + len(pages[0]) <= buffer_rows):
            buffer += pages.pop(0)
        if len(pages) < n_pages:
            arrivals += 1
            key = derive_key(seed=0, epoch=0, level=f"buffer {arrivals}", source="")
            order = keyed(len(buffer), key).forward(np.arange(len(buffer)))
            taken = sorted(buffer)
            buffer = [taken[index] for index in order]
        found.append(buffer[:batch_rows])
        buffer = buffer[batch_rows:]
    return found


sizes = st.lists(st.integers(1, 40), max_size=30)


@settings(deadline=None)
@given(sizes, st.integers(1, 50), st.integers(0, 300))
def test_it_pops_what_a_list_that_is_shuffled_whole_pops(
    sizes: list[int], batch_rows: int, more: int
) -> None:
    order = BufferOrder(pages_of(sizes), batch_rows=batch_rows, buffer_rows=batch_rows + more)
    assert batches(order) == shuffled_list(sizes, batch_rows, batch_rows + more)


@settings(deadline=None)
@given(sizes, st.integers(1, 50), st.integers(0, 300), st.integers(0, 2**64 - 1), st.integers(0, 3))
def test_every_row_and_every_page_comes_once_within_the_buffer(
    sizes: list[int], batch_rows: int, more: int, seed: int, epoch: int
) -> None:
    pages = pages_of(sizes)
    order = BufferOrder(pages, batch_rows=batch_rows, buffer_rows=batch_rows + more, seed=seed, epoch=epoch)
    rows: list[int] = []
    taken: list[int] = []
    for new, batch in order:
        taken += new
        held = sum(sizes[: len(taken)]) - len(rows)
        assert held <= max(batch_rows + more, batch_rows - 1 + max(sizes))
        assert set(batch.tolist()) <= {row for page in taken for row in pages[page]}
        assert len(batch) == min(batch_rows, sum(sizes) - len(rows))
        rows += batch.tolist()
    assert taken == list(range(len(sizes)))
    assert sorted(rows) == list(range(sum(sizes)))


@settings(deadline=None)
@given(sizes.filter(bool), st.integers(1, 20), st.integers(0, 100), st.data())
def test_a_restored_state_continues_where_it_was_taken(
    sizes: list[int], batch_rows: int, more: int, data: st.DataObject
) -> None:
    options = {"batch_rows": batch_rows, "buffer_rows": batch_rows + more, "seed": 3, "epoch": 1}
    order = BufferOrder(pages_of(sizes), **options)
    whole = batches(BufferOrder(pages_of(sizes), **options))
    done = data.draw(st.integers(0, len(whole)))
    assert [next(order)[1].tolist() for _ in range(done)] == whole[:done]
    stored = json.loads(json.dumps(asdict(order.state())))
    state = BufferState(**{**stored, "rows": tuple(stored["rows"])})
    assert batches(BufferOrder(pages_of(sizes), state=state, **options)) == whole[done:]


def chances(sizes: Sequence[int], batch_rows: int, buffer_rows: int) -> dict[tuple[int, ...], Fraction]:
    """How likely each order is if every batch is drawn from what the buffer holds, none before another."""
    pages = pages_of(sizes)

    def follow(held: frozenset[int], taken: int) -> dict[tuple[int, ...], Fraction]:
        while taken < len(pages) and (len(held) < batch_rows or len(held) + len(pages[taken]) <= buffer_rows):
            held, taken = held | set(pages[taken]), taken + 1
        if not held:
            return {(): Fraction(1)}
        draws = list(permutations(held, min(batch_rows, len(held))))
        found: dict[tuple[int, ...], Fraction] = {}
        for first in draws:
            for rest, chance in follow(held - set(first), taken).items():
                found[first + rest] = found.get(first + rest, Fraction(0)) + chance / len(draws)
        return found

    return follow(frozenset(), 0)


@pytest.mark.parametrize("sizes, batch_rows, buffer_rows", [((2, 2, 2), 1, 4), ((1, 3, 2), 2, 4)])
def test_orders_are_as_likely_as_draws_from_the_buffer_make_them(
    sizes: tuple[int, ...], batch_rows: int, buffer_rows: int
) -> None:
    expected = chances(sizes, batch_rows, buffer_rows)
    n = 20 * len(expected)
    options = {"batch_rows": batch_rows, "buffer_rows": buffer_rows}
    orders = (batches(BufferOrder(pages_of(sizes), seed=seed, **options)) for seed in range(n))
    found = Counter(tuple(chain(*order)) for order in orders)
    assert set(found) <= set(expected)
    chi2 = sum(
        (found[order] - float(n * chance)) ** 2 / float(n * chance) for order, chance in expected.items()
    )
    freedom = len(expected) - 1
    assert abs(chi2 / freedom - 1) < 5 * (2 / freedom) ** 0.5


def test_seed_and_epoch_each_make_another_order() -> None:
    pages = pages_of([10] * 30)
    orders = [
        batches(BufferOrder(pages, batch_rows=5, buffer_rows=100, seed=seed, epoch=epoch))
        for seed, epoch in [(0, 0), (1, 0), (0, 1), (0, 0)]
    ]
    assert orders[0] == orders[3]
    assert len({str(order) for order in orders}) == 3


GOLDEN = [[6, 0], [10, 3], [12, 2], [4, 7]]  # of pages of 4 rows, seed 7, epoch 2


def test_the_golden_order_never_changes() -> None:
    order = BufferOrder(pages_of([4] * 5), batch_rows=2, buffer_rows=12, seed=7, epoch=2)
    assert batches(order)[:4] == GOLDEN


@pytest.mark.parametrize("batch_rows, buffer_rows", [(0, 5), (6, 5)])
def test_a_batch_that_no_buffer_gives_is_refused(batch_rows: int, buffer_rows: int) -> None:
    with pytest.raises(InvalidRequest, match=f"Batches of {batch_rows} rows"):
        BufferOrder([], batch_rows=batch_rows, buffer_rows=buffer_rows)


def test_a_state_of_more_pages_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="9 pages, and there are 1"):
        BufferOrder(pages_of([3]), batch_rows=1, buffer_rows=5, state=BufferState(pages=9))


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> IndexMatrix:
    """Rows of two files; each is its own number as text."""
    folder, paths = tmp_path_factory.mktemp("rows"), []
    for first in (0, ROWS):
        rows = pa.table({"row": [str(row) for row in range(first, first + ROWS)]})
        paths.append(write(folder / f"{first}.parquet", rows, **rows_per_page(PAGE_ROWS)))
    return get_idx_matrix(paths, "row")


def test_rows_are_those_of_the_order_and_each_page_is_read_once(matrix: IndexMatrix) -> None:
    pages = shuffle_index(matrix, seed=5)
    before = matrix.native.read_so_far[0]
    read = list(BufferShuffle(pages, batch_rows=7, buffer_rows=100, seed=5))
    assert matrix.native.read_so_far[0] - before == len(matrix) == 2 * ROWS / PAGE_ROWS
    ranges = [range(page.first_row, page.first_row + page.n_rows) for page in pages]
    expected = batches(BufferOrder(ranges, batch_rows=7, buffer_rows=100, seed=5))
    assert [[int(row) for row in batch.to_pylist()] for batch in read] == expected
    assert {batch.type for batch in read} == {matrix.type}


def test_readers_share_an_epoch(matrix: IndexMatrix) -> None:
    rows = [
        int(row)
        for reader in range(3)
        for batch in BufferShuffle(shuffle_index(matrix)[reader::3], batch_rows=8, buffer_rows=60)
        for row in batch.to_pylist()
    ]
    assert sorted(rows) == list(range(2 * ROWS))


def test_a_resumed_reader_reads_only_pages_that_still_have_rows(matrix: IndexMatrix) -> None:
    pages = shuffle_index(matrix, seed=5, epoch=1)
    options = {"batch_rows": 7, "buffer_rows": 40, "seed": 5, "epoch": 1}
    first = BufferShuffle(pages, **options)
    for _ in range(50):
        next(first)
    before = matrix.native.read_so_far[0]
    second = BufferShuffle(pages, state=first.state(), **options)
    pages_of_40_rows = range(40 // PAGE_ROWS, 41)  # at least full ones, at most one a row
    assert matrix.native.read_so_far[0] - before in pages_of_40_rows
    assert [batch.to_pylist() for batch in second] == [batch.to_pylist() for batch in first]
