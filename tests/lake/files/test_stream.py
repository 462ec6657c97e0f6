"""A snapshot is streamed whole, in small batches, with registered texts and without deleted rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo

from factory.errors import DamagedFile
from factory.lake.files.location import location
from factory.lake.files.stream import stream
from factory.lake.identity import content_hash
from factory.lake.names import raw
from factory.lake.schemas.ingest import RAW, thin
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import document, documents

COLUMNS = pa.schema([RAW.columns.field(name) for name in ("doc_id", "n_bytes", "text")])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(Settings(home=tmp_path / "lake"))


def streamed(lake: Lake, dataset: str, columns: pa.Schema = COLUMNS) -> list[pa.RecordBatch]:
    table = lake.table(raw(dataset))
    return list(stream(table, lake.published(raw(dataset)).snapshot_id, columns))


def test_every_row_comes_once_and_no_batch_is_empty(lake: Lake) -> None:
    documents(lake, "web", "abcdef")
    lake.table(raw("web")).append(pa.Table.from_pylist([document("g")], schema=RAW.columns))
    batches = streamed(lake, "web")
    assert sorted(doc_id for batch in batches for doc_id in batch["doc_id"].to_pylist()) == list("abcdefg")
    assert all(batch.num_rows and batch.schema.equals(COLUMNS) for batch in batches)


def test_files_that_cannot_match_are_skipped(lake: Lake) -> None:
    for letters in ("ab", "cd"):
        rows = pa.Table.from_pylist([document(letter) for letter in letters], schema=RAW.columns)
        lake.create(raw("web"), RAW).append(rows)
    snapshot_id = lake.published(raw("web")).snapshot_id
    batches = stream(lake.table(raw("web")), snapshot_id, COLUMNS, EqualTo("doc_id", "d"))
    assert sorted(doc_id for batch in batches for doc_id in batch["doc_id"].to_pylist()) == ["c", "d"]


def test_large_rows_come_in_batches_of_some_megabytes(lake: Lake) -> None:
    rows = [document("a") | {"doc_id": f"{n}", "text": f"{n:08}" * (1 << 17)} for n in range(40)]
    lake.create(raw("web"), RAW).append(pa.Table.from_pylist(rows, schema=RAW.columns))
    batches = streamed(lake, "web")
    assert sum(batch.num_rows for batch in batches) == 40
    assert max(batch.nbytes for batch in batches) < 16 << 20


def test_registered_texts_are_read_from_their_files(lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "shelf.parquet"
    pq.write_table(pa.table({"body": [f"text {n}" for n in range(3000)]}), file, compression="none")
    known = file.stat()

    def row(number: int) -> dict[str, Any]:
        place = {
            "file": location(str(file)),
            "column": "body",
            "row": number,
            "file_bytes": known.st_size,
            "modified_ns": known.st_mtime_ns,
        }
        hashed = content_hash(f"text {number}")
        return document("a") | {
            "doc_id": f"{number}",
            "text": None,
            "content_hash": hashed,
            "text_at": place,
        }

    schema = thin(RAW)
    rows = pa.Table.from_pylist([row(number) for number in range(2500)], schema=schema.columns)
    lake.create(raw("web"), schema).append(rows)
    found = pa.Table.from_batches(streamed(lake, "web")).to_pylist()
    assert len(found) == 2500
    assert all(row["text"] == f"text {row['doc_id']}" for row in found)
    assert set(found[0]) == set(COLUMNS.names)
    file.write_bytes(file.read_bytes().replace(b"text 77", b"text 7w", 1))
    os.utime(file, ns=(0, known.st_mtime_ns))
    named = rf"The text in row 77\d?, column `body`, of the registered file {file}"
    with pytest.raises(DamagedFile, match=named):
        streamed(lake, "web")


def test_deleted_rows_stay_deleted(lake: Lake) -> None:
    documents(lake, "web", "abcdef")
    lake.table(raw("web")).delete("doc_id = 'c'")
    assert sorted(pa.Table.from_batches(streamed(lake, "web"))["doc_id"].to_pylist()) == list("abdef")


def test_a_damaged_file_is_named(lake: Lake) -> None:
    documents(lake, "web", "abcdef")
    (data,) = (lake.settings.files.warehouse / "raw" / "web" / "data").glob("*.parquet")
    data.write_bytes(data.read_bytes()[:-20])
    with pytest.raises(DamagedFile, match=data.name):
        streamed(lake, "web")
