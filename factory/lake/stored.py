"""The rows of a snapshot as their files have them.

PyIceberg gives, and writes, an empty list for a null one of structs. That would change a content fingerprint,
so what is fingerprinted outside of Spark is read here.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table

from factory.lake.schemas import TEXT_AT


def stored(table: Table, snapshot_id: int, schema: pa.Schema) -> pa.Table | None:
    """The columns of `schema`, null in files that lack one.

    None where not all is in the files: where rows of them are deleted, or texts registered.
    """
    if TEXT_AT.name in table.schema().column_names:
        return None
    found = [schema.empty_table()]
    for task in table.scan(snapshot_id=snapshot_id).plan_files():
        if task.delete_files:
            return None
        with table.io.new_input(task.file.file_path).open() as file:
            parquet = pq.ParquetFile(file)
            present = [name for name in schema.names if name in parquet.schema_arrow.names]
            found.append(parquet.read(present).replace_schema_metadata(None))
    return pa.concat_tables(found, promote_options="permissive")
