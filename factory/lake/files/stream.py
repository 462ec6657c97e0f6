"""The rows of a snapshot of any size, in batches: one batch of one file is in memory at a time.

PyIceberg's own batches hold whole files, several at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from factory.lake.files.damage import planning, scanning
from factory.lake.files.registered import RegisteredTexts, filled
from factory.lake.files.scan import rows_of_files
from factory.lake.schemas.ingest import TEXT_AT

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import FileScanTask, Table

_REGISTERED_ROWS = 1024  # whose texts, which stay in the user's files, are in memory together


def stream(
    table: Table,
    snapshot_id: int,
    schema: pa.Schema,
    where: BooleanExpression | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the columns of `schema` in batches of some megabytes, registered texts filled in.

    Files are skipped if their statistics rule out `where`; rows of the other files are not filtered. A file
    with deleted rows is held in memory whole. Raises DamagedFile with the file's name, also for a registered
    text with another hash, and SourceChanged for a registered file that changed.
    """
    from pyiceberg.expressions import AlwaysTrue

    with planning(table, table.snapshot_by_id(snapshot_id)):
        scan = table.scan(AlwaysTrue() if where is None else where, snapshot_id=snapshot_id)
        tasks = sorted(scan.plan_files(), key=lambda task: task.file.file_path)
    registered = TEXT_AT.name in table.schema().column_names and "text" in schema.names
    projection = _with_locations(table, schema) if registered else schema
    texts = RegisteredTexts(table.io.properties)
    for task in tasks:
        read = (
            _without_deleted(table, task, projection)
            if task.delete_files
            else rows_of_files(table, [task], projection)
        )
        for batch in read:
            if registered:
                yield from _filled(batch, texts, schema.names)
            elif batch.num_rows:
                yield batch


def _with_locations(table: Table, schema: pa.Schema) -> pa.Schema:
    """Return `schema` with the columns that locate and verify registered texts."""
    if "content_hash" not in schema.names:
        schema = schema.append(table.schema().as_arrow().field("content_hash"))
    return schema.append(TEXT_AT)


def _filled(
    batch: pa.RecordBatch, texts: RegisteredTexts, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    for first in range(0, batch.num_rows, _REGISTERED_ROWS):
        rows = pa.Table.from_batches([batch.slice(first, _REGISTERED_ROWS)])
        yield from filled(rows, texts).select(columns).to_batches()


def _without_deleted(table: Table, task: FileScanTask, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    projected = table.schema().select(*schema.names)
    with scanning(table, [task], schema.names):
        rows = ArrowScan(table.metadata, table.io, projected, AlwaysTrue()).to_table([task])
    yield from rows.select(schema.names).cast(schema).to_batches()
