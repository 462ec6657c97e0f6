"""Blends on record: content-addressed, pinned, tagged, retired."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from blender.catalog.blends import Blends, open_blends
from blender.catalog.store import open_store
from blender.errors import BlendNotFound, InvalidBlend, SourceGone
from blender.records import Source
from factory.errors import DamagedFile, TableNotFound
from factory.lake.catalog import open_catalog
from factory.settings import Settings
from tests.blender.lakes import (
    CODE,
    PROSE,
    current_snapshot,
    load_table,
    make_lake,
    packed_rows,
    tags,
    write_table,
)


def source(table: str = CODE, weight: int = 1, **fields: object) -> Source:
    return Source(table=table, weight=weight, **fields)


def test_equal_definitions_are_one_blend_in_any_lake(blends: Blends, tmp_path: Path) -> None:
    first = blends.create([source(), source(PROSE, 2)], seed=1)
    assert blends.create([source(), source(PROSE, 2)], seed=1).id == first.id
    elsewhere = open_blends(make_lake(tmp_path / "elsewhere", prose=300, code=40))
    again = elsewhere.create([source(), source(PROSE, 2)], seed=1)
    assert again.id == first.id
    assert again.pins.snapshots != first.pins.snapshots
    assert len(blends.list()) == 1


def test_a_blend_made_again_keeps_the_time_of_its_creation(blends: Blends) -> None:
    first = blends.create([source()])
    update = blends.update(first.id, 5, {CODE: 2})
    time.sleep(0.002)  # their times have milliseconds
    assert blends.create([source()]).pins.created_at == first.pins.created_at
    assert blends.update(first.id, 5, {CODE: 2}).pins.created_at == update.pins.created_at


def test_the_file_of_a_blend_is_never_replaced(blends: Blends, lake: Settings) -> None:
    stored = blends.create([source()])
    path = lake.files.warehouse / "blends" / f"{stored.id}.json"
    before = path.stat()
    assert json.loads(path.read_bytes())["sources"][0]["content"] == stored.config.sources[0].content
    blends.create([source()])
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino


def test_a_blend_tags_its_snapshots_until_it_is_retired(blends: Blends, lake: Settings) -> None:
    stored = blends.create([source()])
    assert tags(lake) == {f"blend_{stored.id}_0": stored.pins.snapshots[0]}
    assert blends.retire(stored.id).pins.retired
    assert tags(lake) == {}
    assert blends.list() == []
    assert [stored_blend.id for stored_blend in blends.list(with_retired=True)] == [stored.id]
    assert blends.create([source()]).pins.retired is False
    assert list(tags(lake)) == [f"blend_{stored.id}_0"]


def test_a_table_has_one_tag_for_each_snapshot_that_a_blend_reads(blends: Blends, lake: Settings) -> None:
    old = current_snapshot(lake)
    write_table(lake, CODE, packed_rows("code", 44))
    before = len(load_table(lake, CODE).metadata.metadata_log)
    of_old = [source(name=f"old{number}", snapshot=old) for number in range(3)]
    stored = blends.create([*(source(name=f"s{number}") for number in range(5)), *of_old])
    table = load_table(lake, CODE)
    assert tags(lake) == {f"blend_{stored.id}_0": stored.pins.snapshots[0], f"blend_{stored.id}_5": old}
    assert len(table.metadata.metadata_log) == before + 1
    blends.retire(stored.id)
    assert tags(lake) == {}
    assert len(load_table(lake, CODE).metadata.metadata_log) == before + 2


def test_a_blend_that_was_opened_before_loads_no_table(blends: Blends, lake: Settings) -> None:
    stored = blends.create([source(), source(PROSE, 2)])
    before = blends.open(stored.id).step(5)
    write_table(lake, PROSE, packed_rows("other", 8))  # from here on other metadata, which was not seen
    open_blends(lake).open(stored.id)
    for table in (CODE, PROSE):
        Path(load_table(lake, table).metadata_location.removeprefix("file://")).write_text("-")
    assert open_blends(lake).open(stored.id).step(5) == before
    for facts in lake.files.page_index.rglob("*.facts"):
        facts.write_bytes(facts.read_bytes()[:-1])
    with pytest.raises(DamagedFile, match=r"metadata\.json"):
        open_blends(lake).open(stored.id)


def test_many_sources_are_opened_from_one_file(blends: Blends, lake: Settings) -> None:
    named = [source((CODE, PROSE)[number % 2], name=f"s{number}", oversample=True) for number in range(16)]
    blend = blends.create(named).id
    rows = blends.open(blend).step(3)
    (copies,) = (lake.files.page_index / "blends").iterdir()
    shutil.rmtree(lake.files.page_index / "snapshots")
    assert open_blends(lake).open(blend).step(3).equals(rows)
    assert not (lake.files.page_index / "snapshots").exists()
    copies.write_bytes(copies.read_bytes()[:-1])
    assert open_blends(lake).open(blend).step(3).equals(rows)
    assert (lake.files.page_index / "snapshots").exists()


def test_copies_are_kept_anew_once_a_table_was_committed_to(blends: Blends, lake: Settings) -> None:
    named = [source(name=f"s{number}", oversample=True) for number in range(16)]
    blend = blends.create(named).id
    (copies,) = (lake.files.page_index / "blends").iterdir()
    before = copies.read_bytes()
    blends.create([source()], seed=2)  # tags the table
    assert open_blends(lake).open(blend).step(0).equals(blends.open(blend).step(0))
    assert copies.read_bytes() != before
    assert len(list(lake.files.page_index.rglob("*.facts"))) == 1  # those of the commit before are gone
    after = copies.stat().st_mtime_ns
    open_blends(lake).open(blend)
    assert copies.stat().st_mtime_ns == after


def test_retiring_a_parent_leaves_its_update_whole(blends: Blends, lake: Settings) -> None:
    parent = blends.create([source()])
    child = blends.update(parent.id, 3, {CODE: 2})
    blends.retire(parent.id)
    assert list(tags(lake)) == [f"blend_{parent.id}_0"]
    assert open_blends(lake).open(child.id).step(3).num_rows == 2
    blends.retire(child.id)
    assert tags(lake) == {}


def test_an_update_of_a_retired_blend_keeps_the_snapshots_itself(blends: Blends, lake: Settings) -> None:
    parent = blends.create([source()])
    blends.retire(parent.id)
    child = blends.update(parent.id, 3, {CODE: 2})
    assert list(tags(lake)) == [f"blend_{child.id}_0"]
    grandchild = blends.update(child.id, 5, {CODE: 1}, [source(PROSE)])
    assert list(tags(lake, PROSE)) == [f"blend_{grandchild.id}_1"]
    blends.retire(child.id)
    assert list(tags(lake)) == [f"blend_{child.id}_0"]
    blends.retire(grandchild.id)
    assert (tags(lake), tags(lake, PROSE)) == ({}, {})


def test_of_two_updates_the_one_that_is_left_keeps_the_tags(blends: Blends, lake: Settings) -> None:
    parent = blends.create([source()])
    one, other = (blends.update(parent.id, 3, {CODE: weight}) for weight in (2, 4))
    for retired in (one, parent):
        blends.retire(retired.id)
        assert list(tags(lake)) == [f"blend_{parent.id}_0"]
    assert [stored_blend.id for stored_blend in blends.list()] == [other.id]
    assert blends.create([source()]).id == parent.id  # revived: its tags are there already
    blends.retire(other.id)
    assert list(tags(lake)) == [f"blend_{parent.id}_0"]


@pytest.mark.invariant(
    "A blend serves its pinned content or an error: never a newer table, never other content."
)
def test_a_blend_serves_its_snapshot_after_the_table_was_replaced(blends: Blends, lake: Settings) -> None:
    stored = blends.create([source()])
    before = blends.open(stored.id).step(5)
    write_table(lake, CODE, packed_rows("other", 8))
    assert open_blends(lake).open(stored.id).step(5) == before
    assert blends.create([source()]).id != stored.id


def test_equal_content_is_found_where_the_pinned_snapshot_is_gone(blends: Blends, lake: Settings) -> None:
    stored = blends.create([source()])
    before = blends.open(stored.id).step(5)
    open_catalog(lake).drop_table(CODE)
    write_table(lake, CODE, packed_rows("code", 40), row_group=5)
    assert open_blends(lake).open(stored.id).step(5) == before


@pytest.mark.invariant(
    "A blend serves its pinned content or an error: never a newer table, never other content."
)
def test_a_table_with_other_content_is_never_served_instead(blends: Blends, lake: Settings) -> None:
    stored = blends.create([source()])
    open_catalog(lake).drop_table(CODE)
    with pytest.raises(TableNotFound, match=r"no table packed\.code"):
        open_blends(lake).open(stored.id)
    write_table(lake, CODE, packed_rows("other", 40))
    with pytest.raises(SourceGone, match="no longer has snapshot"):
        open_blends(lake).open(stored.id)


def test_a_source_is_read_at_the_snapshot_tag_or_branch_it_names(blends: Blends, lake: Settings) -> None:
    old = current_snapshot(lake)
    load_table(lake, CODE).manage_snapshots().create_tag(old, "v1").create_branch(old, "trial").commit()
    write_table(lake, CODE, packed_rows("other", 8))
    main = blends.create([source()])
    named = [
        blends.create([source(**pin)]) for pin in ({"snapshot": old}, {"tag": "v1"}, {"branch": "trial"})
    ]
    assert {stored_blend.pins.snapshots for stored_blend in named} == {(old,)}
    assert len({stored_blend.id for stored_blend in named}) == 1
    assert main.id != named[0].id


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"snapshot": 77}, r"has no snapshot 77\. Name one of: main"),
        ({"tag": "x"}, "has no tag `x`"),
        ({"branch": "x"}, "has no branch `x`"),
        ({"content": "beef-1"}, "not beef-1"),
        ({"columns": ("text",)}, "has no column `text`"),
    ],
)
def test_what_a_source_asks_for_and_the_table_lacks_is_refused(
    blends: Blends, lake: Settings, fields: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InvalidBlend, match=sentence):
        blends.create([source(**fields)])
    assert tags(lake) == {}
    assert blends.list() == []


def test_a_source_without_rows_is_refused(blends: Blends, lake: Settings) -> None:
    write_table(lake, "packed.empty", packed_rows("empty", 1).slice(0, 0))
    with pytest.raises(InvalidBlend, match=r"`packed\.empty` has no rows"):
        blends.create([source("packed.empty", oversample=True)])
    assert blends.create([source(), source("packed.empty", weight=0)]).id


def test_a_snapshot_without_fingerprint_is_refused(blends: Blends, lake: Settings) -> None:
    load_table(lake, CODE).append(packed_rows("code", 41).slice(40))
    with pytest.raises(InvalidBlend, match="no content fingerprint"):
        blends.create([source()])


@pytest.mark.parametrize("blend", ["", "x", "../" * 10, "0" * 32])
def test_an_unknown_blend_is_not_found(blends: Blends, blend: str) -> None:
    for ask in (blends.get, blends.open, blends.retire):
        with pytest.raises(BlendNotFound):
            ask(blend)


def test_the_beginning_of_an_id_is_answered_with_the_whole_one(blends: Blends) -> None:
    first, second = (blends.create([source()], seed=seed).id for seed in (1, 2))
    for part in (first[:8], first.upper(), first[:31]):
        with pytest.raises(BlendNotFound, match=f"`{part}` is not a whole blend id. Did you mean `{first}`?"):
            blends.get(part)
    assert first[:4] != second[:4]
    with pytest.raises(BlendNotFound, match="Malformed blend id"):
        blends.get("no-id")


def test_a_misspelled_table_is_answered_with_the_nearest(blends: Blends, lake: Settings) -> None:
    write_table(lake, "raw.notes", packed_rows("notes", 4).drop_columns(["ordinal"]))
    for make in (blends.create, blends.considered):
        with pytest.raises(TableNotFound, match=r"no table `packed\.cod`\. Did you mean `packed\.code`\?"):
            make([source("packed.cod")])
        with pytest.raises(InvalidBlend, match=r"no table `code`\. Did you mean `packed\.code`\?"):
            make([source("code")])
        with pytest.raises(TableNotFound, match=r"not packed yet\. Run `factory materialize packed\.notes`"):
            make([source("packed.notes")])
        with pytest.raises(InvalidBlend, match=r"`raw\.notes` is not packed, .* materialize packed\.notes`"):
            make([source("raw.notes")])


def test_many_updates_in_a_row_stay_one_blend(blends: Blends, lake: Settings) -> None:
    stored = blends.create([source(oversample=True), source(PROSE, oversample=True)])
    first = stored.id
    for number in range(1, 300):
        stored = blends.update(stored.id, number, {CODE: number % 5, PROSE: 1 + number % 3})
    assert list(tags(lake)) == [f"blend_{first}_0"]
    as_made = blends.open(stored.id)
    blend = open_blends(lake).open(stored.id)
    assert blend.order.mixture.starts == as_made.order.mixture.starts == tuple(range(300))
    assert blend.step(37).num_rows == 2 + 2
    assert [blend.step(offset) for offset in (0, 127, 128, 299)] == [
        as_made.step(offset) for offset in (0, 127, 128, 299)
    ]


def test_a_missing_history_block_is_read_from_the_configs(blends: Blends, lake: Settings) -> None:
    stored = blends.create([source(oversample=True), source(PROSE, oversample=True)])
    for number in range(1, 260):  # one of them takes back what twenty before it planned
        offset = number if number != 140 else 120
        stored = blends.update(stored.id, offset, {CODE: 1 + number % 5, PROSE: 1})
    history = sorted((lake.files.warehouse / "blends").glob("*.history.json"))
    assert len(history) == 2
    planned = [piece.weights for _, piece in open_blends(lake).open(stored.id).order.mixture.pieces()]
    for block in history:
        block.unlink()
    again = open_blends(lake).open(stored.id).order.mixture
    assert [piece.weights for _, piece in again.pieces()] == planned
    assert again.starts == (*range(121), *range(141, 260))


def test_a_pin_on_other_content_is_not_believed(blends: Blends, lake: Settings) -> None:
    stored = blends.create([source()])
    before = blends.open(stored.id).step(5)
    write_table(lake, CODE, packed_rows("other", 40))
    wrong = current_snapshot(lake)
    open_store(lake).put_pins(stored.id, stored.pins.model_copy(update={"snapshots": (wrong,)}))
    reopened = open_blends(lake).open(stored.id)
    assert reopened.sources[0].reader.snapshot_id == stored.pins.snapshots[0]
    assert reopened.step(5) == before
