"""The numbers of lines in the rows of a part, and in the file.

A task that reads a part does not know how many lines are before it. So its rows count lines from the begin of
the part and have an empty key in place of `file:line`; a row without an id tells how many lines the part has.
Once all parts are read, `whole_numbers` completes the numbers, and the keys and ids that have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from factory.lake.identity import doc_id
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.rows import Row

OF_NUMBERS = ("doc_id", "source", "key", "file", "row", "location", "detail")
NUMBERED = pa.schema(
    [
        *((name, pa.string()) for name in ("doc_id", "key", "location", "detail")),
        ("row", pa.int64()),
    ]
)

# The sentences that name lines, as `bounded` and `line_row` write them.
_SHARED = re.compile(r"([\d,]+ records from )line (\d+)( to )line (\d+)( share this row\. The first: )")
_EMPTY = re.compile(r"The lines ([\d,]+) to ([\d,]+) are empty\.")


def number_of_lines(source: Input, n_lines: int) -> Row:
    """Return the row that tells how many lines a part has; it is neither a document nor rejected."""
    assert source.part is not None
    return {
        "source": source.origin.source,
        "file": source.key,
        "part_at": source.part.begin,
        "row": n_lines,
    }


def whole_numbers(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    """Yield the columns `NUMBERED` as one, for columns `OF_NUMBERS` and the number of lines before.

    Rows without that number stay as they are.
    """
    for arrays in columns:
        batch = pa.RecordBatch.from_arrays(list(arrays), names=[*OF_NUMBERS, "n_before"])
        if batch.column("n_before").null_count < batch.num_rows:
            rows = [row if row["n_before"] is None else _numbered(row) for row in batch.to_pylist()]
            batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema([*NUMBERED, ("n_before", pa.int64())]))
        yield pa.StructArray.from_arrays(
            [batch.column(name) for name in NUMBERED.names], fields=list(NUMBERED)
        )


def _numbered(row: dict[str, Any]) -> Row:
    n_before = row["n_before"]
    number = int(row["location"].removeprefix("line ")) + n_before
    key = row["key"] or f"{row['file']}:{number}"
    return {
        **row,
        "row": None if row["row"] is None else number,
        "location": f"line {number}",
        "key": key,
        "doc_id": row["doc_id"] if row["key"] else doc_id(row["source"], key),
        "detail": row["detail"] and _detail(row["detail"], n_before),
    }


def _detail(detail: str, n_before: int) -> str:
    start = ""
    if several := _SHARED.match(detail):
        n_records, first, to, last, rest = several.groups()
        start = f"{n_records}line {int(first) + n_before}{to}line {int(last) + n_before}{rest}"
        detail = detail[several.end() :]
    if empty := _EMPTY.fullmatch(detail):
        first, last = (int(number.replace(",", "")) + n_before for number in empty.groups())
        detail = f"The lines {first:,} to {last:,} are empty."
    return start + detail
