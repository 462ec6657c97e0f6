"""A damaged file of a lake is named, and what does not need it still works."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import clear_manifest_cache, write_manifest_list

from factory.errors import DamagedFile, SourceChanged
from factory.lake.files.checksums import sums_file
from factory.lake.files.fetch import LocatedTexts
from factory.lake.files.random_access import ScatteredRows
from factory.lake.files.registered import RegisteredTexts
from factory.lake.files.scan import stored
from factory.lake.lineage import Lineage
from factory.lake.names import TableName, raw
from factory.lake.publish import append
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.lake.files.book import documents
from tests.lake.files.places import place

BOOK, OTHER = raw("book"), raw("other")
LINEAGE = Lineage(asset="x", run_id="run", code_version="1")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with two tables of some pages."""
    lake = Lake(Settings(home=tmp_path))
    for name in (BOOK, OTHER):
        lake.create(name, RAW)
        append(lake, name, RAW, documents(range(300)), LINEAGE)
    return lake


def files(lake: Lake, name: TableName, pattern: str) -> list[Path]:
    return sorted((lake.settings.files.warehouse / name.namespace / name.name).rglob(pattern))


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def chunk(file: Path, column: str) -> tuple[int, int]:
    """Where a column of a file begins, and the last of its bytes."""
    group = pq.read_metadata(file).row_group(0)
    columns = (group.column(number) for number in range(group.num_columns))
    (found,) = (chunk for chunk in columns if chunk.path_in_schema == column)
    begin = found.dictionary_page_offset or found.data_page_offset
    return begin, begin + found.total_compressed_size - 1


def by_pyiceberg(lake: Lake, file: Path) -> None:
    lake.read(BOOK)


def by_its_files(lake: Lake, file: Path) -> None:
    columns = pa.schema([RAW.columns.field("text")])
    list(stored(lake.table(BOOK), lake.published(BOOK).snapshot_id, columns) or [])


def by_row(lake: Lake, file: Path) -> None:
    list(LocatedTexts({}).read(f"file:{file}", range(300)))


def by_page(lake: Lake, file: Path) -> None:
    rows = pa.array(range(300), pa.int64())
    ScatteredRows({}, "text", pa.string()).read(pa.array([f"file:{file}"] * 300), rows)


@pytest.mark.invariant(
    "A flipped bit, a cut or a zeroed range in any file of a lake raises an error or changes no answer."
)
@pytest.mark.parametrize("read", [by_pyiceberg, by_its_files, by_row, by_page])
@pytest.mark.parametrize("sums", [True, False])
def test_every_reader_names_file_column_and_page_of_a_flipped_bit(
    lake: Lake, read: Callable[[Lake, Path], None], sums: bool
) -> None:
    (file,) = files(lake, BOOK, "*.parquet")
    read(lake, file)
    if not sums:  # as in a store, where a page's own checksum is all there is
        Path(sums_file(str(file))).unlink()
    flip(file, chunk(file, "text")[1])
    with pytest.raises(DamagedFile, match=rf"{file.name}, column `text`, row group 0, page \d+: .*checksum"):
        read(lake, file)


def test_the_damaged_page_of_a_registered_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "own.parquet"
    pq.write_table(documents(range(10)), path, write_page_checksum=True)
    flip(path, chunk(path, "text")[1])
    with pytest.raises(SourceChanged, match=r"own\.parquet, column `text`, row group 0, page 0"):
        list(RegisteredTexts().read([place(path, 3, "text")], pa.array([""])))


@pytest.mark.invariant(
    "A flipped bit, a cut or a zeroed range in any file of a lake raises an error or changes no answer."
)
@pytest.mark.parametrize("pattern", ["*.parquet", "*.metadata.json", "*-m0.avro", "snap-*.avro"])
def test_every_byte_that_pyiceberg_wrote_is_checked(lake: Lake, pattern: str) -> None:
    file = files(lake, BOOK, pattern)[-1]
    size = file.stat().st_size
    for at in range(0, size, max(97, size // 50)):
        flip(file, at)
        with pytest.raises(DamagedFile, match=file.name) as damaged:
            Lake(lake.settings).read(BOOK)
        assert "raw.book" in str(damaged.value)
        flip(file, at)
    assert lake.read(BOOK).num_rows == 300


def test_a_file_without_checksums_is_named_if_it_cannot_be_parsed(lake: Lake) -> None:
    for pattern in ("*.metadata.json", "*-m0.avro", "snap-*.avro", "*.parquet"):
        file = files(lake, BOOK, pattern)[-1]
        Path(sums_file(str(file))).unlink()
        whole = file.read_bytes()
        for damaged in (whole[: len(whole) // 2], b"", bytes(len(whole))):
            file.write_bytes(damaged)
            with pytest.raises(DamagedFile, match=file.name):
                Lake(lake.settings).read(BOOK)
        file.unlink()
        with pytest.raises(DamagedFile, match=rf"{file.name}(, which .* lists,)? is gone\. Restore the file"):
            Lake(lake.settings).read(BOOK)
        file.write_bytes(whole)


def without_checksums(lake: Lake, pattern: str) -> Path:
    """The newest file of a pattern, as in a store: without its checksum file."""
    file = files(lake, BOOK, pattern)[-1]
    Path(sums_file(str(file))).unlink()
    return file


def rows_or_sentence(lake: Lake) -> int | str:
    """The number of rows, or the sentence on the damage of the table."""
    try:
        return Lake(lake.settings).read(BOOK).num_rows
    except DamagedFile as damaged:
        return str(damaged)


@pytest.mark.parametrize("pattern", ["*-m0.avro", "snap-*.avro"])
def test_a_flipped_byte_of_a_manifest_without_checksums_is_named_or_changes_nothing(
    lake: Lake, pattern: str
) -> None:
    rows, file = rows_or_sentence(lake), without_checksums(lake, pattern)
    size = file.stat().st_size
    for at in range(0, size, max(1, size // 40)):
        flip(file, at)
        clear_manifest_cache()
        answer = rows_or_sentence(lake)
        assert answer == rows or file.name in str(answer), at
        flip(file, at)


def test_a_manifest_whose_schema_lacks_a_field_is_named(lake: Lake) -> None:
    file = without_checksums(lake, "*-m0.avro")
    whole = file.read_bytes()
    assert b'"field-id": 104' in whole
    file.write_bytes(whole.replace(b'"field-id": 104', b'"field-id": 304'))
    clear_manifest_cache()
    with pytest.raises(
        DamagedFile, match=rf"raw\.book is damaged\. Its manifest .*{file.name} cannot be read"
    ):
        Lake(lake.settings).read(BOOK)


def test_a_list_whose_manifests_cannot_be_planned_is_named(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.table(BOOK)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    (manifest,) = snapshot.manifests(table.io)
    lists = Path(snapshot.manifest_list.removeprefix("file://"))
    with write_manifest_list(
        2, PyArrowFileIO().new_output(str(lists)), snapshot.snapshot_id, None, 1, "null"
    ) as new:
        manifest._data[2] = 77  # the id of a partition spec that the table lacks
        new.add_manifests([manifest])
    Path(sums_file(str(lists))).unlink()
    clear_manifest_cache()
    with pytest.raises(DamagedFile, match=rf"list of manifests .*{lists.name}, or a manifest that it lists,"):
        Lake(lake.settings).read(BOOK)
    with pytest.raises(ValueError, match="no_column"):  # a mistake of the caller accuses no file
        lake.read(OTHER, where="no_column = 1")


def test_a_missing_file_is_named_with_the_manifest_that_lists_it(lake: Lake) -> None:
    (file,) = files(lake, BOOK, "*.parquet")
    manifest = files(lake, BOOK, "*-m0.avro")[-1]
    file.rename(file.with_suffix(".moved"))
    with pytest.raises(DamagedFile, match=rf"{file.name}, which .*{manifest.name} lists, is gone"):
        lake.read(BOOK)


def test_a_damaged_file_of_checksums_is_named(lake: Lake) -> None:
    sums = Path(sums_file(str(files(lake, BOOK, "*.metadata.json")[-1])))
    sums.write_bytes(b"crc")
    with pytest.raises(DamagedFile, match=sums.name):
        lake.table(BOOK)


def test_one_damaged_table_hides_no_other(lake: Lake) -> None:
    file = files(lake, BOOK, "*.metadata.json")[-1]
    file.write_bytes(b"{}")
    tables, damaged = lake.readable()
    assert list(tables) == [OTHER]
    assert [file.name in str(error) for error in damaged] == [True]
    assert lake.exists(BOOK)
    assert lake.read(OTHER).num_rows == 300


@pytest.mark.parametrize("pattern", ["*.metadata.json", "*-m0.avro", "snap-*.avro"])
def test_a_damaged_table_is_recreated_if_all_its_rows_are_replaced(
    lake: Lake, pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = files(lake, BOOK, pattern)[-1]
    file.write_bytes(file.read_bytes()[:-20])
    if pattern == "*.metadata.json":
        with pytest.raises(DamagedFile, match=r"factory materialize raw\.book"):
            lake.create(BOOK, RAW)
    with caplog.at_level(logging.WARNING):
        made = lake.create(BOOK, RAW, replaced=True)
    assert file.name in caplog.text
    assert made.current_snapshot() is None
    assert append(lake, BOOK, RAW, documents(range(5)), LINEAGE).rows == 5
    assert lake.create(BOOK, RAW, replaced=True).current_snapshot() is not None  # an intact one stays


def test_a_table_whose_folder_is_gone_is_never_recreated(lake: Lake) -> None:
    warehouse = lake.settings.files.warehouse
    warehouse.rename(warehouse.with_name("unmounted"))
    warehouse.mkdir()
    with pytest.raises(DamagedFile, match="is gone"):
        lake.create(BOOK, RAW, replaced=True)
    warehouse.rmdir()
    warehouse.with_name("unmounted").rename(warehouse)
    assert lake.read(BOOK).num_rows == 300


def test_a_catalog_whose_tables_and_indexes_differ_is_named(lake: Lake) -> None:
    database = lake.settings.files.catalog_database
    content = database.read_bytes()
    assert content.count(b"defaultrawbook") or content.count(b"rawbook")
    at = content.rindex(b"rawbook")
    database.write_bytes(content[:at] + b"rawbooc" + content[at + 7 :])
    with pytest.raises(DamagedFile, match=r"catalog\.db"):
        Lake(lake.settings).names()
