"""Defining a blend tags all of its snapshots or none, at a cost that does not grow with other sources."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from blender.call_context import CallContext, use_context
from blender.catalog.blends import Blends, open_blends
from blender.catalog.pinning import SnapshotKeeper
from blender.catalog.store import open_store
from blender.catalog.tags import tag_name
from blender.errors import BlenderUnavailable, CallCancelled, SourceGone, Stalled
from blender.records import Source
from blender.trainer.client import BlenderClient
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.blender.lakes import (
    CODE,
    PROSE,
    current_snapshot,
    load_table,
    make_lake,
    packed_rows,
    serving,
    tags,
    write_table,
)
from tests.blender.programs import eventually


def sources(*tables: str) -> list[Source]:
    return [Source(table=table, weight=1, oversample=True) for table in tables]


class Cancelled(CallContext):
    """Cancelled, or past its deadline, at the `checks`-th check."""

    def __init__(self, checks: int, *, late: bool) -> None:
        super().__init__()
        self.checks, self.late = checks, late

    def check(self) -> None:
        self.checks -= 1
        if self.checks == 0:
            self.set_timeout(0) if self.late else self.cancel(CallCancelled("The call has ended."))
        super().check()


@pytest.mark.invariant(
    "A definition that fails, times out or is cancelled leaves no tag and no record; a source costs as "
    "much among a thousand as alone."
)
@pytest.mark.parametrize("late", [False, True])
def test_a_call_cancelled_at_any_moment_leaves_nothing_behind(
    blends: Blends, lake: Settings, late: bool
) -> None:
    stopped, expected = 0, Stalled if late else CallCancelled
    while not blends.list():
        try:
            with use_context(Cancelled(stopped + 1, late=late)):
                stored = blends.create(sources(CODE, PROSE))
        except expected:
            assert (tags(lake, CODE), tags(lake, PROSE), blends.list()) == ({}, {}, [])
            stopped += 1
    assert stopped >= 8  # two sources pinned, opened, prepared and tagged
    assert list(tags(lake, CODE)) == [tag_name(stored.id, 0)]
    assert list(tags(lake, PROSE)) == [tag_name(stored.id, 1)]


def test_an_update_that_is_given_up_leaves_its_parent_as_it_was(blends: Blends, lake: Settings) -> None:
    parent = blends.create(sources(CODE))
    stopped = 0
    while len(blends.list()) < 2:
        try:
            with use_context(Cancelled(stopped + 1, late=False)):
                child = blends.update(parent.id, 3, {}, sources(PROSE))
        except CallCancelled:
            assert tags(lake, PROSE) == {}
            stopped += 1
    assert stopped >= 3
    blends.retire(parent.id)
    blends.retire(child.id)
    assert (tags(lake, CODE), tags(lake, PROSE)) == ({}, {})


def test_retiring_passes_over_an_update_that_never_came_to_be(blends: Blends, lake: Settings) -> None:
    parent = blends.create(sources(CODE))
    open_store(lake).hold("0" * 32, parent.id)
    blends.retire(parent.id)
    assert tags(lake, CODE) == {}


@pytest.mark.invariant(
    "A definition that fails, times out or is cancelled leaves no tag and no record; a source costs as "
    "much among a thousand as alone."
)
def test_a_failed_call_leaves_the_tags_of_an_equal_blend(blends: Blends, lake: Settings) -> None:
    """The first tags and fails; the second found its tags and puts the blend on record, before or after."""
    wanted = blends.considered(sources(CODE))
    pinned = [(0, CODE, wanted.sources[0].reader.snapshot_id)]
    keeper = SnapshotKeeper(Lake(lake), open_store(lake))

    def fail_after(meanwhile: Callable[[], object]) -> None:
        with keeper.keeping(wanted.id, pinned):
            meanwhile()
            raise Stalled("The time is over.")

    with pytest.raises(Stalled):
        fail_after(lambda: blends.create(sources(CODE)))
    assert list(tags(lake, CODE)) == [tag_name(wanted.id, 0)]
    blends.retire(wanted.id)

    with ExitStack() as second:
        with pytest.raises(Stalled):
            fail_after(lambda: second.enter_context(keeper.keeping(wanted.id, pinned)))
        assert tags(lake, CODE) == {}
    assert list(tags(lake, CODE)) == [tag_name(wanted.id, 0)]


def test_retiring_a_blend_drops_the_tags_of_all_sources(blends: Blends, lake: Settings) -> None:
    stored = blends.create([*sources(CODE), Source(table=CODE, name="again", weight=1)])
    table = load_table(lake, CODE)
    table.manage_snapshots().create_tag(stored.pins.snapshots[1], tag_name(stored.id, 1)).commit()
    assert blends.create([*sources(CODE), Source(table=CODE, name="again", weight=1)]).id == stored.id
    blends.retire(stored.id)
    assert tags(lake, CODE) == {}


def test_a_snapshot_that_expires_before_it_is_tagged_is_named(blends: Blends, lake: Settings) -> None:
    old = current_snapshot(lake)
    write_table(lake, CODE, packed_rows("code", 44))
    load_table(lake, CODE).maintenance.expire_snapshots().by_id(old).commit()
    keeper = SnapshotKeeper(Lake(lake), open_store(lake))
    pinned = [(0, PROSE, current_snapshot(lake, PROSE)), (1, CODE, old)]
    expected = pytest.raises(SourceGone, match=f"Snapshot {old} of table {CODE} expired before")
    with expected, keeper.keeping("0" * 32, pinned):
        raise AssertionError("it is not tagged")
    assert tags(lake, PROSE) == {}


def test_a_call_whose_deadline_passes_ends_and_leaves_no_tag(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", **{f"t{number}": 8 for number in range(24)})
    asked = [Source(f"packed.t{number}", weight=1) for number in range(24)]
    with serving(lake.home) as server:
        hurried = BlenderClient(server.address, timeout_s=0.2, patience_s=0)
        with hurried, pytest.raises(BlenderUnavailable):
            hurried.create(asked)
        assert eventually(lambda: not any(tags(lake, one.table) for one in asked))
        assert open_blends(lake).list() == []
        with BlenderClient(server.address) as blender:
            assert len(blender.create(asked).sources) == 24


@pytest.mark.invariant(
    "A definition that fails, times out or is cancelled leaves no tag and no record; a source costs as "
    "much among a thousand as alone."
)
def test_a_source_costs_no_more_among_many(tmp_path: Path) -> None:
    cost = {}
    for n in (200, 1_600):
        lake = make_lake(tmp_path / str(n), code=40)
        asked = [Source(table=CODE, name=f"s{number}", weight=1) for number in range(n)]
        blends = open_blends(lake)
        began = time.process_time()
        blends.create(asked)
        cost[n] = (time.process_time() - began) / n
        metadata = load_table(lake, CODE).metadata
        assert len(metadata.refs) == 2
    assert cost[1_600] < 3 * cost[200]
