"""Blends whose shares change along the steps, read from tables, without a port and over one."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from blender.catalog.blends import Blends, open_blends
from blender.errors import EndOfData, InvalidBlend, InvalidRequest
from blender.opened.blend import Blend
from blender.records import Schedule, Source
from blender.spec.ranks import RankSlice
from blender.spec.step_range import StepRange
from blender.trainer.client import BlenderClient
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, serving

TURN = Schedule(8, ((0, {CODE: 1, PROSE: 1}), (20, {PROSE: 1})), "linear")


@pytest.fixture
def lake(shared_lake: Settings) -> Settings:
    """One lake for the file, whose tests change none of its two tables."""
    return shared_lake


def turning(blends: Blends, schedule: Schedule = TURN, **code: object) -> Blend:
    """From half code and half prose to prose alone."""
    stored = blends.create([Source(CODE, shuffle="row", **code), Source(PROSE)], seed=7, schedule=schedule)
    return blends.open(stored.id)


def test_every_step_follows_the_shares_of_its_schedule(blends: Blends) -> None:
    blend = turning(blends, oversample=True)
    assert blend.steps == 42  # 300 rows of prose: 120 in the first 20 steps, then 8 in each
    seen = Counter()
    for step in range(42):
        batch = blend.step(step)
        assert batch.num_rows == 8
        seen.update(batch.column("source").to_pylist())
        due = sum(
            8 * max(Fraction(0), (1 - Fraction(2 * earlier_step + 1, 40)) / 2)
            for earlier_step in range(min(step + 1, 20))
        )
        assert abs(seen[0] - due) <= 2
    assert seen[0] == 40


def test_a_blend_with_a_schedule_ends_where_its_source_is_used_up(blends: Blends) -> None:
    schedule = Schedule(8, ((0, {CODE: 1, PROSE: 1}), (1000, {PROSE: 1})), "cosine")
    blend = turning(blends, schedule)
    ends = blend.steps
    assert ends is not None
    rows = [row for block in blend.fetch(StepRange(0, ends)) for row in block.batch.to_pylist()]
    code = [row["ordinal"] for row in rows if row["source"] == 0]
    assert len(code) == len(set(code)) <= 40
    needed = blend.order.mixture.counts(np.array([blend.order.mixture.first_row(ends + 1)]))[0][0]
    assert needed > 40
    with pytest.raises(EndOfData, match=rf"`packed\.code` has 40 rows .* step {ends} needs {needed}"):
        blend.step(ends)


def test_ranks_share_the_steps_of_a_schedule(blends: Blends) -> None:
    blend = turning(blends, oversample=True)
    for offset in (0, 11, 33):
        whole = blend.step(offset).to_pylist()
        parts = [row for rank in range(4) for row in blend.step(offset, RankSlice(rank, 4)).to_pylist()]
        assert parts == whole
    with pytest.raises(InvalidRequest, match=r"step of 8 rows \(from step 0 on\) cannot be shared"):
        blend.step(0, RankSlice(0, 3))


def test_a_row_of_a_scheduled_source_is_located_where_it_is_served(blends: Blends) -> None:
    blend = turning(blends, oversample=True)
    for offset in (0, 7, 19, 30):
        for number, row in enumerate(blend.step(offset).to_pylist()):
            name = (CODE, PROSE)[row["source"]]
            found = blend.order.locate(name, row["ordinal"], epochs=row["epoch"] + 1)
            assert (offset, number, row["epoch"]) in [
                (place.offset, place.row, place.epoch) for place in found
            ]


def test_a_source_without_shares_may_be_empty(blends: Blends) -> None:
    blend = turning(blends, Schedule(4, ((0, {PROSE: 1}),), "constant"))
    assert blend.steps == 75
    assert blend.order.ends[0] is None


def test_an_update_by_a_schedule_is_the_parent_before_it(blends: Blends, lake: Settings) -> None:
    parent = blends.create([Source(CODE, weight=3, oversample=True), Source(PROSE, weight=1)], seed=3)
    schedule = Schedule(8, ((10, {CODE: 3, PROSE: 1}), (30, {CODE: 1, PROSE: 3})), "stepped")
    child = blends.update(parent.id, 10, {}, schedule=schedule)
    assert blends.update(child.id, 20, {CODE: 1, PROSE: 1}).config.schedule is None
    for opened in (blends.open(child.id), open_blends(lake).open(child.id)):
        assert [opened.step(step) for step in range(10)] == [
            blends.open(parent.id).step(step) for step in range(10)
        ]
        assert [opened.step(step).num_rows for step in (9, 10, 31)] == [4, 8, 8]
        first = Counter(opened.step(12).column("source").to_pylist())
        later = Counter(opened.step(32).column("source").to_pylist())
        assert (first, later) == ({0: 6, 1: 2}, {0: 2, 1: 6})


def test_a_schedule_over_the_wire_makes_the_same_blend(lake: Settings) -> None:
    with serving(lake.home) as server, BlenderClient(server.address) as blender:
        sources = [Source(CODE, oversample=True), Source(PROSE)]
        stored = blender.create(sources, seed=7, schedule=TURN)
        assert stored.schedule is not None
        assert (stored.schedule.kind, stored.schedule.rows_per_step) == ("linear", 8)
        assert stored.schedule.knots == ((0, {CODE: 0.5, PROSE: 0.5}), (20, {PROSE: 1.0}))
        assert blender.create(sources, seed=7, schedule=stored.schedule).id == stored.id
        (piece,) = blender.describe(stored.id).pieces
        assert (piece.offset, piece.weights, piece.rows_per_step) == (0, (), 8)
        batches = list(blender.fetch(stored.id, 0, 30))
        assert [len(batch) for batch in batches] == [8] * 30
        steady = Schedule(6, ((5, {CODE: 2, PROSE: 1}),), "constant")
        child = blender.update(stored.id, 5, schedule=steady)
        assert [len(batch) for batch in blender.fetch(child.id, 3, 4)] == [8, 8, 6, 6]
        with pytest.raises(InvalidBlend, match="makes no step: A proportion is -1"):
            blender.update(stored.id, 5, schedule=Schedule(6, ((5, {CODE: -1}),)))
        with pytest.raises(InvalidBlend, match="knot at step 7 follows one at 9"):
            blender.update(stored.id, 5, schedule=Schedule(6, ((9, {CODE: 1}), (7, {CODE: 1}))))
