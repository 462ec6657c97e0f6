"""Counts of a mixture: exact, in closed form, the same as events taken one by one."""

from __future__ import annotations

import heapq
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.spec.mixture import MAX_OFFSET, MAX_ROWS_PER_STEP, Mixture, constant

weights = st.lists(st.integers(0, 40), min_size=1, max_size=8).filter(any)
pieces = st.integers(1, 4).flatmap(
    lambda n: st.lists(
        st.tuples(st.integers(1, 9), st.lists(st.integers(0, 12), min_size=n, max_size=n).filter(any)),
        min_size=1,
        max_size=4,
    )
)


def mixture(*planned: tuple[int, list[int]]) -> Mixture:
    """A mixture of (number of steps, weights); the last piece goes on for ever."""
    starts = np.cumsum([0, *(steps for steps, _ in planned[:-1])]).tolist()
    return Mixture([constant(weights) for _, weights in planned], starts)


def events(weights: list[int], rows: int) -> list[tuple[int, int]]:
    """(source, index) of the first rows: the oracle, a heap of exact event times."""
    heap = [(Fraction(1, 2 * w), s, 0) for s, w in enumerate(weights) if w]
    heapq.heapify(heap)
    found = []
    while len(found) < rows:
        _, s, j = heapq.heappop(heap)
        found.append((s, j))
        heapq.heappush(heap, (Fraction(2 * j + 3, 2 * weights[s]), s, j + 1))
    return found


def test_a_step_of_three_to_one_is_read_in_event_order() -> None:
    source, index = mixture((1, [3, 1])).place(np.arange(8))
    assert source.tolist() == [0, 0, 1, 0, 0, 0, 1, 0]  # 1/2 ties: the first source first
    assert index.tolist() == [0, 1, 0, 2, 3, 4, 1, 5]


@settings(deadline=None)
@given(weights)
def test_rows_are_the_events_in_order_of_exact_time(weights: list[int]) -> None:
    rows = min(3 * sum(weights), 300)
    source, index = mixture((1, weights)).place(np.arange(rows))
    assert list(zip(source.tolist(), index.tolist(), strict=True)) == events(weights, rows)


@settings(deadline=None)
@given(pieces)
def test_counts_sum_to_the_row_and_grow_by_one_source_at_a_time(planned: list[tuple[int, list[int]]]) -> None:
    mixed = mixture(*planned)
    rows = np.arange(mixed.first_row(40) + 1)
    counts = mixed.counts(rows)
    assert (counts.sum(axis=1) == rows).all()
    steps = np.diff(counts, axis=0)
    assert (steps.sum(axis=1) == 1).all()
    assert ((steps == 0) | (steps == 1)).all()
    source, index = mixed.place(rows[:-1])
    assert (source == steps.argmax(axis=1)).all()
    assert (index == counts[rows[:-1], source]).all()


@settings(deadline=None)
@given(pieces)
def test_every_step_has_exactly_the_weight_of_each_source(planned: list[tuple[int, list[int]]]) -> None:
    mixed = mixture(*planned)
    at = np.cumsum([0, *(steps for steps, _ in planned[:-1])])
    for step in range(40):
        first, last = mixed.first_row(step), mixed.first_row(step + 1)
        got = np.diff(mixed.counts(np.array([first, last])), axis=0)[0].tolist()
        assert got == planned[int(np.searchsorted(at, step, side="right")) - 1][1]
        assert mixed.step_of(np.arange(first, last)).tolist() == [step] * (last - first)


@settings(deadline=None)
@given(weights, st.integers(0, 10**6))
def test_a_count_stays_close_to_its_exact_share(weights: list[int], row: int) -> None:
    counts = mixture((1, weights)).counts(np.array([row]))[0]
    present = sum(w > 0 for w in weights)
    for count, weight in zip(counts.tolist(), weights, strict=True):
        share = Fraction(weight, sum(weights))
        assert abs(count - row * share) <= 1 + share * present / 2


@settings(deadline=None)
@given(pieces, st.data())
def test_a_row_is_found_again_from_its_source_and_index(
    planned: list[tuple[int, list[int]]], data: st.DataObject
) -> None:
    mixed = mixture(*planned)
    rows = np.array(data.draw(st.lists(st.integers(0, 10**15), min_size=1, max_size=20)))
    source, index = mixed.place(rows)
    for row, s, j in zip(rows, source, index, strict=True):
        assert mixed.row_of(int(s), np.array([j])).tolist() == [row]


@settings(deadline=None)
@given(pieces)
def test_an_index_the_blend_never_reaches_has_no_row(planned: list[tuple[int, list[int]]]) -> None:
    first_source_alone = (1, [1, *[0] * (len(planned[0][1]) - 1)])
    mixed = mixture(*planned, first_source_alone)
    end = mixed.first_row(1000)
    for source in range(1, mixed.n_sources):
        served = mixed.counts(np.array([end]))[0][source]
        assert mixed.row_of(source, np.array([served])).tolist() == [-1]


def test_one_source_is_read_in_its_own_order() -> None:
    source, index = mixture((1, [5])).place(np.arange(12))
    assert source.tolist() == [0] * 12
    assert index.tolist() == list(range(12))


def test_equal_weights_take_turns_in_the_order_of_the_sources() -> None:
    source, _ = mixture((1, [2, 2, 0, 2])).place(np.arange(6))
    assert source.tolist() == [0, 1, 3, 0, 1, 3]


def test_offset_1e12_is_as_exact_as_offset_0() -> None:
    mixed = mixture((1, [7, 0, 4, 1]))
    first = mixed.first_row(10**12)
    assert first == 12 * 10**12
    source, index = mixed.place(np.arange(first, first + 12))
    assert source.tolist() == [0, 2, 0, 0, 2, 0, 3, 2, 0, 0, 2, 0]
    before = np.array([7, 0, 4, 1]) * 10**12
    assert (index - before[source]).tolist() == [0, 0, 1, 2, 1, 3, 0, 2, 4, 5, 3, 6]
    assert mixed.row_of(3, np.array([10**12])).tolist() == [first + 6]


def test_the_largest_offset_of_the_largest_step_fits_64_bits() -> None:
    mixed = mixture((1, [MAX_ROWS_PER_STEP - 1, 1]))
    last = mixed.first_row(MAX_OFFSET) - 1
    assert last == MAX_OFFSET * MAX_ROWS_PER_STEP - 1
    source, index = mixed.place(np.array([last]))
    assert mixed.row_of(int(source[0]), index).tolist() == [last]


def test_times_are_compared_exactly_in_the_largest_steps() -> None:
    weights = [MAX_ROWS_PER_STEP // 2, MAX_ROWS_PER_STEP // 2 - 1]  # the closest two times can be
    source, index = mixture((1, weights)).place(np.arange(sum(weights)))
    time = [(2 * j + 1) * weights[1 - s] for s, j in zip(source.tolist(), index.tolist(), strict=True)]
    assert all(
        a < b or (a == b and s < t) for a, b, s, t in zip(time, time[1:], source, source[1:], strict=False)
    )


GOLDEN = [1, 0, 2, 1, 0, 1, 0, 1, 2, 0, 1]  # of weights 4, 5, 2


def test_the_golden_order_never_changes() -> None:
    """Blends on record rely on it: a change of the order is a new `blender.spec.config.FORMAT`."""
    assert mixture((1, [4, 5, 2])).place(np.arange(11))[0].tolist() == GOLDEN


def test_a_mixture_goes_on_from_another_and_leaves_it_as_it_was() -> None:
    first = mixture((1, [2, 1]))
    second = first.extended([constant([0, 1, 3]), constant([1, 1, 1])], [4, 9])
    third = second.extended([constant([5, 0, 0])], [6])  # in the place of what was planned from step 9 on
    assert [first.starts, second.starts, third.starts] == [(0,), (0, 4, 9), (0, 4, 6)]
    assert [piece.weights for _, piece in third.pieces(1)] == [(0, 1, 3), (5, 0, 0)]
    whole = mixture((4, [2, 1, 0]), (2, [0, 1, 3]), (1, [5, 0, 0]))
    rows = np.arange(200)
    assert (np.array(third.place(rows)) == np.array(whole.place(rows))).all()
    assert first.n_sources == 2
    assert first.first_row(100) == 300


def test_a_mixture_is_not_extended_by_fewer_sources() -> None:
    with pytest.raises(ValueError, match="Keep a source that ends, with weight 0"):
        mixture((1, [2, 1])).extended([constant([1])], [4])
    with pytest.raises(ValueError, match="Step -1 is out of range"):
        mixture((1, [2, 1])).extended([constant([1, 1])], [-1])


@pytest.mark.parametrize("ranks, found", [(1, None), (2, (5, 3)), (3, (0, 4)), (7, (0, 4))])
def test_the_first_piece_that_ranks_cannot_share_is_named(ranks: int, found: tuple[int, int] | None) -> None:
    mixed = mixture((5, [3, 1]), (5, [1, 2]))
    assert mixed.indivisible(0, 20, ranks) == found


def test_ranks_need_not_share_the_steps_nobody_asked_for() -> None:
    mixed = mixture((5, [3, 1]), (5, [1, 2]))
    assert mixed.indivisible(0, 5, 2) is None
    assert mixed.indivisible(5, 6, 3) is None
    assert mixed.indivisible(4, 6, 2) == (5, 3)


def test_what_lies_outside_a_blend_is_refused() -> None:
    mixed = mixture((1, [2, 1]))
    for ask in (mixed.place, mixed.counts, mixed.step_of, lambda rows: mixed.row_of(0, rows)):
        with pytest.raises(ValueError, match="Row -1 is out of range"):
            ask(np.array([-1]))
    with pytest.raises(ValueError, match="Source 2 is out of range"):
        mixed.row_of(2, np.array([0]))
    with pytest.raises(ValueError, match="Step 4398046511105 is out of range"):
        mixed.first_row(MAX_OFFSET + 1)
    assert [len(found) for found in mixed.place(np.empty(0, dtype=np.int64))] == [0, 0]


@pytest.mark.parametrize("wrong", [[], [0], [0, 0], [3, -1], [MAX_ROWS_PER_STEP, 1]])
def test_weights_that_make_no_step_are_refused(wrong: list[int]) -> None:
    with pytest.raises(ValueError, match="Use"):
        constant(wrong)
