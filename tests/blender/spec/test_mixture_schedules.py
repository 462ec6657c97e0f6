"""Mixtures whose shares change along the rows: exact at any offset, the same as events taken one by one."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.spec.mixture import (
    MAX_OFFSET,
    MAX_ROWS_PER_STEP,
    WHOLE,
    Mixture,
    MixturePiece,
    ScheduleKind,
    constant,
    scheduled,
    shares_of,
)
from tests.blender.spec.test_mixture import mixture as fixed_mixture
from tests.blender.spec.test_mixture import pieces

TICKS = 1 << 16  # of a row
KINDS: tuple[ScheduleKind, ...] = ("stepped", "linear", "cosine")

proportions = st.one_of(st.just(0), st.integers(1, 12), st.floats(1e-6, 1, allow_nan=False))
schedules = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.sampled_from(KINDS),
        st.integers(1, 9),
        st.lists(
            st.tuples(st.integers(0, 12), st.lists(proportions, min_size=n, max_size=n).filter(any)),
            min_size=1,
            max_size=4,
            unique_by=lambda knot: knot[0],
        ),
    )
)


def planned(schedule: tuple) -> tuple[ScheduleKind, int, list[tuple[int, tuple[int, ...]]]]:
    kind, rows_per_step, knots = schedule
    return kind, rows_per_step, [(step, shares_of(parts)) for step, parts in sorted(knots)]


class Exact:
    """The oracle: shares and their integral in fractions, events by their ticks, one source at a time."""

    def __init__(self, kind: str, rows_per_step: int, knots: Sequence[tuple[int, Sequence[int]]]) -> None:
        self.knots = [
            (step * rows_per_step, [Fraction(share, WHOLE) for share in shares]) for step, shares in knots
        ]
        if kind == "cosine":
            self.knots = [chord for a, b in pairwise(self.knots) for chord in chords(a, b)] + self.knots[-1:]
        self.flat = kind == "stepped"
        self.n_sources = len(knots[0][1])

    def due(self, source: int, row: Fraction) -> Fraction:
        """The integral of the share of `source` up to `row`."""
        first, last = self.knots[0], self.knots[-1]
        total = min(row, Fraction(first[0])) * first[1][source] + max(row - last[0], 0) * last[1][source]
        for (at, a), (end, b) in pairwise(self.knots):
            length = min(max(row - at, Fraction(0)), Fraction(end - at))
            slope = 0 if self.flat else (b[source] - a[source]) / (end - at)
            total += a[source] * length + slope * length**2 / 2
        return total

    def events(self, rows: int) -> list[tuple[int, int]]:
        """(source, index) of the first rows."""
        found = []
        for source in range(self.n_sources):
            tick, index = 0, 0
            while True:
                end = tick + TICKS * (rows + 2 * self.n_sources)
                target = index + Fraction(1, 2)
                if self.due(source, Fraction(end, TICKS)) < target:
                    break
                tick = first(lambda t, s=source, g=target: self.due(s, Fraction(t, TICKS)) >= g, tick, end)
                if tick > TICKS * (rows + self.n_sources):
                    break
                found.append((tick, source, index))
                index += 1
        return [(source, index) for _, source, index in sorted(found)[:rows]]


def chords(a: tuple[int, list[Fraction]], b: tuple[int, list[Fraction]]) -> list[tuple[int, list[Fraction]]]:
    """A knot and those that make the way to the next half a wave."""
    length = b[0] - a[0]
    n = max(power for power in (1, 2, 4, 8, 16, 32, 64) if power <= length)
    found = [a]
    for i in range(1, n):
        rise = Fraction(round(WHOLE * (1 - math.cos(math.pi * i / n)) / 2), WHOLE)
        exact = [(x + (y - x) * rise) * WHOLE for x, y in zip(a[1], b[1], strict=True)]
        shares = [math.floor(share) for share in exact]
        order = sorted(range(len(exact)), key=lambda s, e=exact: (math.floor(e[s]) - e[s], s))
        for source in order[: WHOLE - sum(shares)]:
            shares[source] += 1
        found.append((a[0] + length * i // n, [Fraction(share, WHOLE) for share in shares]))
    return found


def first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number in low .. high from which `holds` is true."""
    return low + bisect_right(range(low, high), 0, key=lambda it: int(holds(it)))


def mixture(schedule: tuple) -> Mixture:
    return Mixture([scheduled(*planned(schedule))])


def test_shares_move_from_one_source_to_the_other() -> None:
    mixed = mixture(("linear", 8, [(0, [1, 0]), (4, [0, 1])]))
    counts = np.diff(mixed.counts(8 * np.arange(7)), axis=0)
    assert counts.tolist() == [[7, 1], [5, 3], [3, 5], [1, 7], [0, 8], [0, 8]]


@pytest.mark.invariant(
    "Integer arithmetic places every row of a schedule where merging its events one by one would."
)
@settings(deadline=None, max_examples=60)
@given(schedules)
def test_rows_are_the_events_in_order_of_their_ticks(schedule: tuple) -> None:
    kind, rows_per_step, knots = planned(schedule)
    rows = 70
    source, index = mixture(schedule).place(np.arange(rows))
    assert list(zip(source.tolist(), index.tolist(), strict=True)) == Exact(
        kind, rows_per_step, knots
    ).events(rows)


@settings(deadline=None)
@given(schedules, st.lists(st.integers(0, 10**15), min_size=1, max_size=30))
def test_a_row_asked_for_alone_is_the_one_asked_for_among_others(schedule: tuple, rows: list[int]) -> None:
    mixed = mixture(schedule)
    among = np.sort(np.concatenate([np.array(rows) + near for near in range(-20, 20)]).clip(0))
    together = dict(zip(among.tolist(), zip(*mixed.place(among), strict=True), strict=True))
    for row in rows:
        source, index = mixed.place(np.array([row]))
        assert (source[0], index[0]) == together[row]
        assert mixed.counts(np.array([row]))[0][source[0]] == index[0]
        assert mixed.row_of(int(source[0]), index).tolist() == [row]


@settings(deadline=None)
@given(schedules, st.integers(0, 10**6))
def test_a_count_stays_close_to_its_exact_share(schedule: tuple, row: int) -> None:
    kind, rows_per_step, knots = planned(schedule)
    counts = mixture(schedule).counts(np.array([row]))[0]
    assert counts.sum() == row
    exact = Exact(kind, rows_per_step, knots)
    for source, count in enumerate(counts.tolist()):
        most = max(shares[source] for _, shares in knots) / WHOLE
        assert abs(count - exact.due(source, Fraction(row))) <= 1 + most * len(counts) / 2


@settings(deadline=None, max_examples=200)
@given(schedules.map(mixture) | pieces.map(lambda steps: fixed_mixture(*steps)), st.integers(0, 200))
def test_steps_within_a_number_of_rows_is_the_last_that_fits(mixed: Mixture, available: int) -> None:
    for source in range(mixed.n_sources):
        steps = mixed.steps_within(source, available)
        if steps is None:
            assert mixed.counts(np.array([mixed.first_row(10**9)]))[0][source] <= available
            continue
        at = [mixed.first_row(steps), mixed.first_row(steps + 1)]
        fits, too_many = mixed.counts(np.array(at))[:, source]
        assert fits <= available < too_many


@settings(deadline=None)
@given(schedules, st.data())
def test_updates_of_a_schedule_keep_the_past_and_whole_steps(schedule: tuple, data: st.DataObject) -> None:
    before = mixture(schedule)
    step = data.draw(st.integers(1, 20))
    n = before.n_sources
    parts = data.draw(st.lists(proportions, min_size=n, max_size=n).filter(any))
    after = before.extended([scheduled("constant", 6, [(0, shares_of(parts))])], [step])
    rows = np.arange(before.first_row(step))
    assert (np.array(before.place(rows)) == np.array(after.place(rows))).all()
    at = np.arange(after.first_row(step + 20) + 1)
    grown = np.diff(after.counts(at), axis=0)
    assert (grown.sum(axis=1) == 1).all()
    assert ((grown == 0) | (grown == 1)).all()
    source, index = after.place(at[:-1])
    assert (source == grown.argmax(axis=1)).all()
    for s in range(n):
        assert (after.row_of(s, index[source == s]) == at[:-1][source == s]).all()


def test_a_share_below_a_row_a_step_arrives_though_shares_change() -> None:
    def piece(step: int) -> MixturePiece:
        return scheduled("constant", 4, [(0, shares_of([30 + step % 2, 1, 1]))])

    mixed = Mixture([piece(step) for step in range(400)], range(400))
    counts = mixed.counts(np.array([1600]))[0]
    for source, count in enumerate(counts.tolist()):
        exact = sum(4 * Fraction(shares_of([30 + step % 2, 1, 1])[source], WHOLE) for step in range(400))
        assert abs(count - exact) <= 2.5


def test_a_schedule_takes_over_from_weights_and_gives_back() -> None:
    pieces = [constant([3, 1]), scheduled("linear", 8, [(0, (WHOLE, 0)), (2, (0, WHOLE))]), constant([1, 1])]
    mixed = Mixture(pieces, [0, 2, 4])
    assert [mixed.rows_per_step(step) for step in range(6)] == [4, 4, 8, 8, 2, 2]
    counts = mixed.counts(np.array([mixed.first_row(step) for step in range(7)]))
    assert counts.tolist() == [[0, 0], [3, 1], [6, 2], [12, 4], [14, 10], [15, 11], [16, 12]]
    assert [piece.weights for _, piece in mixed.pieces()] == [(3, 1), None, (1, 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_offset_1e12_is_as_exact_as_offset_0(kind: ScheduleKind) -> None:
    knots = [
        (0, shares_of([3, 2, 1])),
        (2 * 10**12, shares_of([1, 0, 5])),
        (MAX_OFFSET, shares_of([0, 0, 1])),
    ]
    mixed = Mixture([scheduled(kind, 1000, knots)])
    exact = Exact(kind, 1000, knots)
    for step in (10**12, 10**12 + 1, 3 * 10**12, MAX_OFFSET - 1):
        first = mixed.first_row(step)
        source, index = mixed.place(np.arange(first, first + 1000))
        counts = mixed.counts(np.array([first]))[0]
        for s, count in enumerate(counts.tolist()):
            assert abs(count - exact.due(s, Fraction(first))) <= 2.5
            assert index[source == s].tolist() == list(range(count, count + int((source == s).sum())))


def test_the_largest_offset_of_the_largest_step_fits_128_bits() -> None:
    knots = [(0, (WHOLE - 1, 1)), (MAX_OFFSET, (1, WHOLE - 1))]
    for kind in KINDS:
        mixed = Mixture([scheduled(kind, MAX_ROWS_PER_STEP, knots)])
        last = mixed.first_row(MAX_OFFSET) - 1
        for row in (last, last // 2, last // 3):
            source, index = mixed.place(np.array([row]))
            assert mixed.row_of(int(source[0]), index).tolist() == [row]


GOLDEN = {
    "stepped": "001000010000100011011011",
    "linear": "001001010010110110110110",
    "cosine": "001001001010110110110110",
}


@pytest.mark.invariant(
    "Integer arithmetic places every row of a schedule where merging its events one by one would."
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_golden_orders_never_change(kind: ScheduleKind) -> None:
    """Blends on record rely on them: a change of an order is a new `blender.spec.config.FORMAT`."""
    mixed = Mixture([scheduled(kind, 8, [(0, shares_of([4, 1])), (2, shares_of([1, 2]))])])
    assert "".join(map(str, mixed.place(np.arange(24))[0])) == GOLDEN[kind]


@settings(deadline=None)
@given(st.lists(proportions, min_size=1, max_size=9).filter(any))
def test_shares_are_the_nearest_that_make_a_whole(parts: list[float]) -> None:
    shares = shares_of(parts)
    assert sum(shares) == WHOLE
    total = sum(Fraction(part) for part in parts)
    for part, share in zip(parts, shares, strict=True):
        assert abs(share - Fraction(part) * WHOLE / total) < 1
        assert (share == 0) if part == 0 else True
    assert shares_of(shares) == shares
    assert shares_of([share / WHOLE for share in shares]) == shares


@pytest.mark.parametrize(
    "parts, sentence",
    [
        ([1, -1], "A proportion is -1"),
        ([0, 0.0], "All proportions are zero"),
        ([], "All proportions are zero"),
        ([math.nan], "A proportion is nan"),
        ([1, math.inf], "A proportion is inf"),
    ],
)
def test_proportions_that_make_no_step_are_refused(parts: list[float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        shares_of(parts)


@pytest.mark.parametrize(
    "kind, rows, knots, sentence",
    [
        ("sine", 4, [(0, (WHOLE,))], "Unknown schedule `sine`"),
        ("linear", 0, [(0, (WHOLE,))], "0 rows a step"),
        ("linear", 4, [], "has 0 knots"),
        ("linear", 4, [(0, (WHOLE, 0)), (0, (0, WHOLE))], "do not ascend from 0"),
        ("linear", 4, [(-1, (WHOLE, 0))], "do not ascend from 0"),
        ("linear", 4, [(MAX_OFFSET + 1, (WHOLE, 0))], "do not ascend from 0"),
        ("linear", 4, [(0, (WHOLE + 1, -1))], "negative or above"),
        ("linear", 4, [(0, (WHOLE - 1,))], "do not sum"),
        ("cosine", 4, [(i, (WHOLE, *[0] * 999)) for i in range(100)], "Use fewer knots"),
    ],
)
def test_a_wrong_schedule_is_refused_with_a_sentence(
    kind: ScheduleKind, rows: int, knots: list[tuple[int, tuple[int, ...]]], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        scheduled(kind, rows, knots)
