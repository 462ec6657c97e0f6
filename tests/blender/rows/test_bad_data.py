"""Data that went bad under a blend: each way is an error of its own that names table and file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

from blender.catalog.blends import Blends, open_blends
from blender.errors import (
    BrokenBlend,
    CorruptPage,
    InvalidBlend,
    SourceGone,
    StoreUnavailable,
    UnsupportedPageLayout,
)
from blender.records import Source
from blender.rows.lake_pages import LakePages, reading
from blender.rows.snapshot_files import _kind
from blender.wire.status import to_status
from factory.lake.catalog import open_catalog
from factory.settings import Settings
from tests.blender.equality_deletes import delete_equal
from tests.blender.lakes import CODE, open_reader, packed_rows, store_settings, write_table
from tests.ports import free_ports


def data_file(lake: Settings) -> Path:
    """The one data file of `packed.code`."""
    (path,) = (lake.files.warehouse / "packed" / "code").rglob("*.parquet")
    return path


def overwrite(path: Path, begin: int, content: bytes) -> None:
    """Replace the bytes of a file from `begin` on."""
    with path.open("r+b") as file:
        file.seek(begin)
        file.write(content)


@pytest.mark.invariant(
    "Damaged data of a blend raises an error of its own class that names table and file. Blender rebuilds"
    " damaged or missing page indexes, and the log names the file."
)
def test_a_deleted_cache_of_indexes_is_made_again(lake: Settings) -> None:
    before = open_reader(lake).read(np.arange(40), ("tokens",))
    folder = lake.files.page_index
    kept = sorted(path for path in folder.rglob("*") if path.is_file())
    assert kept
    for path in kept:
        path.write_bytes(path.read_bytes()[:-9])
    assert open_reader(lake).read(np.arange(40), ("tokens",)) == before
    for path in kept:
        path.unlink()
    assert open_reader(lake).read(np.arange(40), ("tokens",)) == before


@pytest.mark.invariant(
    "Damaged data of a blend raises an error of its own class that names table and file. Blender rebuilds"
    " damaged or missing page indexes, and the log names the file."
)
def test_a_damaged_index_is_made_again_wherever_it_is_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Settings(home=tmp_path, cache=tmp_path)
    # Pages of different lengths, for which an index has entries.
    small = {"write.parquet.page-size-bytes": "64", "write.parquet.page-row-limit": "8"}
    two_files = [range(90), range(90, 400)]
    write_table(lake, CODE, packed_rows("code", 400), files=two_files, properties=small)
    before = open_reader(lake).read(np.arange(0, 400, 7), ("n_tokens", "chunk"))
    kept = sorted(path for path in lake.files.page_index.rglob("*") if path.is_file())
    for path in kept:
        whole = path.read_bytes()
        entries = len(whole) - 120  # where the file has any
        for at in (*range(0, len(whole), max(1, len(whole) // 12)), entries):
            caplog.clear()
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            assert open_reader(lake).read(np.arange(0, 400, 7), ("n_tokens", "chunk")) == before, (path, at)
            assert path.name in caplog.text or path.read_bytes() != whole, (path, at)
            path.write_bytes(whole)


def test_a_known_snapshot_needs_no_footers(lake: Settings) -> None:
    before = open_reader(lake).read(np.arange(40), ("tokens",))
    file = data_file(lake)
    overwrite(file, file.stat().st_size - 100, bytes(100))
    assert open_reader(lake).read(np.arange(40), ("tokens",)) == before


def test_ordinals_that_were_checked_are_not_read_again(lake: Settings) -> None:
    one = open_reader(lake)
    one.prepare(("tokens",))
    before = one.read(np.arange(40), ("tokens",))
    for begin, end in one.column("ordinal").groups[0].index.byte_ranges(0):
        overwrite(data_file(lake), begin, bytes(end - begin))
    assert open_reader(lake).read(np.arange(40), ("tokens",)) == before
    for record in lake.files.page_index.rglob("*ordinals*"):
        record.unlink()
    with pytest.raises(CorruptPage, match="column `ordinal`"):
        open_reader(lake).read(np.arange(40), ("tokens",))


@pytest.mark.invariant(
    "Damaged data of a blend raises an error of its own class that names table and file. Blender rebuilds"
    " damaged or missing page indexes, and the log names the file."
)
def test_a_damaged_page_is_named_with_its_file_and_column(lake: Settings) -> None:
    one = open_reader(lake)
    one.prepare(("tokens",))
    file = data_file(lake)
    begin, end = one.column("tokens").groups[0].index.byte_ranges(0)[0]
    overwrite(file, begin + 40, bytes(255 - byte for byte in file.read_bytes()[begin + 40 : end]))
    with pytest.raises(CorruptPage, match=rf"{file.name}, column `tokens`, row group 0, page 0"):
        open_reader(lake).read(np.arange(40), ("tokens",))


def test_a_file_cut_short_or_gone_is_named(lake: Settings) -> None:
    open_reader(lake).read(np.arange(40), ("tokens",))
    file = data_file(lake)
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(SourceGone, match=f"{file.name} has {len(content) - 1} bytes"):
        open_reader(lake).read(np.arange(40), ("tokens",))
    file.unlink()
    with pytest.raises(SourceGone, match=file.name):
        open_reader(lake).read(np.arange(40), ("tokens",))


@pytest.mark.parametrize("damage", ["a page", "the end", "all"])
@pytest.mark.parametrize("before", ["opened", "not opened"])
def test_a_restored_file_is_read_by_an_open_reader(lake: Settings, damage: str, before: str) -> None:
    one, columns = open_reader(lake, memory_bytes=1), ("tokens",)  # which keeps no page
    one.prepare(columns)
    begin, end = one.column("tokens").groups[0].index.byte_ranges(0)[0]
    file = data_file(lake)
    whole = file.read_bytes()
    backup = file.with_name("backup")
    backup.write_bytes(whole)
    rows = open_reader(lake).read(np.arange(40), columns)
    if before == "opened":
        assert one.read(np.arange(3), columns).num_rows == 3
    if damage == "a page":
        overwrite(file, begin + 40, bytes(255 - byte for byte in whole[begin + 40 : end]))
    elif damage == "the end":
        file.write_bytes(whole[: begin + 40])
    else:
        file.write_bytes(b"")
    with pytest.raises(SourceGone, match=file.name):
        one.read(np.arange(40), columns)
    backup.rename(file)  # another file under the same path, as tools that restore leave it
    assert one.read(np.arange(40), columns) == rows


def test_a_file_restored_before_the_next_read_is_not_reported(lake: Settings) -> None:
    one, columns = open_reader(lake, memory_bytes=1), ("tokens",)
    rows = one.read(np.arange(40), columns)
    file = data_file(lake)
    backup = file.with_name("backup")
    backup.write_bytes(file.read_bytes())
    file.write_bytes(b"")
    backup.rename(file)
    assert one.read(np.arange(40), columns) == rows


def test_a_table_dropped_or_created_again_under_a_blend_is_named(lake: Settings, blends: Blends) -> None:
    blend = blends.create([Source(table=CODE, weight=2)]).id
    catalog = open_catalog(lake)
    catalog.drop_table(CODE)
    with pytest.raises(Exception, match=r"packed\.code") as raised:
        open_blends(lake).open(blend)
    assert to_status(raised.value)[0].name == "FAILED_PRECONDITION"
    write_table(lake, CODE, packed_rows("other", 12))
    with pytest.raises(SourceGone, match="no longer has snapshot"):
        open_blends(lake).open(blend)


@pytest.mark.invariant("One broken record of a blend hides no other.")
def test_a_broken_blend_is_left_out_of_the_list(
    lake: Settings, blends: Blends, caplog: pytest.LogCaptureFixture
) -> None:
    kept = blends.create([Source(table=CODE, weight=2)]).id
    broken = blends.create([Source(table="packed.prose", weight=2)]).id
    (record,) = lake.home.rglob(f"{broken}.json")
    whole = record.read_bytes()
    other = whole.replace(b'"weight":2', b'"weight":3')
    assert other != whole
    for content in (b"", b"[]", b'{"format": 1, "sources"', b"\xff", b"[" * 100_000, other):
        record.write_bytes(content)
        afresh = open_blends(lake)
        assert [stored_blend.id for stored_blend in afresh.list()] == [kept]
        assert broken in caplog.text
        with pytest.raises(BrokenBlend, match=broken):
            afresh.get(broken)


def test_damaged_pins_are_named_and_unsummed_ones_read(lake: Settings, blends: Blends) -> None:
    blend = blends.create([Source(table=CODE, weight=2)])
    (pins,) = lake.home.rglob(f"{blend.id}.pins.json")
    whole = pins.read_bytes()
    year = whole.index(b'"created_at":"20') + len(b'"created_at":"20')
    pins.write_bytes(whole[:year] + bytes([whole[year] ^ 1]) + whole[year + 1 :])
    with pytest.raises(BrokenBlend, match=blend.id):
        open_blends(lake).get(blend.id)
    pins.write_text(blend.pins.model_dump_json())  # as pins were before they had a sum
    assert open_blends(lake).get(blend.id) == blend


def test_a_store_that_is_away_is_no_lost_source(tmp_path: Path) -> None:
    files = LakePages(store_settings(tmp_path, free_ports(1)[0]), 1).files
    with pytest.raises(StoreUnavailable, match="does not answer") as raised, reading("Table packed.code"):
        files.fetch([("s3://lake/warehouse/a.parquet", [(0, 10)])])
    assert to_status(raised.value)[0].name == "UNAVAILABLE"


@pytest.mark.parametrize(
    "content, kind, name",
    [
        (DataFileContent.EQUALITY_DELETES, FileFormat.PARQUET, "equality deletes"),
        (DataFileContent.POSITION_DELETES, FileFormat.PARQUET, "position deletes"),
        (DataFileContent.POSITION_DELETES, FileFormat.PUFFIN, "deletion vectors"),
    ],
)
def test_every_kind_of_deletes_has_its_name(content: DataFileContent, kind: FileFormat, name: str) -> None:
    assert _kind(DataFile.from_args(content=content, file_format=kind, file_path="x")) == name


def test_a_table_with_equality_deletes_is_refused_by_name(lake: Settings, blends: Blends) -> None:
    table = open_catalog(lake).load_table(CODE)
    path = lake.home / "deletes.parquet"
    delete_equal(table, "ordinal", pa.array([3, 7], pa.int64()), path)
    (entry,) = table.inspect.delete_files().to_pylist()
    assert (entry["content"], entry["file_path"]) == (2, path.as_uri())  # as another reader sees it
    with pytest.raises(InvalidBlend, match=r"Table packed\.code has equality deletes at snapshot") as raised:
        blends.create([Source(table=CODE, weight=1)])
    assert path.as_uri() in str(raised.value)
    assert blends.list() == []


def test_a_column_of_maps_is_refused_by_name(lake: Settings, blends: Blends) -> None:
    rows = packed_rows("code", 4)
    maps = pa.array([[("a", 1)]] * 4, type=pa.map_(pa.string(), pa.int64()))
    write_table(lake, "packed.maps", rows.append_column("facts", maps))
    with pytest.raises(InvalidBlend, match="`facts` holds maps"):
        open_reader(lake, "packed.maps").read(np.arange(4), ("facts",))
    with pytest.raises(InvalidBlend, match="`facts` holds maps"):
        blends.create([Source(table="packed.maps", weight=1, columns=("facts",))])
    assert blends.list() == []


def test_long_segments_from_pyiceberg_are_refused_with_a_remedy(lake: Settings, blends: Blends) -> None:
    small = {"write.parquet.page-size-bytes": "200", "write.parquet.page-row-limit": "8"}
    write_table(lake, "packed.pages", packed_rows("code", 100), row_group=100, properties=small)
    sentence = r"`segments\.list\.element\.length`: its pages do not have"
    with pytest.raises(UnsupportedPageLayout, match=sentence) as raised:
        blends.create([Source(table="packed.pages", weight=1)])
    assert "Table packed.pages at snapshot" in str(raised.value)
    assert "`rewrite_data_files`" in str(raised.value)
    assert blends.list() == []
    parent = blends.create([Source(table=CODE, weight=1)])
    with pytest.raises(UnsupportedPageLayout, match=sentence):
        blends.update(parent.id, 1, {}, [Source(table="packed.pages", weight=1)])
    assert blends.list() == [parent]
