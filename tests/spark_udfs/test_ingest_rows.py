"""A scan's batches hold what their schema says and stay small."""

from __future__ import annotations

import pyarrow as pa
import pytest

from factory.lake.schemas import RAW, REJECTED
from spark_udfs.ingest import WORK, read_work
from spark_udfs.ingest_records import Fields
from spark_udfs.ingest_rows import (
    BATCH_BYTES,
    BATCH_ROWS,
    SCAN,
    BadRecord,
    Origin,
    document,
    in_batches,
    rejection,
)

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


def test_no_work_gives_no_batch() -> None:
    empty = pa.RecordBatch.from_pylist([], schema=WORK)
    assert list(read_work([empty], Fields())) == []
