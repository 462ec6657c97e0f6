"""Documents from the rows of a Parquet file, read in batches of bounded size.

Each row is one record and lands exactly once: as a document, or rejected with `row N` (from 0). A file
that cannot be opened, or has no column of text, is one rejected record; so is what is left of a row
group from the row where it breaks, and the row groups after it are read all the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from factory.lake.registered import Place, location
from spark_udfs.ingest_files import Input, bad_read, decode_utf8, opened
from spark_udfs.ingest_records import Fields, record
from spark_udfs.ingest_rows import BATCH_BYTES, BATCH_ROWS, BadRecord, Origin, Row, rejection

BUFFER_BYTES = 1 << 20  # of a column chunk held at a time
_UNREADABLE = (OSError, pa.ArrowException, ValueError)  # what pyarrow raises for bytes that are no Parquet


def parquet_file(source: Input, fields: Fields, *, registered: bool = False) -> Iterator[Row]:
    """One row a row of the file, and one more for the file or for each row group that breaks.

    Documents of a `registered` file say where their text lies.
    """
    n_bytes = 0
    try:
        with opened(source) as file:
            facts = os.fstat(file.fileno())
            n_bytes = facts.st_size
            text_at = None
            if registered:
                text_at = Place(location(source.path), fields.text, -1, n_bytes, facts.st_mtime_ns)
            try:
                parquet = pq.ParquetFile(
                    file, buffer_size=BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
                )
            except _UNREADABLE as error:
                raise _broken(error) from None
            names = _columns(parquet.schema_arrow, fields)
            first = 0
            for group in range(parquet.num_row_groups):
                for row, made in _row_group(source, fields, parquet, group, names, first):
                    if text_at is not None and "reason" not in made:
                        made["text_at"] = text_at._replace(row=row)._asdict()
                    yield made
                first += parquet.metadata.row_group(group).num_rows
            if not first:
                raise BadRecord("empty", "The file holds no row.", "row 0")
    except BadRecord as bad:
        yield rejection(source.origin, source.key, bad, n_bytes)


def _broken(error: Exception) -> BadRecord:
    if isinstance(error, OSError) and error.errno is not None:
        return bad_read(error)
    return BadRecord("corrupt", f"The Parquet data cannot be read: {' '.join(str(error).split())}")


def _columns(schema: pa.Schema, fields: Fields) -> list[str]:
    if fields.text not in schema.names:
        raise BadRecord("no_text", f"The file has no column `{fields.text}`, only {', '.join(schema.names)}.")
    kind = schema.field(fields.text).type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (_is_string(value) or _is_bytes(value)):
        raise BadRecord("text_not_a_string", f"Column `{fields.text}` holds {kind}, not text.")
    return [name for name in fields.names if name in schema.names]


def _is_string(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)


def _row_group(
    source: Input, fields: Fields, parquet: pq.ParquetFile, group: int, names: list[str], first: int
) -> Iterator[tuple[int, Row]]:
    facts = parquet.metadata.row_group(group)
    end = first + facts.num_rows
    row_bytes = max(1, facts.total_byte_size // max(1, facts.num_rows))
    batch_rows = min(BATCH_ROWS, max(1, BATCH_BYTES // row_bytes))
    row = first
    try:
        for batch in parquet.iter_batches(batch_rows, row_groups=[group], columns=names, use_threads=False):
            for values in _values(batch):
                yield row, _row(source.origin, fields, source.key, row, values)
                row += 1
    except _UNREADABLE as error:
        broken = _broken(error)
        detail = f"Rows {row} to {end - 1}: {broken.detail}"
        yield (
            row,
            rejection(
                source.origin,
                f"{source.key}:{row}",
                BadRecord(broken.reason, detail, f"row {row}"),
                facts.total_byte_size,
            ),
        )


def _values(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch; text as bytes, since pyarrow does not look whether it is UTF-8."""
    columns = {}
    for name in batch.schema.names:
        column = batch.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if _is_string(column.type):
            column = column.cast(pa.large_binary())
        columns[name] = column
    for index in range(batch.num_rows):
        yield {name: column[index] for name, column in columns.items()}


def _row(origin: Origin, fields: Fields, path: str, row: int, scalars: dict[str, Any]) -> Row:
    place, key = f"row {row}", f"{path}:{row}"
    text = scalars[fields.text].as_py() or b""
    try:
        values = {name: _value(name, scalar) for name, scalar in scalars.items()}
        return {**record(origin, fields, key, values, place), "file": path, "row": row, "place": place}
    except BadRecord as bad:
        return rejection(origin, key, BadRecord(bad.reason, bad.detail, place), len(text), text)


def _value(name: str, scalar: Any) -> Any:
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError, ArithmeticError) as error:
        raise BadRecord("bad_value", f"Column `{name}` holds a value that cannot be read: {error}.") from None
    return decode_utf8(value) if isinstance(value, bytes) else value
