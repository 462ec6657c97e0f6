"""Every reader of pages gives the values that pyarrow reads, whatever layout the pages have.

Each drawn table has four files of one kind of values in layouts of their own. All entry points read them: the
matrix of pages on a disk and in a store, `gather_pages`, `ScatteredRows`, `LocatedRows` and `LocatedTexts`,
texts of registered files, documents that ingest makes, scans of a table's files, Blender's rows by ordinal,
and the search for a damaged page, which finds none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import LocalStore
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from blender.errors import UnsupportedPageLayout
from blender.parquet.matrix import IndexMatrix, get_idx_matrix, read_page
from blender.parquet.page_ranges import StoreRanges
from blender.rows.lake_pages import LakePages
from blender.rows.snapshot_reader import SnapshotReader
from factory import _native
from factory.lake.catalog import open_catalog
from factory.lake.files.fetch import LocatedRows, LocatedTexts
from factory.lake.files.location import location
from factory.lake.files.parquet import fault
from factory.lake.files.random_access import ScatteredRows
from factory.lake.files.registered import RegisteredTexts, TextLocation
from factory.lake.files.scan import rows_of_files
from factory.lake.identity import content_hash
from factory.settings import Settings
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.parquet import parquet_file
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.rows import Origin
from tests.blender.page_layouts import (
    BYTE_TYPES,
    COLUMN,
    KINDS,
    UNICODE,
    Kind,
    Layout,
    as_read,
    in_type,
    layouts,
)
from tests.blender.parquet_files import leaves, oracle

FILES_PER_TABLE = 4


@dataclass(frozen=True)
class DrawnTable:
    """Files on disk, and the column in them as pyarrow reads it."""

    kind: str
    layouts: Sequence[Layout]
    paths: Sequence[Path]
    columns: Sequence[pa.Array]
    rows: Sequence[int]
    """Numbers between 0 and 2^20, from which each check makes its rows."""

    @property
    def values(self) -> Kind:
        return KINDS[self.kind]

    @property
    def column(self) -> pa.Array:
        """The column over all files."""
        return pa.concat_arrays(self.columns)

    def chosen(self, n: int) -> list[int]:
        """Some of `n` rows in any order, with repeats."""
        return [row % n for row in self.rows]


def assert_same(actual: pa.Array, expected: pa.Array) -> None:
    """Check the values; `actual` may have another type."""
    actual.validate(full=True)
    if isinstance(actual, pa.ExtensionArray):
        actual = actual.storage
    assert in_type(actual, expected.type).equals(expected)


def assert_matrix_reads(matrix: IndexMatrix, expected: pa.Array, rows: list[int]) -> None:
    assert matrix.n_rows == len(expected)
    pages = [read_page(page) for page in matrix]
    assert [page.type for page in pages] == [matrix.type] * len(pages)
    assert_same(pa.concat_arrays(pages), expected)
    assert_same(matrix.read_rows(rows), expected.take(pa.array(rows, pa.int64())))
    assert_same(matrix.read_rows(rows[:1]), expected.take(pa.array(rows[:1], pa.int64())))


def check_pages(path: Path, leaf: str, column: pa.Array, rows: list[int]) -> None:
    """The matrix of pages, on a disk and in a store."""
    assert_matrix_reads(get_idx_matrix([path], leaf), column, rows)
    store = StoreRanges(LocalStore(path.parent))
    assert_matrix_reads(get_idx_matrix([path.name], leaf, store), column, rows)


def check_gathered(table: DrawnTable, path: Path, column: pa.Array) -> None:
    """`gather_pages` in every type of bytes, or in the file's own type, with null positions."""
    content = _native.join_pages(COLUMN, _native.scan_pages([str(path)], COLUMN))

    def fetch(asked: Sequence[tuple[str, Sequence[tuple[int, int]]]]) -> list[list[bytes]]:
        whole = path.read_bytes()
        return [[whole[begin:end] for begin, end in ranges] for _, ranges in asked]

    for index in (_native.PageIndex(content), _native.PageIndex(content, fetch)):
        kinds = [index.type]
        if index.type in BYTE_TYPES:
            kinds = BYTE_TYPES if table.kind in UNICODE else BYTE_TYPES[:2]
        for kind in kinds:
            for keep_pages in (True, False):
                for rows in (
                    table.chosen(len(column)),
                    table.chosen(len(column))[:1],
                    list(range(len(column))),
                ):
                    part = (index, np.array(rows), 2 * np.arange(len(rows)) + 1, keep_pages)
                    cache = _native.PageCache(1 << 20)
                    actual = _native.gather_pages(kind, 2 * len(rows) + 1, [part], cache)
                    assert actual.type == kind
                    assert actual[::2].null_count == len(rows) + 1
                    assert_same(actual[1::2], column.take(pa.array(rows, pa.int64())))


def check_scattered(table: DrawnTable) -> None:
    """Rows in any order over all files, some of them nowhere; files of another type are refused by name."""
    types = [get_idx_matrix([path], COLUMN).type for path in table.paths]
    kind = table.values.type if types[0] in BYTE_TYPES else types[0]
    scattered = ScatteredRows({}, COLUMN, kind)
    readable = []
    for path, column, own in zip(table.paths, table.columns, types, strict=True):
        if own == kind or {own, kind} <= set(BYTE_TYPES):
            readable.append((f"file:{path}", column))
        else:
            with pytest.raises(NotImplementedError, match="Request its own type"):
                scattered.read(pa.array([f"file:{path}"]), pa.array([0]))
    files, numbers, expected = [], [], []
    for position, row in enumerate(table.rows):
        file, column = readable[position % len(readable)]
        files.append(None if position % 5 == 4 else file)
        numbers.append(row % len(column))
        expected.append(None if files[-1] is None else column[numbers[-1]].as_py())
    actual = scattered.read(pa.array(files, pa.string()), pa.array(numbers, pa.int64()))
    assert actual.type == kind
    assert_same(actual, pa.array(expected, table.values.type))


def check_forward(table: DrawnTable, path: Path, column: pa.Array) -> None:
    """Rows in ascending order, of the lake's files and of registered ones."""
    rows = sorted(table.chosen(len(column)))
    expected = column.take(pa.array(rows, pa.int64()))
    batches = list(LocatedRows({}, [COLUMN]).read(f"file:{path}", rows))
    assert in_type(pa.Table.from_batches(batches)[COLUMN], column.type).equals(expected)
    if table.kind in UNICODE:
        texts = pa.Table.from_batches(list(LocatedTexts({}).read(f"file:{path}", rows)))["text"]
        assert texts.combine_chunks().equals(expected)
        stored = [
            (row, text) for row, text in zip(rows, expected.to_pylist(), strict=True) if text is not None
        ]
        facts = path.lstat()
        column_at = location(str(path)), COLUMN
        places = [
            TextLocation(*column_at, row, facts.st_size, facts.st_mtime_ns)._asdict() for row, _ in stored
        ]
        hashes = pa.array([content_hash(text) for _, text in stored], pa.string())
        texts = [text for batch in RegisteredTexts().read(places, hashes) for text in batch.to_pylist()]
        assert texts == [text for _, text in stored]


def check_ingested(path: Path, column: pa.Array) -> None:
    """Documents from the rows of a file of texts; a row without text is a rejected record."""
    file = Input(Origin("file"), LocalFiles.at(path.parent), bytes(path.relative_to(path.parent)))
    rows = list(parquet_file(file, Fields()))
    assert [row.get("text") for row in rows] == [text or None for text in column.to_pylist()]


def check_blended(table: DrawnTable, catalog: Catalog, lake: Settings) -> None:
    """Rows by ordinal, and a scan of the same files."""
    kind = table.values.iceberg
    named = f"packed.{table.kind.replace(' ', '_')}_{table.paths[0].stem}"
    schema = pa.schema([("ordinal", pa.int64()), (COLUMN, kind)])
    stored = catalog.create_table(named, schema)
    stored.add_files([str(path) for path in table.paths])
    snapshot = stored.current_snapshot().snapshot_id
    reader = SnapshotReader.at(stored, snapshot, LakePages(lake, 1 << 20))
    for rows in (table.chosen(len(table.column)), table.chosen(len(table.column))[:1]):
        actual = reader.read(np.array(rows), (COLUMN,))[COLUMN]
        assert actual.type == kind
        assert_same(actual, table.column.take(pa.array(rows, pa.int64())))
    scanned = {}
    for batch in rows_of_files(stored, list(stored.scan().plan_files()), schema):
        assert pa.types.is_nested(kind) or batch.schema == schema
        values = in_type(batch[COLUMN], table.values.type)
        scanned.update(zip(batch["ordinal"].to_pylist(), values, strict=True))
    assert [scanned[ordinal] for ordinal in range(len(table.column))] == list(table.column)


def check(table: DrawnTable, catalog: Catalog, lake: Settings) -> None:
    """Read a table's files through every entry point."""
    alone = True
    for layout, path, column in zip(table.layouts, table.paths, table.columns, strict=True):
        with pa.OSFile(str(path)) as file:
            assert fault(str(path), ("*",), file) is None
        check_forward(table, path, column)
        if table.kind in UNICODE:
            check_ingested(path, column)
        leaf = next(leaf for leaf in leaves(path) if leaf != "ordinal")
        if not layout.pages_alone:
            alone = False
            with contextlib.suppress(UnsupportedPageLayout):  # unless each chunk is one page
                check_pages(path, leaf, column, table.chosen(len(column)))
            continue
        check_pages(path, leaf, column, table.chosen(len(column)))
        check_gathered(table, path, column)
    if alone:
        check_scattered(table)
        if all(layout.iceberg is not None for layout in table.layouts):
            check_blended(table, catalog, lake)


@pytest.mark.invariant(
    "A page read alone equals pyarrow's reading of the file, for every writer, mix of encodings and "
    "reader; damaged bytes raise an error that names file, column and page."
)
def test_every_reader_gives_pyarrows_values_from_any_layout(n_page_files: int, tmp_path: Path) -> None:
    lake = Settings(home=tmp_path / "lake", cache=tmp_path / "cache")
    catalog = open_catalog(lake)
    catalog.create_namespace_if_not_exists("packed")
    n_tables = 0

    @settings(max_examples=n_page_files // FILES_PER_TABLE)
    @given(st.data())
    def every_table(data: st.DataObject) -> None:
        nonlocal n_tables
        kind = data.draw(st.sampled_from([*KINDS, *("string", "binary") * 6]))
        layout = layouts(kind, indexed=data.draw(st.booleans()))
        drawn = data.draw(st.lists(layout, min_size=FILES_PER_TABLE, max_size=FILES_PER_TABLE))
        rows = data.draw(st.lists(st.integers(0, 2**20), min_size=1, max_size=40))
        n_tables += 1
        paths = [tmp_path / f"{n_tables}-{number}.parquet" for number in range(FILES_PER_TABLE)]
        columns: list[pa.Array] = []
        for file, path in zip(drawn, paths, strict=True):
            columns.append(file.write(path, sum(map(len, columns))))
        check(DrawnTable(kind, drawn, paths, columns, rows), catalog, lake)
        for path in paths:
            path.unlink()

    every_table()
    print(f"\n{n_tables * FILES_PER_TABLE} files in {n_tables} tables hold what pyarrow reads from them")


_SPARK_COLUMNS = [
    "id AS ordinal",
    "if(id < 300, concat('word ', id % 7), repeat(concat('word ', id, ' ö '), id % 4)) AS text",
    "encode(concat('bag ', if(id < 200, 1, id)), 'utf-8') AS bag",
    "cast(id % 3 AS tinyint) AS small",
    "cast(if(id < 300, 1, id) AS decimal(20, 3)) AS amount",
    "if(id % 3 = 0, null, double(id)) AS number",
    "id % 5 = 0 AS flag",
    "timestamp_millis(id * 977) AS moment",
    "array(id, id % 4) AS pair",
    "cast(null AS string) AS nothing",
]


@pytest.mark.invariant(
    "A page read alone equals pyarrow's reading of the file, for every writer, mix of encodings and "
    "reader; damaged bytes raise an error that names file, column and page."
)
@pytest.mark.spark
@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("rows_per_page", [1, 40])
def test_files_of_sparks_own_writer_are_read(
    version: str, rows_per_page: int, spark: SparkSession, tmp_path: Path
) -> None:
    options = {
        "parquet.writer.version": version,
        "parquet.dictionary.page.size": "400",
        "parquet.page.size": "300",
        "parquet.page.row.count.limit": str(rows_per_page),
        "parquet.block.size": "20000",
        "compression": "zstd" if version == "v2" else "snappy",
    }
    frame = spark.range(0, 600, 1, 1).selectExpr(*_SPARK_COLUMNS)
    frame.write.options(**options).parquet(str(tmp_path / "table"))
    (path,) = (tmp_path / "table").glob("*.parquet")
    metadata = pq.read_metadata(path)
    chunks = [metadata.row_group(group).column(1) for group in range(metadata.num_row_groups)]
    mixed = {"v1": {"PLAIN_DICTIONARY", "PLAIN"}, "v2": {"RLE_DICTIONARY", "DELTA_BYTE_ARRAY"}}[version]
    assert any(mixed <= set(chunk.encodings) for chunk in chunks)
    rows = np.random.default_rng(1).integers(0, 600, 40).tolist()
    for leaf in leaves(path):
        expected = oracle(path, leaf)
        matrix = get_idx_matrix([path], leaf)
        assert_same(pa.concat_arrays([read_page(page) for page in matrix]), expected)
        assert_same(matrix.read_rows(rows), expected.take(pa.array(rows)))
    column = as_read(path, pa.string())
    table = DrawnTable("string", (), [path], [column], rows)
    check_gathered(table, path, column)
    check_scattered(table)
    check_forward(table, path, column)
    check_ingested(path, column)
