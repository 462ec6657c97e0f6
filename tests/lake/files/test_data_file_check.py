"""Data files that are missing or cut are found by one stat each."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

from factory.lake.files import data_file_check
from factory.lake.files.data_file_check import check_data_files
from factory.lake.lineage import Lineage
from factory.lake.names import raw, registered
from factory.lake.publish import append
from factory.lake.registration import register
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.settings import Settings

BOOK = raw("book")


@pytest.fixture
def book(tmp_path: Path) -> Table:
    """A table of three data files."""
    lake = Lake(Settings(home=tmp_path))
    lake.create(BOOK, RAW)
    row = {"source": "book", "key": "a page", "text": "text", "n_bytes": 4, "media_type": "text/plain"}
    for number in range(3):
        rows = [{"doc_id": f"{number:032x}", "content_hash": f"{number}", **row}]
        lineage = Lineage(asset="x", run_id=f"run {number}", code_version="1")
        append(lake, BOOK, RAW, pa.Table.from_pylist(rows, schema=RAW.columns), lineage)
    return lake.table(BOOK)


def data_files(table: Table) -> list[Path]:
    return sorted(Path(table.location().removeprefix("file://")).rglob("*.parquet"))


def test_whole_files_are_counted(book: Table) -> None:
    check = check_data_files([book, book])
    assert (check.summary, check.errors) == ("6 data files checked for their size", [])


def test_a_table_with_missing_and_cut_files_is_one_sentence(book: Table) -> None:
    first, second, _ = data_files(book)
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    (error,) = check_data_files([book]).errors
    sentence = str(error)
    assert sentence.startswith("Table raw.book is damaged. File ")
    assert ", and 1 more of its files are missing or cut. " in sentence
    assert sentence.endswith("Restore the file, or make the table again: factory materialize raw.book.")
    first.write_bytes(second.read_bytes())
    assert len(check_data_files([book]).errors) == 1


def test_each_problem_names_the_file(book: Table) -> None:
    file = data_files(book)[0]
    whole = file.read_bytes()
    file.write_bytes(whole[:10])
    (cut,) = check_data_files([book]).errors
    assert f"File {file} has 10 bytes instead of {len(whole):,}. " in str(cut)
    file.unlink()
    (missing,) = check_data_files([book]).errors
    assert f"File {file} is missing. " in str(missing)


def test_a_damaged_manifest_is_an_error_of_its_table(book: Table) -> None:
    (manifests,) = ([*snapshot.manifests(book.io)] for snapshot in [book.current_snapshot()] if snapshot)
    manifest = Path(manifests[0].manifest_path.removeprefix("file://"))
    manifest.unlink()
    (error,) = check_data_files([book]).errors
    assert manifest.name in str(error)


def test_a_replaced_file_of_the_user_is_counted_only(tmp_path: Path) -> None:
    lake, file = Lake(Settings(home=tmp_path / "lake")), tmp_path / "mine.parquet"
    texts = pa.table({"text": ["one", "two"]})
    pq.write_table(texts, file)
    lineage = Lineage(asset="x", run_id="run", code_version="1")
    register(lake, registered("mine"), [str(file)], texts.schema, lineage)
    file.write_bytes(b"another delivery")
    check = check_data_files([lake.table(registered("mine"))])
    assert (check.summary, check.errors) == ("0 data files checked for their size; 1 registered not", [])


def test_files_beyond_the_limit_and_in_stores_are_counted_only(
    book: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in data_files(book):
        file.unlink()
    check = check_data_files([book], most=0)
    assert check.summary == "0 data files checked for their size; 3 more not"
    monkeypatch.setattr(data_file_check, "local_path", lambda _: None)
    check = check_data_files([book])
    assert (check.summary, check.errors) == (
        "0 data files checked for their size; 3 in a store not",
        [],
    )
