"""A scan's batches hold what their schema says and stay small."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from factory.lake.schemas.images import IMAGES
from factory.lake.schemas.ingest import RAW, REJECTED
from spark_udfs.ingest import bounds
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.rows import (
    BATCH_BYTES,
    BATCH_ROWS,
    SCAN,
    BadRecord,
    Origin,
    bounded,
    document,
    in_batches,
    rejection,
)
from spark_udfs.ingest.work import WORK, read_work

ORIGIN = Origin("s")


def test_a_scan_has_the_columns_of_both_tables() -> None:
    assert set(SCAN.names) == {*RAW.names, *REJECTED.names, "file", "row", "text_at", "part_at", IMAGES}
    for schema in (RAW.columns, REJECTED.columns):
        for column in schema:
            assert SCAN.field(column.name).type == column.type


def test_required_columns_are_filled_in_either_table() -> None:
    rows = [
        document(ORIGIN, "a", "text", media_type="text/plain"),
        rejection(ORIGIN, "b", BadRecord("odd", "It is odd."), 3),
    ]
    [batch] = in_batches(iter(rows))
    for schema, row in ((RAW.columns, 0), (REJECTED.columns, 1)):
        missing = [c.name for c in schema if not c.nullable and batch.column(c.name)[row].as_py() is None]
        assert missing == []


@pytest.mark.parametrize("size, most", [(BATCH_BYTES // 4, 4), (BATCH_BYTES * 2, 1), (1, BATCH_ROWS)])
def test_a_batch_ends_with_the_row_that_fills_it(size: int, most: int) -> None:
    count = most * 2 + 1
    text = "x" * size
    rows = (document(ORIGIN, str(n), text, media_type="text/plain") for n in range(count))
    assert [batch.num_rows for batch in in_batches(rows)] == [most, most, 1]


def test_a_batch_counts_every_text_of_a_row() -> None:
    """A short text with a long key or long metadata, and a rejected record with a long quote."""
    many = [("a", "x" * BATCH_BYTES)]
    metadata = (document(ORIGIN, str(n), "x", media_type="", metadata=dict(many)) for n in range(3))
    assert [batch.num_rows for batch in in_batches(metadata)] == [1, 1, 1]
    keys = (document(ORIGIN, f"{n}" * (BATCH_BYTES // 2), "x", media_type="") for n in range(4))
    assert [batch.num_rows for batch in in_batches(keys)] == [2, 2]
    row = rejection(ORIGIN, "b", BadRecord("odd", "It " * 10_000), 3)
    assert len(row["detail"]) == 1_000 + len(" ...")


def rows_of(outcomes: str) -> list[dict[str, Any]]:
    bad = BadRecord("odd", "It is odd.", "line 7")
    return [
        document(ORIGIN, f"a:{n}", "text", media_type="")
        if outcome == "d"
        else rejection(ORIGIN, f"a:{n}", bad, 3)
        for n, outcome in enumerate(outcomes)
    ]


@pytest.mark.parametrize(
    "outcomes, n_rows",
    [("rrr", 3), ("rrrr", 4), ("rrrd", 4), ("d" * 9 + "rrrrrrrrr", 18), ("ddd" + "r" * 9, 8), ("rrrrrrr", 4)],
)
def test_a_file_of_mostly_rejected_records_is_abandoned(
    outcomes: str, n_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_REJECTED_ROWS", 3)
    rows = list(bounded(iter(rows_of(outcomes)), ORIGIN, "a"))
    assert len(rows) == n_rows
    if n_rows < len(outcomes) or outcomes == "rrrd":
        last = rows[-1]
        assert (last["reason"], last["key"], last["location"]) == ("too_many_rejected", "a", "line 7")


def test_the_parts_of_a_file_share_its_own_rows_and_name_what_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "MAX_OWN_ROWS", 8)
    monkeypatch.setattr(bounds, "MAX_REJECTED_ROWS", 12)
    n_rows = {
        share: len(list(bounded(iter(rows_of("r" * 9)), ORIGIN, "a", share))) for share in (1, 0.5, 0.01)
    }
    assert n_rows == {1: 9, 0.5: 5, 0.01: 2}
    for share, unread in ((1, "the file was not read"), (0.5, "this part of the file was not read")):
        *_, last = bounded(iter(rows_of("r" * 14)), ORIGIN, "a", share)
        assert last["detail"].startswith("12 of the first 12 records were rejected; " + unread)


def scanned(folder: Path, format: str, **files: bytes) -> dict[tuple[str, str | None], list[int]]:
    """The records of each row of these files, by file and reason."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    item = {"format": format, "source": "s", "place": pickle.dumps(LocalFiles.at(folder))}
    item["names"] = [os.fsencode(name) for name in files]
    table = pa.Table.from_batches(read_work([pa.RecordBatch.from_pylist([item], schema=WORK)], Fields()))
    assert len(set(table["doc_id"].to_pylist())) == table.num_rows
    outcomes: dict[tuple[str, str | None], list[int]] = {}
    for row in table.select(["file", "reason", "n_records"]).to_pylist():
        outcomes.setdefault((row["file"], row["reason"]), []).append(row["n_records"] or 1)
    return outcomes


def test_a_file_of_line_feeds_is_one_row_with_their_number(tmp_path: Path) -> None:
    """A quarter of a megabyte holds 268 million lines, of which a million became rows."""
    content = gzip.compress(b"\n" * (64 << 20))
    assert scanned(tmp_path, "jsonl", **{"a.jsonl.gz": content, "b.jsonl": b'{"text": "b"}\n'}) == {
        ("a.jsonl.gz", "empty"): [64 << 20],
        ("b.jsonl", None): [1],
    }


@pytest.mark.invariant(
    "A bad record never ends a run; it becomes a row with location and reason, or is counted in one."
)
def test_a_flood_of_rejected_records_shares_rows_and_every_record_is_counted(tmp_path: Path) -> None:
    lines = [b"x\n", b"{}\n", b'{"text": ""}\n', b"\xc2\xa0\n"]
    outcomes = scanned(tmp_path, "jsonl", **{"a.jsonl": b"".join(lines) * 5_000, "b.jsonl": b"x\n{}\n"})
    first = {"not_json": 5_000, "no_text": 5_000, "empty": 10_000}
    assert {reason: sum(rows) for (file, reason), rows in outcomes.items() if file == "a.jsonl"} == first
    assert sum(len(rows) for rows in outcomes.values()) == bounds.MAX_OWN_ROWS + len(first) + 2

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number in range(3_000):
            archive.addfile(tarfile.TarInfo(f"{number}.txt"))
    assert scanned(tmp_path, "archive", **{"a.tar": buffer.getvalue()}) == {
        ("a.tar", "empty"): [1] * bounds.MAX_OWN_ROWS + [2_000]
    }


def test_as_many_rejected_records_as_documents_keep_rows_of_their_own(tmp_path: Path) -> None:
    content = b'{"text": "a"}\n\n' * 5_000 + b"x\n" * 2
    assert scanned(tmp_path, "jsonl", **{"a.jsonl": content}) == {
        ("a.jsonl", None): [1] * 5_000,
        ("a.jsonl", "empty"): [1] * 5_000,
        ("a.jsonl", "not_json"): [2],
    }


def test_a_shared_row_says_which_records_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_OWN_ROWS", 2)
    bad = [BadRecord("odd", "It is odd.", f"line {number}") for number in range(1, 6)]
    rows = [rejection(ORIGIN, f"a:{number}", error, 3) for number, error in enumerate(bad, 1)]
    *own, shared = bounded(iter(rows), ORIGIN, "a")
    assert own == rows[:2]
    assert (shared["key"], shared["location"]) == ("a:3", "line 3")
    assert (shared["n_records"], shared["n_bytes"]) == (3, 9)
    assert shared["detail"] == "3 records from line 3 to line 5 share this row. The first: It is odd."


def test_no_work_gives_no_batch() -> None:
    empty = pa.RecordBatch.from_pylist([], schema=WORK)
    assert list(read_work([empty], Fields())) == []
