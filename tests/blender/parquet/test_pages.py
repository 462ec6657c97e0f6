"""Pages of files by any writer hold the values that pyarrow reads from them."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from blender.errors import CorruptPage, InvalidBlend, InvalidRequest, SourceGone, UnsupportedPageLayout
from blender.parquet.matrix import (
    IndexMatrix,
    data_files,
    get_idx_matrix,
    open_idx_matrix,
    read_page,
    shuffle_index,
)
from factory.errors import ConfigurationError
from factory.lake.files.location import local_path
from tests.blender.parquet_files import every_type, leaves, oracle, rows_per_page, write

N = 400
CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]
ENCODINGS = {
    "PLAIN": ["boolean", "int32", "int64", "float", "double", "binary", "string", "fixed"],
    "RLE": ["boolean"],
    "DELTA_BINARY_PACKED": ["int32", "int64", "date", "timestamp"],
    "DELTA_LENGTH_BYTE_ARRAY": ["binary", "string", "large_string"],
    "DELTA_BYTE_ARRAY": ["binary", "string", "fixed"],
    "BYTE_STREAM_SPLIT": ["half", "float", "double", "int32", "int64", "fixed"],
}


def assert_equal(found: pa.Array, expected: pa.Array) -> None:
    """Check values and type, whatever names a writer gave the elements of a list."""
    found.validate(full=True)
    assert found.cast(expected.type) == expected
    if not pa.types.is_nested(expected.type):
        assert found.type == expected.type


def assert_reads(path: Path, leaf: str) -> IndexMatrix:
    """Check all pages of a leaf and random rows of it against pyarrow."""
    matrix, expected = get_idx_matrix([path], leaf), oracle(path, leaf)
    assert matrix.n_rows == len(expected)
    pages = [read_page(page) for page in matrix]
    assert [page.n_rows for page in matrix] == [len(page) for page in pages]
    if pages:
        assert_equal(pa.concat_arrays(pages), expected)
        rows = np.random.default_rng(1).integers(0, len(expected), 50)
        assert_equal(matrix.read_rows(rows), expected.take(pa.array(rows)))
    return matrix


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Rows of every type, a fifth of them null."""
    return every_type(N)


@pytest.fixture
def path(table: pa.Table, tmp_path: Path) -> Path:
    """A file of `table`."""
    return write(tmp_path / "file.parquet", table)


@pytest.mark.invariant(
    "A page read alone equals pyarrow's reading of the file, for every writer, mix of encodings and "
    "reader; damaged bytes raise an error that names file, column and page."
)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("indexed", [True, False])
def test_every_type_and_codec_is_read_as_pyarrow_reads_it(
    codec: str, version: str, indexed: bool, table: pa.Table, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "file.parquet",
        table,
        compression=codec,
        data_page_version=version,
        write_page_index=indexed,
        write_page_checksum=indexed,
    )
    for leaf in leaves(path):
        repeated = leaf.startswith(("list", "structs."))
        if repeated and version == "1.0" and not indexed:
            with pytest.raises(UnsupportedPageLayout, match=rf"`{leaf}`.*offset index"):
                get_idx_matrix([path], leaf)
            continue
        assert len(assert_reads(path, leaf)) >= 3


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("nulls", [True, False])
def test_every_encoding_is_read(encoding: str, version: str, nulls: bool, tmp_path: Path) -> None:
    columns = ENCODINGS[encoding]
    path = write(
        tmp_path / "file.parquet",
        every_type(N, nulls=nulls).select(columns),
        use_dictionary=False,
        column_encoding=dict.fromkeys(columns, encoding),
        data_page_version=version,
        compression="zstd",
    )
    for column in columns:
        assert_reads(path, column)


def test_columns_with_whole_and_partial_dictionaries_are_read(tmp_path: Path) -> None:
    words = [f"a word {number % 7}" for number in range(3000)] + [
        f"another word {number}" for number in range(3000)
    ]
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"word": words}), path, dictionary_pagesize_limit=2000, data_page_size=500)
    used = set(pq.read_metadata(path).row_group(0).column(0).encodings)
    assert {"PLAIN", "RLE_DICTIONARY"} <= used
    assert_reads(path, "word")
    pq.write_table(pa.table({"word": pa.array(words).dictionary_encode()}), path, data_page_size=500)
    matrix = get_idx_matrix([path], "word")
    assert matrix.type == pa.string()  # whatever array the writer had
    assert matrix.read_rows(range(6000)).to_pylist() == words


def test_only_the_pages_asked_for_are_read(tmp_path: Path) -> None:
    rows = [bytes([byte]) * 1000 for byte in range(200)]
    table = pa.table({"tokens": rows})
    path = write(tmp_path / "file.parquet", table, compression="none", **rows_per_page(1))
    matrix = get_idx_matrix([path], "tokens")
    assert len(matrix) == 200
    assert matrix.read_rows([150, 3, 3]).to_pylist() == [rows[150], rows[3], rows[3]]
    pages, n_bytes = matrix.native.read_so_far
    assert (pages, n_bytes < 2 * 1200) == (2, True)


def test_several_files_are_one_matrix_in_their_order(table: pa.Table, tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{number}.parquet", table.slice(number * 100, 100)) for number in range(4)]
    matrix = get_idx_matrix([*paths[2:], *paths[:2]], "int64")
    written = table["int64"].to_pylist()
    assert matrix.read_rows(range(N)).to_pylist() == written[200:] + written[:200]
    page = matrix.page_of_row(250)
    file, row_group, number = page.index
    assert (file, row_group, matrix.paths[file]) == (2, 0, str(paths[0]))
    assert page.first_row <= 250 < page.first_row + page.n_rows
    assert matrix[page.number - number].first_row == 200


def test_empty_files_and_no_files_have_no_pages(table: pa.Table, tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.parquet", table.slice(0, 0))
    matrix = get_idx_matrix([empty, write(tmp_path / "file.parquet", table)], "string")
    assert matrix.n_rows == N
    assert len(get_idx_matrix([empty], "string").read_rows([])) == 0
    assert len(get_idx_matrix([], "string")) == 0


@settings(deadline=None, max_examples=30)
@given(
    values=st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=300),
    options=st.fixed_dictionaries(
        {
            "compression": st.sampled_from(CODECS),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "write_page_index": st.booleans(),
            "use_dictionary": st.booleans(),
            "data_page_size": st.integers(1, 400),
            "write_batch_size": st.integers(1, 50),
            "row_group_size": st.integers(1, 300),
        }
    ),
    data=st.data(),
)
def test_any_rows_in_any_layout_are_read(
    values: list[bytes | None],
    options: dict[str, object],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    pq.write_table(pa.table({"value": pa.array(values, pa.binary())}), path, **options)
    matrix = get_idx_matrix([path], "value")
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=60))
    assert matrix.read_rows(rows).to_pylist() == [values[row] for row in rows]
    assert [cell for one in matrix for cell in read_page(one).to_pylist()] == values


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("nullable", [True, False])
def test_pages_of_one_row_are_read_whatever_the_length_of_rows(
    version: str, checksum: bool, nullable: bool, tmp_path: Path
) -> None:
    lengths = [900] * 5 + [901, 900, 900, 900, 3, 0, 0, 0, 0, 900, 900, 900] + [5_000] * 4
    values: list[bytes | None] = [bytes([row]) * length for row, length in enumerate(lengths)]
    if nullable:
        values[7] = values[-1] = None
    schema = pa.schema([pa.field("value", pa.binary(), nullable)])
    path = write(
        tmp_path / "file.parquet",
        pa.table([values], schema=schema),
        compression="none",
        data_page_version=version,
        write_page_checksum=checksum,
        **rows_per_page(1),
    )
    matrix = get_idx_matrix([path], "value")
    assert len(matrix) >= len(values) - 2  # a null has no bytes, by which pyarrow ends pages
    for rows in (range(len(values)), range(len(values) - 1, -1, -1), [4, 3, 2, 1, 5, 0, 6, 9, 4]):
        assert matrix.read_rows(rows).to_pylist() == [values[row] for row in rows]
    if checksum:
        whole = bytearray(path.read_bytes())
        whole[whole.index(bytes([4]) * 900) + 450] ^= 1
        path.write_bytes(whole)
        with pytest.raises(CorruptPage, match=r"page 4: .*checksum"):
            get_idx_matrix([path], "value").read_rows(range(6))


def test_impossible_requests_are_refused_by_name(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no column `tokens`.*`string`"):
        get_idx_matrix([path], "tokens")
    leaves_of_structs = r"`structs\.list\.element\.word`, `structs\.list\.element\.n`"
    with pytest.raises(ConfigurationError, match=leaves_of_structs):
        get_idx_matrix([path], "structs")
    matrix = get_idx_matrix([path], "string")
    for row in (N, -1, 2**40):
        with pytest.raises(InvalidRequest, match=str(row)):
            matrix.read_rows([row])
    with pytest.raises(InvalidRequest):
        matrix.read_pages([len(matrix)])
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"string": [1, 2]}), other)
    with pytest.raises(UnsupportedPageLayout, match=r"other\.parquet.*Int64.*file\.parquet.*Utf8"):
        get_idx_matrix([path, other], "string")
    with pytest.raises(SourceGone, match="missing"):
        get_idx_matrix([tmp_path / "missing.parquet"], "string")


def test_a_saved_matrix_opens_unchanged_or_not_at_all(path: Path, tmp_path: Path) -> None:
    matrix = get_idx_matrix([path], "string")
    saved = tmp_path / "matrix"
    matrix.save(saved)
    opened = open_idx_matrix(saved)
    expected = oracle(path, "string")
    for one in (opened, pickle.loads(pickle.dumps(opened)), pickle.loads(pickle.dumps(matrix))):
        assert (one.column, one.type, len(one)) == ("string", pa.string(), len(matrix))
        assert one.paths == [str(path)]
        assert one.read_rows(range(N)) == expected
    content = saved.read_bytes()
    overwritten = [b"x" + content[1:], content[:700] + b"~~~~" + content[704:]]
    for damaged in (b"", content[:-1], content[:200], *overwritten):
        saved.write_bytes(damaged)
        said = rf"^{saved}: The page index is invalid: .*\. Build it again from its files\.$"
        with pytest.raises(CorruptPage, match=said):
            open_idx_matrix(saved)
    with pytest.raises(SourceGone):
        open_idx_matrix(tmp_path / "missing")


def test_slices_of_a_shuffled_order_partition_the_pages(path: Path) -> None:
    matrix = get_idx_matrix([path], "string")
    order = shuffle_index(matrix, seed=3)
    numbers = order.numbers().tolist()
    assert sorted(numbers) == list(range(len(matrix)))
    assert numbers != sorted(numbers)
    assert [page.number for page in order] == numbers
    assert [page.number for worker in range(3) for page in order[worker::3]] == [
        number for worker in range(3) for number in numbers[worker::3]
    ]
    assert shuffle_index(matrix, seed=3).numbers().tolist() == numbers
    assert shuffle_index(matrix, seed=3, epoch=1).numbers().tolist() != numbers
    rows = [cell for page in order for cell in read_page(page).to_pylist()]
    assert sorted(map(str, rows)) == sorted(map(str, oracle(path, "string").to_pylist()))


def test_a_matrix_is_read_by_many_threads(tmp_path: Path) -> None:
    path = write(tmp_path / "file.parquet", every_type(N), compression="zstd")
    matrix, expected = get_idx_matrix([path], "string"), oracle(path, "string")

    def is_read(seed: int) -> bool:
        rows = np.random.default_rng(seed).integers(0, N, 300)
        return matrix.read_rows(rows) == expected.take(pa.array(rows))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(is_read, range(8))) == [True] * 8


def local_files(table: Table) -> list[str | None]:
    """The paths of a table's data files, which are local."""
    return [local_path(path) for path in data_files(table, table.current_snapshot().snapshot_id)]


@pytest.mark.invariant(
    "A page read alone equals pyarrow's reading of the file, for every writer, mix of encodings and "
    "reader; damaged bytes raise an error that names file, column and page."
)
@pytest.mark.spark
@pytest.mark.parametrize("codec", ["zstd", "uncompressed", "snappy", "gzip", "lz4"])
def test_files_that_spark_writes_through_iceberg_are_read(
    codec: str, spark: SparkSession, catalog: Catalog, unique: str
) -> None:
    catalog.create_namespace_if_not_exists("packed")
    spark.sql(
        f"CREATE TABLE lake.packed.{unique} USING iceberg TBLPROPERTIES ("
        f"'write.parquet.compression-codec'='{codec}', 'write.parquet.page-row-limit'='7') AS "
        "SELECT id AS ordinal, encode(repeat(string(id), 20), 'utf-8') AS tokens, string(id % 5) AS word, "
        "array(id, id + 1) AS pair, cast(id AS decimal(20, 3)) AS amount, "
        "if(id % 3 = 0, null, double(id)) AS number FROM range(0, 300, 1, 2)"
    )
    paths = local_files(catalog.load_table(f"packed.{unique}"))
    for path in paths:
        for leaf in leaves(path):
            assert len(assert_reads(path, leaf)) > 3
    matrix = get_idx_matrix(paths, "ordinal")
    assert sorted(matrix.read_rows(range(300)).to_pylist()) == list(range(300))


@pytest.mark.spark
def test_a_table_with_deletes_is_refused(spark: SparkSession, catalog: Catalog, unique: str) -> None:
    catalog.create_namespace_if_not_exists("packed")
    spark.sql(
        f"CREATE TABLE lake.packed.{unique} USING iceberg "
        "TBLPROPERTIES ('write.delete.mode'='merge-on-read') AS SELECT id FROM range(0, 100, 1, 1)"
    )
    table = catalog.load_table(f"packed.{unique}")
    before = table.current_snapshot().snapshot_id
    spark.sql(f"DELETE FROM lake.packed.{unique} WHERE id = 7")
    table.refresh()
    with pytest.raises(InvalidBlend, match=rf"packed\.{unique} has position deletes at snapshot"):
        data_files(table, table.current_snapshot().snapshot_id)
    assert len(data_files(table, before)) == 1


def test_files_that_pyiceberg_writes_are_read(catalog: Catalog, unique: str) -> None:
    catalog.create_namespace_if_not_exists("packed")
    rows = every_type(N).select(["string", "int64", "binary", "timestamp_utc", "list"])
    small = {"write.parquet.page-row-limit": "9"}
    table = catalog.create_table(f"packed.{unique}", rows.schema, properties=small)
    table.append(rows)
    (path,) = local_files(table)
    for leaf in leaves(path):
        if not leaf.startswith("list"):
            assert len(assert_reads(path, leaf)) >= 1


def test_a_leaf_of_a_map_is_refused_and_its_file_is_not_called_damaged(tmp_path: Path) -> None:
    metadata = pa.array([[("author", "Ada"), ("year", "1843")], [], None], pa.map_(pa.string(), pa.string()))
    pq.write_table(pa.table({"metadata": metadata, "n": [1, 2, 3]}), tmp_path / "file.parquet")
    for leaf in ("metadata.key_value.key", "metadata.key_value.value"):
        with pytest.raises(UnsupportedPageLayout, match=rf"`{leaf}`: it is a leaf of a map"):
            get_idx_matrix([tmp_path / "file.parquet"], leaf)
