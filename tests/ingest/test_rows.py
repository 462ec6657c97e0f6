"""A scan's batches hold what their schema says and stay small."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from factory.lake.schemas import RAW, REJECTED
from spark_udfs.ingest import bounds
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
    assert set(SCAN.names) == {*RAW.names, *REJECTED.names, "file", "row", "text_at"}
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


def test_a_file_of_line_feeds_ends_at_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of a megabyte held 268 million lines, each of which became a row."""
    monkeypatch.setattr(bounds, "MAX_REJECTED_ROWS", 1_000)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"\n" * (64 << 20)))
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "b"}\n')
    item = {"format": "jsonl", "source": "s", "root": os.fsencode(tmp_path)}
    item["names"] = [b"a.jsonl.gz", b"b.jsonl"]
    table = pa.Table.from_batches(read_work([pa.RecordBatch.from_pylist([item], schema=WORK)], Fields()))
    assert table["reason"].to_pylist() == ["empty"] * 1_000 + ["too_many_rejected", None]
    assert table["location"][1_000].as_py() == "line 1001"
    assert table["file"].to_pylist() == ["a.jsonl.gz"] * 1_001 + ["b.jsonl"]


def test_no_work_gives_no_batch() -> None:
    empty = pa.RecordBatch.from_pylist([], schema=WORK)
    assert list(read_work([empty], Fields())) == []
