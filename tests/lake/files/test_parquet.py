"""The search for the damage of a file accuses no whole file and names the damaged one."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.errors import DamagedFile, MachineError
from factory.lake.files.checksums import sums_file
from factory.lake.files.damage import scanning
from factory.lake.files.parquet import fault, reading
from factory.lake.lineage import Lineage
from factory.lake.names import raw
from factory.lake.publish import append
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.lake.files.book import documents

BOOK = raw("book")
LINEAGE = Lineage(asset="x", run_id="run", code_version="1")
N_FILES, N_ROWS = 6, 20

POINT = pa.struct([("x", pa.int64()), ("names", pa.list_(pa.string()))])
NESTED = pa.table(
    {
        "map": pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int64())),
        "map_of_lists": pa.array(
            [[("a", ["x", None])], [], None], pa.map_(pa.string(), pa.list_(pa.string()))
        ),
        "map_of_structs": pa.array([[("a", {"x": 1, "names": []})], [], None], pa.map_(pa.string(), POINT)),
        "list": pa.array([[1, None], [], None], pa.list_(pa.int64())),
        "lists": pa.array([[[1], []], [None], None], pa.list_(pa.list_(pa.int64()))),
        "structs": pa.array([[{"x": 1, "names": ["a"]}], [], None], pa.list_(POINT)),
        "maps": pa.array([[[("a", 1)], []], [None], None], pa.list_(pa.map_(pa.string(), pa.int64()))),
        "struct": pa.array([{"x": 1, "names": None}, {"x": None, "names": ["a"]}, None], POINT),
        "pair": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int64(), 2)),
        "null": pa.nulls(3),
        "word": pa.array(["a", None, "a"]).dictionary_encode(),
        "dotted.name": pa.array([1, 2, 3]),
        "half": pa.array([1, 2, 3], pa.float32()).cast(pa.float16()),
        "amount": pa.array([1, 2, None]).cast(pa.decimal128(38, 2)),
    }
)


def pages(number: int) -> pa.Table:
    """Pages of one file, with a column `metadata` that is a map."""
    return documents(
        range(number * N_ROWS, (number + 1) * N_ROWS),
        metadata=lambda page: [("author", f"author {page}"), ("year", str(1900 + page))],
    )


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """The data files of a table of some appends, as in a store: without checksum files."""
    lake = Lake(Settings(home=tmp_path))
    lake.create(BOOK, RAW)
    for number in range(N_FILES):
        append(lake, BOOK, RAW, pages(number), LINEAGE)
    paths = [Path(task.file.file_path.removeprefix("file:")) for task in lake.table(BOOK).scan().plan_files()]
    for path in paths:
        Path(sums_file(str(path))).unlink()
    return paths


def flip_last_byte(path: Path, leaf: str) -> None:
    """Flip a bit at the end of a leaf's first column chunk."""
    group = pq.read_metadata(path).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    (chunk,) = (chunk for chunk in chunks if chunk.path_in_schema == leaf)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(path.read_bytes())
    content[begin + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(content)


def sentence_on(path: Path, *columns: str) -> str | None:
    with pa.OSFile(str(path)) as file:
        return fault(str(path), columns or ("*",), file)


@pytest.mark.invariant(
    "The search for the damaged file of a table accuses no whole file: only what pyarrow cannot read is "
    "damage, and a reader's failure that no file explains is called a failure of the machine. Only a "
    "failure of Spark to read Parquet starts the search, and a search that fails leaves Spark's own error"
    " in place."
)
@pytest.mark.parametrize("store_schema", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("indexed", [True, False])
def test_the_search_is_silent_about_a_whole_file_of_nested_columns(
    store_schema: bool, version: str, indexed: bool, tmp_path: Path
) -> None:
    path = tmp_path / "nested.parquet"
    pq.write_table(
        NESTED, path, store_schema=store_schema, data_page_version=version, write_page_index=indexed
    )
    assert sentence_on(path) is None
    assert sentence_on(path, "map", "a column that the schema gained later") is None


@pytest.mark.invariant(
    "The search for the damaged file of a table accuses no whole file: only what pyarrow cannot read is "
    "damage, and a reader's failure that no file explains is called a failure of the machine. Only a "
    "failure of Spark to read Parquet starts the search, and a search that fails leaves Spark's own error"
    " in place."
)
@pytest.mark.parametrize("leaf", ["text", "metadata.key_value.key", "metadata.key_value.value", "doc_id"])
@pytest.mark.parametrize("number", range(N_FILES))
def test_of_many_files_the_damaged_one_is_named(
    files: list[Path], number: int, leaf: str, tmp_path: Path
) -> None:
    flip_last_byte(files[number], leaf)
    with pytest.raises(DamagedFile) as damaged:
        Lake(Settings(home=tmp_path)).read(BOOK)
    column = leaf.partition(".")[0]
    assert f"File {files[number]}, column `{column}`, row group 0" in str(damaged.value)
    assert [path for path in files if path.name in str(damaged.value)] == [files[number]]


def test_every_damaged_leaf_is_found(tmp_path: Path) -> None:
    path = tmp_path / "nested.parquet"
    pq.write_table(NESTED.drop_columns(["null"]), path, write_page_checksum=True)
    whole = path.read_bytes()
    facts = pq.read_metadata(path)
    for number in range(facts.num_columns):
        leaf = facts.row_group(0).column(number).path_in_schema
        flip_last_byte(path, leaf)
        column = leaf if leaf in NESTED.column_names else leaf.partition(".")[0]
        assert f"nested.parquet, column `{column}" in (sentence_on(path) or ""), leaf
        assert sentence_on(path, "another column") is None
        path.write_bytes(whole)


@pytest.mark.invariant(
    "The search for the damaged file of a table accuses no whole file: only what pyarrow cannot read is "
    "damage, and a reader's failure that no file explains is called a failure of the machine. Only a "
    "failure of Spark to read Parquet starts the search, and a search that fails leaves Spark's own error"
    " in place."
)
def test_an_error_without_a_damaged_file_accuses_none(files: list[Path], tmp_path: Path) -> None:
    table = Lake(Settings(home=tmp_path)).table(BOOK)
    tasks = list(table.scan().plan_files())
    with (
        pytest.raises(MachineError, match=r"raw\.book could not be read \(the store hung up\)") as failed,
        scanning(table, tasks, ["*"]),
    ):
        raise OSError("the store hung up")
    assert not any(path.name in str(failed.value) for path in files)
    with pytest.raises(KeyError), scanning(table, tasks, ["*"]):
        raise KeyError("our own mistake")


class Store(io.BytesIO):
    """A file of a store that answers for the file's footer only."""

    def read(self, n_bytes: int | None = -1) -> bytes:
        """Return bytes behind the first 2,000."""
        if self.tell() < 2000:
            raise OSError("the store hung up")
        return super().read(n_bytes)


def test_a_file_whose_bytes_cannot_be_fetched_is_not_called_damaged(files: list[Path]) -> None:
    def opened() -> pa.NativeFile:
        return pa.PythonFile(Store(files[0].read_bytes()), "r")

    with pytest.raises(OSError, match="the store hung up"), opened() as file:
        fault("file.parquet", ["*"], file)
    with (
        pytest.raises(OSError, match="the store hung up"),
        reading("file.parquet", ["text"], opened),
        opened() as file,
    ):
        pq.read_table(file, columns=["text"])
