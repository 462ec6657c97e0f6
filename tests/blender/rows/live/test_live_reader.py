"""Live sources: tables that grow under a blend, and tables that change as they must not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import grpc
import numpy as np
import pytest

from blender.call_context import CallContext
from blender.catalog.blends import Blends, open_blends
from blender.catalog.store import open_store
from blender.errors import InvalidBlend, SourceGone, Stalled
from blender.opened.blend import Blend
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.records import Schedule, Source
from blender.rows.live.live_progress import LiveProgress, hashes
from blender.spec.source import wellformed
from blender.spec.step_range import StepRange
from blender.trainer.client import BlenderClient
from blender.wire.status import to_error
from blender.wire.stubs import stub
from factory.explain.stages.serving import serving_positions
from factory.lake.catalog import open_catalog
from factory.settings import Settings
from tests.blender.lakes import (
    CODE,
    append_rows,
    current_snapshot,
    load_table,
    packed_rows,
    serving,
    write_table,
)

LIVE = "packed.live"
GONE = "may differ from the served ones. Only append to it"


@pytest.fixture
def growing(lake: Settings) -> Settings:
    """The lake with a table `packed.live` of 10 rows."""
    write_table(lake, LIVE, packed_rows("live", 10))
    return lake


def append(lake: Settings, first: int, end: int) -> None:
    """Append rows `first` to `end` - 1 to the live table."""
    append_rows(lake, LIVE, first, end)


def live(weight: int = 4, **fields: object) -> Source:
    return Source(table=LIVE, weight=weight, live=True, **fields)


def opened(blends: Blends, *sources: Source, seed: int = 7) -> Blend:
    return blends.open(blends.create(sources or [live()], seed=seed).id)


def ordinals(blend: Blend, steps: int, offset: int = 0, wait_s: float = 0.0) -> list[int]:
    blocks = blend.fetch(StepRange(offset, steps), call=CallContext(wait_s))
    return [row for block in blocks for row in block.batch.column("ordinal").to_pylist()]


def test_a_live_source_serves_its_ordinals_as_they_come(growing: Settings) -> None:
    blend = opened(open_blends(growing))
    assert blend.steps is None
    assert ordinals(blend, 2) == list(range(8))
    before = blend.step(1)
    append(growing, 10, 31)
    assert ordinals(blend, 7) == list(range(28))
    assert blend.step(1) == before
    assert blend.sources[0].reader.n_rows == 31
    assert ordinals(opened(open_blends(growing)), 7) == list(range(28))


def test_what_is_not_there_yet_is_named_with_what_is(growing: Settings) -> None:
    blend = opened(open_blends(growing))
    with pytest.raises(Stalled, match=r"Live source `packed\.live` has 10 rows at .* \d+, 12 were asked"):
        blend.step(2)
    with pytest.raises(Stalled, match="12 were asked for"):
        blend.explain(2)
    began = time.monotonic()
    with pytest.raises(Stalled, match="12 were asked for"):
        ordinals(blend, 5, wait_s=0.3)
    assert time.monotonic() - began >= 0.3


def test_steps_that_are_there_do_not_wait_for_those_that_are_not(growing: Settings) -> None:
    blend = opened(open_blends(growing))
    blocks = blend.fetch(StepRange(0, 100), call=CallContext(0))
    assert next(blocks).next_offset == 2
    with pytest.raises(Stalled):
        next(blocks)


def test_a_fetch_waits_until_rows_are_appended(growing: Settings) -> None:
    blend = opened(open_blends(growing))
    found: list[int] = []
    reading = threading.Thread(target=lambda: found.extend(ordinals(blend, 5, wait_s=60)))
    reading.start()
    for first in (10, 13, 16):
        append(growing, first, first + 3)
        assert reading.is_alive()
    append(growing, 19, 22)
    reading.join(60)
    assert found == list(range(20))


@pytest.mark.parametrize("seed", [1, 2])
def test_only_complete_windows_are_rows(growing: Settings, seed: int) -> None:
    windows = live(shuffle="window", window_rows=6)
    blend = opened(open_blends(growing), windows, seed=seed)
    with pytest.raises(Stalled, match="has 6 rows in complete windows of 6 at snapshot"):
        blend.step(1)
    first = ordinals(blend, 1)
    append(growing, 10, 25)
    later = ordinals(blend, 6)
    assert later[:4] == first
    for at in (0, 6, 12, 18):
        assert sorted(later[at : at + 6]) == list(range(at, at + 6))
    assert later != sorted(later)
    assert ordinals(opened(open_blends(growing), windows, seed=seed), 6) == later
    assert later != ordinals(opened(open_blends(growing), windows, seed=seed + 10), 6)


def test_a_live_source_mixes_with_a_fixed_one(growing: Settings) -> None:
    blends = open_blends(growing)
    schedule = Schedule(8, ((0, {CODE: 1}), (4, {LIVE: 1})))
    sources = [Source(table=CODE, oversample=True), live(0)]
    blend = blends.open(blends.create(sources, schedule=schedule).id)
    with pytest.raises(Stalled, match="has 10 rows"):
        blend.step(4)
    append(growing, 10, 100)
    batch = blend.step(6)
    assert batch.column("source").to_pylist() == [1] * 8
    served = blend.order.mixture.counts(np.array([blend.order.mixture.first_row(7)]))[0][1]
    assert batch.column("ordinal").to_pylist() == list(range(served - 8, served))


def test_a_row_has_its_position_before_it_exists(growing: Settings) -> None:
    blends = open_blends(growing)
    code = Source(table=CODE, weight=2, oversample=True)
    blend = opened(blends, live(shuffle="window", window_rows=6), code)
    positions = {ordinal: blend.order.locate(LIVE, ordinal) for ordinal in range(24)}
    append(growing, 10, 24)
    for offset in range(6):
        for number, row in enumerate(blend.step(offset).to_pylist()):
            if row["source"] == 0:
                assert [(position.offset, position.row) for position in positions[row["ordinal"]]] == [
                    (offset, number)
                ]
    assert {row.table for row in blend.explain(5)} == {LIVE, CODE}
    assert blend.explain(0)[0].segments[0].doc_id.startswith("live-")


def test_a_trace_follows_the_newest_rows_of_a_live_source(growing: Settings) -> None:
    blends = open_blends(growing)
    stored = blends.create([live()])
    append(growing, 10, 30)
    blend = open_blends(growing).open(stored.id)
    assert [source.reader.snapshot_id for source in blend.sources] == [current_snapshot(growing, LIVE)]
    found = serving_positions(blend, LIVE, [0, 29], 3)
    positions = {
        ordinal: [(position.offset, position.epoch) for position in found[ordinal]] for ordinal in found
    }
    assert positions == {0: [(0, 0)], 29: [(7, 0)]}


def test_the_id_of_a_live_source_is_its_tables_and_not_its_rows(growing: Settings) -> None:
    blends = open_blends(growing)
    stored = blends.create([live()])
    assert stored.config.sources[0].content == f"live-{load_table(growing, LIVE).metadata.table_uuid}"
    append(growing, 10, 30)
    again = open_blends(growing).create([live()])
    assert again.id == stored.id
    assert again.pins.snapshots == stored.pins.snapshots
    with pytest.raises(InvalidBlend, match=r"Live table packed\.live is live-.*, not live-x"):
        blends.create([live(content="live-x")])


def test_an_update_continues_its_parent_s_live_source(growing: Settings) -> None:
    blends = open_blends(growing)
    parent = blends.create([live()])
    child = blends.update(parent.id, 2, {LIVE: 1})
    append(growing, 10, 30)
    for updated in (blends.open(child.id), open_blends(growing).open(child.id)):
        assert ordinals(updated, 5) == list(range(11))
    blends.retire(parent.id)
    grandchild = blends.update(parent.id, 1, {LIVE: 2})
    assert ordinals(open_blends(growing).open(grandchild.id), 5) == list(range(12))


def overwrite(lake: Settings) -> None:
    write_table(lake, LIVE, packed_rows("other", 40))


def delete(lake: Settings) -> None:
    load_table(lake, LIVE).delete("ordinal >= 5")


def append_twice(lake: Settings) -> None:
    append(lake, 5, 12)


def roll_back(lake: Settings) -> None:
    table = load_table(lake, LIVE)
    first = table.history()[0].snapshot_id
    table.manage_snapshots().set_current_snapshot(first).commit()
    append(lake, 10, 40)


def make_anew(lake: Settings) -> None:
    open_catalog(lake).drop_table(LIVE)
    write_table(lake, LIVE, packed_rows("live", 40))


@pytest.mark.invariant("A live source always serves the same row for an ordinal, or an error.")
@pytest.mark.parametrize(
    "change, sentence",
    [
        (overwrite, GONE),
        (delete, rf"its table went through `(delete|overwrite)` at snapshot \d+, so its rows {GONE}"),
        (append_twice, "ordinal 5 is there twice"),
        (roll_back, f"has other files than at snapshot .* {GONE}"),
        (make_anew, r"table packed\.live was dropped and created again"),
    ],
)
def test_other_rows_under_an_ordinal_are_never_served(
    growing: Settings, change: object, sentence: str
) -> None:
    blends = open_blends(growing)
    append(growing, 10, 12)
    stored = blends.create([live()])
    blend = blends.open(stored.id)
    assert ordinals(blend, 3) == list(range(12))
    change(growing)
    for ask in (lambda: blend.step(3), lambda: open_blends(growing).open(stored.id)):
        with pytest.raises((SourceGone, InvalidBlend), match=sentence):
            ask()


def test_a_blend_made_again_after_an_overwrite_is_still_refused(growing: Settings) -> None:
    blends = open_blends(growing)
    blends.create([live()], seed=1)
    overwrite(growing)
    with pytest.raises(SourceGone, match=GONE):
        open_blends(growing).create([live()], seed=1)
    assert ordinals(opened(open_blends(growing), seed=2), 9) == list(range(36))


def expire(lake: Settings) -> None:
    """Expire all snapshots of the live table but the newest and those with a tag."""
    table = load_table(lake, LIVE)
    old = [
        snapshot.snapshot_id for snapshot in sorted(table.snapshots(), key=lambda it: it.sequence_number or 0)
    ]
    tagged = {ref.snapshot_id for ref in table.refs().values()}
    ids = [snapshot_id for snapshot_id in old[:-1] if snapshot_id not in tagged]
    assert ids
    table.maintenance.expire_snapshots().by_ids(ids).commit()


def test_expired_appends_are_known_by_their_files(growing: Settings) -> None:
    blends = open_blends(growing)
    stored = blends.create([live()])
    blend = blends.open(stored.id)
    for first in (10, 20, 30):
        append(growing, first, first + 10)
    expire(growing)
    assert ordinals(blend, 10) == list(range(40))
    assert ordinals(open_blends(growing).open(stored.id), 10) == list(range(40))


def test_a_history_that_has_expired_over_an_overwrite_is_refused(growing: Settings) -> None:
    blends = open_blends(growing)
    stored = blends.create([live()])
    overwrite(growing)
    append(growing, 40, 50)
    append(growing, 50, 60)
    expire(growing)
    for ask in (lambda: blends.open(stored.id).step(3), lambda: open_blends(growing).open(stored.id)):
        with pytest.raises(SourceGone, match=r"has other files than at snapshot .* no appends"):
            ask()


def read_beyond_the_tag(growing: Settings) -> str:
    """A blend that was read up to a snapshot that nothing keeps; appends follow."""
    blends = open_blends(growing)
    stored = blends.create([live()])
    append(growing, 10, 20)
    assert ordinals(blends.open(stored.id), 5) == list(range(20))
    append(growing, 20, 30)
    return stored.id


def test_rows_of_an_expired_snapshot_are_known_by_their_files(growing: Settings) -> None:
    blend = read_beyond_the_tag(growing)
    append(growing, 30, 40)
    expire(growing)
    assert ordinals(open_blends(growing).open(blend), 10) == list(range(40))


def test_files_rewritten_by_an_expired_snapshot_are_refused(growing: Settings) -> None:
    blend = read_beyond_the_tag(growing)
    load_table(growing, LIVE).overwrite(packed_rows("live", 30))
    append(growing, 30, 40)
    expire(growing)
    with pytest.raises(SourceGone, match=r"has other files than at snapshot \d+, from which no appends"):
        open_blends(growing).open(blend)


def test_rows_seen_by_a_blender_that_kept_no_files_are_not_guessed(growing: Settings) -> None:
    blend = read_beyond_the_tag(growing)
    (record,) = (growing.files.warehouse / "blends").rglob("*.*.progress")
    rows, _, snapshot = record.name.removesuffix(".progress").split(".")
    (record.parent / f"{rows}.{snapshot}.progress").write_bytes(b"")
    record.unlink()
    assert ordinals(open_blends(growing).open(blend), 5) == list(range(20))
    for left in record.parent.iterdir():
        left.unlink()
    (record.parent / f"{rows}.{snapshot}.progress").write_bytes(b"")
    append(growing, 30, 40)
    expire(growing)
    with pytest.raises(SourceGone, match=r"lost snapshot \d+ and what happened since"):
        open_blends(growing).open(blend)


def test_of_equal_rows_the_later_snapshot_wins(growing: Settings) -> None:
    store = open_store(growing)
    before, after = LiveProgress(10, 1, 900, hashes(["a", "b"])), LiveProgress(10, 2, 7, hashes(["c"]))
    for order in ([before, after], [after, before]):
        for one in order:
            store.record_progress(f"tag-{order[0].sequence}", one)
        found = store.progress(f"tag-{order[0].sequence}")
        assert (found, found and found.files) == (after, after.files)
    assert store.progress("none") is None


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"oversample": True}, "is live and has no end. Leave out `oversample`"),
        ({"shuffle": "row"}, "is live, and shuffle `row` needs all rows. Use `none`, or `window`"),
        ({"shuffle": "page", "page_rows": 4}, "shuffle `page` needs all rows"),
        ({"tag": "x"}, "is live and follows the published main. Name no other"),
        ({"shuffle": "window"}, "Shuffle `window` needs `window_rows`, at least 1"),
        ({"window_rows": 4}, "Shuffle `none` takes no `window_rows`"),
    ],
)
def test_a_live_source_that_cannot_be_is_refused_with_a_sentence(
    fields: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InvalidBlend, match=sentence):
        wellformed(live(**fields))


def test_a_frozen_source_has_windows_too_and_the_last_may_be_short(blends: Blends) -> None:
    source = Source(table=CODE, weight=4, shuffle="window", window_rows=16, oversample=True)
    blend = opened(blends, source)
    rows = ordinals(blend, 20)
    for epoch in (rows[:40], rows[40:]):
        assert [sorted(epoch[begin : begin + 16]) for begin in (0, 16, 32)] == [
            list(range(16)),
            list(range(16, 32)),
            list(range(32, 40)),
        ]
    assert rows[:40] != rows[40:]


@pytest.fixture
def client(growing: Settings) -> Iterator[BlenderClient]:
    # `wait-s` is the time of calls without a deadline; those of this client have one.
    with serving(growing.home, "--wait-s", "0.5") as server, BlenderClient(server.address) as blender:
        yield blender


def test_a_client_waits_for_rows_and_learns_what_is_missing(growing: Settings, client: BlenderClient) -> None:
    stored = client.create([Source(LIVE, 4, live=True, shuffle="window", window_rows=4)], seed=3)
    assert (stored.sources[0].live, stored.sources[0].window_rows) == (True, 4)
    batches = client.fetch(stored.id)
    first = [next(batches).ordinal.tolist() for _ in range(2)]
    assert sorted(first[0] + first[1]) == list(range(8))
    threading.Timer(1.0, append, (growing, 10, 30)).start()
    later = [next(batches).ordinal.tolist() for _ in range(5)]
    assert sorted(ordinal for step in later for ordinal in step) == list(range(8, 28))
    batches.close()
    described = client.describe(stored.id)
    assert (described.sources[0].source.live, described.sources[0].rows, described.steps) == (True, 28, None)
    with grpc.insecure_channel(client.address) as channel, pytest.raises(grpc.RpcError) as raised:
        list(stub(channel, "BlendData").Fetch(pb.FetchRequest(blend=stored.id, offset=7)))
    error = to_error(raised.value, client.address)
    assert isinstance(error, Stalled)
    assert "Live source `packed.live` has 28 rows in complete windows of 4" in str(error)
    with pytest.raises(Stalled, match="32 were asked for"):
        client.explain(stored.id, 7)
