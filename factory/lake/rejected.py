"""Counts and places of rejected records: a row is one record, or several of one reason."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from factory.lake.names import TableName
from factory.lake.tables import Lake

N_RECORDS = "n_records"


def place_of_record(location: str, file: str | None, key: str) -> str:
    """Return where a rejected record is; its file is named unless its key begins with it."""
    return location if file is None or key.startswith(file) else f"{location} of `{file}`"


def count_rejected(lake: Lake, table: TableName) -> dict[str, int]:
    """Return the number of rejected records by reason, most first; raises TableNotFound and DamagedFile."""
    columns = [name for name in ("reason", N_RECORDS) if name in lake.table(table).schema().column_names]
    rows = lake.read(table, columns)
    if N_RECORDS not in columns:  # written before a row could stand for several records
        rows = rows.append_column(N_RECORDS, pa.nulls(len(rows), pa.int64()))
    records = pa.table({"reason": rows["reason"], N_RECORDS: pc.fill_null(rows[N_RECORDS], 1)})
    sums = records.group_by("reason").aggregate([(N_RECORDS, "sum")])
    ordered = sums.sort_by([(f"{N_RECORDS}_sum", "descending"), ("reason", "ascending")])
    return {row["reason"]: row[f"{N_RECORDS}_sum"] for row in ordered.to_pylist()}
