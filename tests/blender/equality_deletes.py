"""A snapshot with delete files, which PyIceberg itself does not write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import Record


class _ManifestOfDeletes(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _AppendDeletes(_FastAppendFiles):
    def new_manifest_writer(self, spec: Any) -> ManifestWriterV2:
        return _ManifestOfDeletes(
            spec, self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression
        )


def delete_equal(table: Table, column: str, values: pa.Array, path: Path) -> None:
    """Delete the rows whose `column` has one of `values`, by a file of these written to `path`."""
    field = table.schema().find_field(column)
    kept = pa.field(column, values.type, metadata={"PARQUET:field_id": str(field.field_id)})
    pq.write_table(pa.table([values], schema=pa.schema([kept])), path)
    _commit(
        table,
        path,
        len(values),
        content=DataFileContent.EQUALITY_DELETES,
        equality_ids=[field.field_id],
    )


def delete_positions(table: Table, data_file: str, positions: list[int], path: Path) -> None:
    """Delete rows of a data file by their positions, by a file of these written to `path`."""
    ids = {"file_path": b"2147483546", "pos": b"2147483545"}
    rows = pa.table({"file_path": [data_file] * len(positions), "pos": pa.array(positions, pa.int64())})
    named = pa.schema([field.with_metadata({"PARQUET:field_id": ids[field.name]}) for field in rows.schema])
    pq.write_table(rows.cast(named), path)
    _commit(table, path, len(positions), content=DataFileContent.POSITION_DELETES)


def _commit(table: Table, path: Path, n_rows: int, **fields: Any) -> None:
    deletes = DataFile.from_args(
        file_path=path.as_uri(),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=n_rows,
        file_size_in_bytes=path.stat().st_size,
        **fields,
    )
    deletes.spec_id = table.spec().spec_id
    with table.transaction() as transaction:
        properties = {"factory.content": "what is left"}  # like a published snapshot
        producer = _AppendDeletes(Operation.OVERWRITE, transaction, table.io, snapshot_properties=properties)
        producer.append_data_file(deletes)
        producer.commit()
