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
from blender.protocol.status import to_status
from blender.records import Source
from blender.rows.lake_pages import LakePages, reading
from blender.rows.snapshot_files import _kind
from blender.rows.sources import SnapshotReader
from factory.lake.catalog import open_catalog
from factory.settings import Settings
from tests.blender.equality_deletes import delete_equal
from tests.blender.lakes import packed_rows, write_table
from tests.ports import free_ports


def opened(settings: Settings, budget: int = 1 << 20) -> SnapshotReader:
    """A reader of `packed.code` with nothing in memory."""
    table = open_catalog(settings).load_table("packed.code")
    return SnapshotReader.at(table, table.current_snapshot().snapshot_id, LakePages(settings, budget))


def data_file(lake: Settings) -> Path:
    """The one data file of `packed.code`."""
    (found,) = (lake.files.warehouse / "packed" / "code").rglob("*.parquet")
    return found


def test_a_deleted_cache_of_indexes_is_made_again(lake: Settings) -> None:
    before = opened(lake).read(np.arange(40), ("tokens",))
    folder = lake.files.page_index
    kept = sorted(path for path in folder.rglob("*") if path.is_file())
    assert kept
    for path in kept:
        path.write_bytes(path.read_bytes()[:-9])
    assert opened(lake).read(np.arange(40), ("tokens",)) == before
    for path in kept:
        path.unlink()
    assert opened(lake).read(np.arange(40), ("tokens",)) == before


def test_a_damaged_index_is_made_again_wherever_it_is_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(home=tmp_path, cache=tmp_path)
    small = {
        "write.parquet.page-size-bytes": "64",
        "write.parquet.page-row-limit": "8",
    }  # pages of other lengths, which an index has entries for
    write_table(
        settings, "packed.code", packed_rows("code", 400), files=[range(90), range(90, 400)], properties=small
    )
    before = opened(settings).read(np.arange(0, 400, 7), ("n_tokens", "chunk"))
    kept = sorted(path for path in (settings.files.page_index).rglob("*") if path.is_file())
    for path in kept:
        whole = path.read_bytes()
        for at in (
            *range(0, len(whole), max(1, len(whole) // 12)),
            len(whole) - 120,
        ):  # entries, where it has any
            caplog.clear()
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            assert opened(settings).read(np.arange(0, 400, 7), ("n_tokens", "chunk")) == before, (path, at)
            assert path.name in caplog.text or path.read_bytes() != whole, (path, at)
            path.write_bytes(whole)


def test_a_known_snapshot_needs_no_footers(lake: Settings) -> None:
    before = opened(lake).read(np.arange(40), ("tokens",))
    file = data_file(lake)
    content = bytearray(file.read_bytes())
    content[-100:] = bytes(100)
    file.write_bytes(content)
    assert opened(lake).read(np.arange(40), ("tokens",)) == before


def test_ordinals_that_were_checked_are_not_read_again(lake: Settings) -> None:
    one = opened(lake)
    one.prepare(("tokens",))
    before = one.read(np.arange(40), ("tokens",))
    pages, file = one.column("ordinal").groups[0].index, data_file(lake)
    content = bytearray(file.read_bytes())
    for begin, end in pages.byte_ranges(0):
        content[begin:end] = bytes(end - begin)
    file.write_bytes(content)
    assert opened(lake).read(np.arange(40), ("tokens",)) == before
    for record in (lake.files.page_index).rglob("*ordinals*"):
        record.unlink()
    with pytest.raises(CorruptPage, match="column `ordinal`"):
        opened(lake).read(np.arange(40), ("tokens",))


def test_a_damaged_page_is_told_with_its_file_column_and_page(lake: Settings) -> None:
    one = opened(lake)
    one.prepare(("tokens",))
    file = data_file(lake)
    begin, end = one.column("tokens").groups[0].index.byte_ranges(0)[0]
    content = bytearray(file.read_bytes())
    content[begin + 40 : end] = bytes(255 - byte for byte in content[begin + 40 : end])
    file.write_bytes(content)
    with pytest.raises(CorruptPage, match=rf"{file.name}, column `tokens`, row group 0, page 0"):
        opened(lake).read(np.arange(40), ("tokens",))


def test_a_file_cut_short_or_gone_is_named(lake: Settings) -> None:
    opened(lake).read(np.arange(40), ("tokens",))
    file = data_file(lake)
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(SourceGone, match=f"{file.name} has {len(content) - 1} bytes"):
        opened(lake).read(np.arange(40), ("tokens",))
    file.unlink()
    with pytest.raises(SourceGone, match=file.name):
        opened(lake).read(np.arange(40), ("tokens",))


def test_a_table_dropped_or_made_anew_under_a_blend_is_told(lake: Settings, blends: Blends) -> None:
    blend = blends.create([Source(table="packed.code", weight=2)]).id
    catalog = open_catalog(lake)
    catalog.drop_table("packed.code")
    with pytest.raises(Exception, match=r"packed\.code") as told:
        open_blends(lake).open(blend)
    assert to_status(told.value)[0].name == "FAILED_PRECONDITION"  # type: ignore[arg-type]
    write_table(lake, "packed.code", packed_rows("other", 12))
    with pytest.raises(SourceGone, match="no longer has snapshot"):
        open_blends(lake).open(blend)


def test_a_broken_blend_is_left_out_of_the_list(
    lake: Settings, blends: Blends, caplog: pytest.LogCaptureFixture
) -> None:
    kept = blends.create([Source(table="packed.code", weight=2)]).id
    broken = blends.create([Source(table="packed.prose", weight=2)]).id
    (record,) = lake.home.rglob(f"{broken}.json")
    whole = record.read_bytes()
    other = whole.replace(b'"weight":2', b'"weight":3')
    assert other != whole
    for content in (b"", b"[]", b'{"format": 1, "sources"', b"\xff", b"[" * 100_000, other):
        record.write_bytes(content)
        afresh = open_blends(lake)
        assert [one.id for one in afresh.list()] == [kept]
        assert broken in caplog.text
        with pytest.raises(BrokenBlend, match=broken):
            afresh.get(broken)


def test_damaged_pins_are_named_and_unsummed_ones_read(lake: Settings, blends: Blends) -> None:
    blend = blends.create([Source(table="packed.code", weight=2)])
    (pins,) = lake.home.rglob(f"{blend.id}.pins.json")
    whole = pins.read_bytes()
    year = whole.index(b'"created_at":"20') + len(b'"created_at":"20')
    pins.write_bytes(whole[:year] + bytes([whole[year] ^ 1]) + whole[year + 1 :])
    with pytest.raises(BrokenBlend, match=blend.id):
        open_blends(lake).get(blend.id)
    pins.write_text(blend.pins.model_dump_json())  # as pins were before they had a sum
    assert open_blends(lake).get(blend.id) == blend


def test_a_store_that_is_away_is_no_lost_source(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        cache=tmp_path,
        warehouse="s3://nowhere/lake",
        s3_endpoint=f"http://127.0.0.1:{free_ports(1)[0]}",
        s3_access_key_id="key",
        s3_secret_access_key="secret",
    )
    files = LakePages(settings, 1).files
    with pytest.raises(StoreUnavailable, match="does not answer") as told, reading("Table packed.code"):
        files.fetch([("s3://nowhere/lake/a.parquet", [(0, 10)])])
    assert to_status(told.value)[0].name == "UNAVAILABLE"


@pytest.mark.parametrize(
    "content, kind, said",
    [
        (DataFileContent.EQUALITY_DELETES, FileFormat.PARQUET, "equality deletes"),
        (DataFileContent.POSITION_DELETES, FileFormat.PARQUET, "position deletes"),
        (DataFileContent.POSITION_DELETES, FileFormat.PUFFIN, "deletion vectors"),
    ],
)
def test_every_kind_of_deletes_has_its_name(content: DataFileContent, kind: FileFormat, said: str) -> None:
    assert _kind(DataFile.from_args(content=content, file_format=kind, file_path="x")) == said


def test_a_table_with_equality_deletes_is_refused_by_name(lake: Settings, blends: Blends) -> None:
    table = open_catalog(lake).load_table("packed.code")
    path = lake.home / "deletes.parquet"
    delete_equal(table, "ordinal", pa.array([3, 7], pa.int64()), path)
    (entry,) = table.inspect.delete_files().to_pylist()
    assert (entry["content"], entry["file_path"]) == (2, path.as_uri())  # as another reader sees it
    with pytest.raises(InvalidBlend, match=r"Table packed\.code has equality deletes at snapshot") as told:
        blends.create([Source(table="packed.code", weight=1)])
    assert path.as_uri() in str(told.value)
    assert blends.list() == []


def test_a_column_of_maps_is_refused_by_name(lake: Settings, blends: Blends) -> None:
    rows = packed_rows("code", 4)
    maps = pa.array([[("a", 1)]] * 4, type=pa.map_(pa.string(), pa.int64()))
    write_table(lake, "packed.maps", rows.append_column("facts", maps))
    table = open_catalog(lake).load_table("packed.maps")
    one = SnapshotReader.at(table, table.current_snapshot().snapshot_id, LakePages(lake, 1))
    with pytest.raises(InvalidBlend, match="`facts` holds maps"):
        one.read(np.arange(4), ("facts",))
    with pytest.raises(InvalidBlend, match="`facts` holds maps"):
        blends.create([Source(table="packed.maps", weight=1, columns=("facts",))])
    assert blends.list() == []


def test_long_segments_from_pyiceberg_are_refused_with_a_remedy(lake: Settings, blends: Blends) -> None:
    small = {"write.parquet.page-size-bytes": "200", "write.parquet.page-row-limit": "8"}
    write_table(lake, "packed.pages", packed_rows("code", 100), row_group=100, properties=small)
    with pytest.raises(
        UnsupportedPageLayout, match=r"`segments\.list\.element\.length`: its pages do not have"
    ) as told:
        blends.create([Source(table="packed.pages", weight=1)])
    assert "Table packed.pages at snapshot" in str(told.value)
    assert "`rewrite_data_files`" in str(told.value)
    assert blends.list() == []
    parent = blends.create([Source(table="packed.code", weight=1)])
    with pytest.raises(
        UnsupportedPageLayout, match=r"`segments\.list\.element\.length`: its pages do not have"
    ):
        blends.update(parent.id, 1, {}, [Source(table="packed.pages", weight=1)])
    assert blends.list() == [parent]
