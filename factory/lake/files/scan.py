"""The rows of a snapshot, read from its files without PyIceberg's conversions.

PyIceberg reads and writes a null list of structs as an empty one. That would change a content fingerprint, so
code outside Spark that computes fingerprints reads rows here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from factory.lake.files.damage import planning, scanning
from factory.lake.files.parquet import open_parquet
from factory.lake.files.sequential import without_views
from factory.lake.schemas.ingest import TEXT_AT

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table

_ROWS_AT_ONCE, _BYTES_AT_ONCE = 1 << 16, 8 << 20


def stored(table: Table, snapshot_id: int, schema: pa.Schema) -> Iterator[pa.RecordBatch] | None:
    """Yield the columns of `schema` in batches of some megabytes; a column missing in a file is null.

    Returns None if the files do not hold everything: rows are deleted, or texts registered.
    """
    if TEXT_AT.name in table.schema().column_names:
        return None
    with planning(table, table.snapshot_by_id(snapshot_id)):
        tasks = list(table.scan(snapshot_id=snapshot_id).plan_files())
    if any(task.delete_files for task in tasks):
        return None
    return rows_of_files(table, tasks, schema)


def rows_of_files(table: Table, tasks: list[FileScanTask], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the columns of `schema` of planned files, in batches of some megabytes.

    Flat columns have the types of `schema`, nested columns the types of the file without views.
    """
    for task in tasks:
        with scanning(table, [task], schema.names), table.io.new_input(task.file.file_path).open() as file:
            parquet = open_parquet(file)
            present = [name for name in schema.names if name in parquet.schema_arrow.names]
            for batch in parquet.iter_batches(_rows_at_once(parquet.metadata), columns=present):
                whole = pa.concat_tables(
                    [schema.empty_table(), _cast(batch, schema)], promote_options="permissive"
                )
                yield from whole.to_batches()


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Return the rows with dictionaries, views and narrower numbers cast to the types of `schema`."""
    batch = without_views(batch)
    fields = [
        field if pa.types.is_nested(field.type) else field.with_type(schema.field(field.name).type)
        for field in batch.schema
    ]
    return pa.Table.from_batches([batch.cast(pa.schema(fields))])


def _rows_at_once(facts: pq.FileMetaData) -> int:
    n_bytes = sum(facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
    return max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE * facts.num_rows // max(1, n_bytes)))
