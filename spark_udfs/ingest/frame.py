"""Rows of a user's DataFrame as documents: columns by the names of `RAW`, the rest into `metadata`.

    text                                    the text, or its bytes in UTF-8
    key                                     identifies the row in its source; by default a hash of the row
    source                                  by default the name of the dataset
    media_type, language, repository, ...   the columns of the same name, if the type fits
    metadata                                the entries of a map or struct
    doc_id                                  `metadata.derived_from`: the document that the row is made from
    content_hash, n_bytes                   computed again
    partition                               of a dataset with partitions: the partition of the run
    any other                               `metadata`, as text, nested values as JSON

A row that is no document is a rejected record with the key `row <hash>`. The hash covers every column, so it
is the same in every run and any order of the rows, and equal rows share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from factory.lake.identity import DIGEST_BYTES
from factory.lake.schemas.ingest import REJECTED
from spark_udfs.ingest.files import decode_utf8
from spark_udfs.ingest.parquet_columns import is_string
from spark_udfs.ingest.records import MAPPED_COLUMNS, Fields, as_text, record
from spark_udfs.ingest.rows import (
    DERIVED_FROM,
    SAMPLE_BYTES,
    BadRecord,
    Origin,
    Row,
    in_batches,
    rejection,
)

TEXT, KEY, SOURCE, METADATA = "text", "key", "source", "metadata"
MEDIA_TYPE, PARTITION = "media_type", "partition"
_COMPUTED = ("content_hash", "n_bytes")
_OF_ROW = (TEXT, KEY, SOURCE, METADATA, MEDIA_TYPE, "doc_id", *MAPPED_COLUMNS, *_COMPUTED)
_LENGTH_BYTES = 8
# A value that Python lacks, nested text that is not UTF-8, a map with lists or structs as keys.
_UNREADABLE = (ValueError, OverflowError, ArithmeticError, TypeError)


def frame_fields(columns: Sequence[str], *, in_partitions: bool = False) -> Fields:
    """Return the fields of the records that a DataFrame with these `columns` has."""
    of_row = (*_OF_ROW, PARTITION) if in_partitions else _OF_ROW
    return Fields(
        text=TEXT,
        key=KEY if KEY in columns else None,
        columns={name: name for name in MAPPED_COLUMNS if name in columns},
        metadata=[name for name in columns if name not in of_row],
    )


def read_frame(
    batches: Iterable[pa.RecordBatch], dataset: str, *, in_partitions: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield batches of `SCAN` for batches of a DataFrame's rows."""
    return in_batches(row for batch in batches for row in _rows(batch, dataset, in_partitions))


def _rows(batch: pa.RecordBatch, dataset: str, in_partitions: bool) -> Iterator[Row]:
    fields = frame_fields(batch.schema.names, in_partitions=in_partitions)
    columns = [_cells(column) for column in batch.columns]
    for cells in zip(*columns, strict=True):
        yield _row(fields, dataset, dict(zip(batch.schema.names, cells, strict=True)))


def _cells(column: pa.Array) -> list[Any]:
    """Return the values of a column, with text as bytes, because Spark does not check for UTF-8."""
    if is_string(column.type):
        column = column.cast(pa.large_binary())
    try:
        cells: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    except _UNREADABLE:
        cells = [_cell(scalar) for scalar in column]
    return cells


def _cell(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py(maps_as_pydicts="lossy")
    except _UNREADABLE as error:
        return BadRecord("bad_value", f"It cannot be read: {error}.")


def _row(fields: Fields, dataset: str, cells: Mapping[str, Any]) -> Row:
    digest = _hash(cells)
    location = f"row {digest}"
    source = dataset
    try:
        values = {name: _value(name, cell) for name, cell in cells.items()}
        origin = values.get(SOURCE)
        source = origin if isinstance(origin, str) and origin else dataset
        row = record(Origin(source), fields, digest, values)
    except BadRecord as bad:
        text = cells.get(TEXT)
        content = text if isinstance(text, bytes) else b""
        bad_row = BadRecord(bad.reason, bad.detail, _place(cells, location))
        return rejection(Origin(source), location, bad_row, len(content), content)
    media_type = values.get(MEDIA_TYPE)
    return {
        **row,
        MEDIA_TYPE: media_type if isinstance(media_type, str) and media_type else row[MEDIA_TYPE],
        "metadata": _metadata(values, row),
        "location": location,
    }


def _value(name: str, cell: Any) -> Any:
    """Return a value as records have it; raises BadRecord `not_utf8` and `bad_value`."""
    if isinstance(cell, BadRecord):
        raise BadRecord(cell.reason, f"Column `{name}` holds a value that is not one. {cell.detail}")
    if not isinstance(cell, bytes):
        return cell
    try:
        return decode_utf8(cell)
    except BadRecord as bad:
        if name in (TEXT, KEY, SOURCE):
            raise BadRecord(bad.reason, f"Column `{name}`: {bad.detail}") from None
        return cell.hex()


def _metadata(values: Mapping[str, Any], row: Row) -> list[tuple[str, str]] | None:
    """Return the facts of a row with the entries of its column `metadata`, which come first."""
    column = values.get(METADATA)
    entries = column.items() if isinstance(column, Mapping) else [(METADATA, column)]
    facts_of_row = {as_text(name): as_text(cell) for name, cell in entries if cell is not None}
    facts_of_row |= dict(row["metadata"] or ())
    for name in (SOURCE, MEDIA_TYPE):
        cell = values.get(name)
        if cell is not None and not isinstance(cell, str):
            facts_of_row[name] = as_text(cell)
    if (parent := values.get("doc_id")) is not None and parent != row["doc_id"]:
        facts_of_row.setdefault(DERIVED_FROM, as_text(parent))
    return list(facts_of_row.items()) or None


def _place(cells: Mapping[str, Any], location: str) -> str:
    """Return the row's own key as its place, for a person to find it, or its hash."""
    key = cells.get(KEY)
    if isinstance(key, bytes):
        key = key[:SAMPLE_BYTES].decode("utf-8", "replace")
    return f"key {key}" if key is not None and not isinstance(key, BadRecord) else location


def _hash(cells: Mapping[str, Any]) -> str:
    """Return 32 hex digits for the values of a row, in any order of its columns."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for name in sorted(cells):
        cell = cells[name]
        if cell is None:  # a column of nulls that a later DataFrame adds changes no key
            continue
        content = cell if isinstance(cell, bytes) else as_text(cell).encode()
        for part in (name.encode(), content):
            digest.update(len(part).to_bytes(_LENGTH_BYTES, "little"))
            digest.update(part)
    return digest.hexdigest()


def key_taken_in_frame(groups: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rejected records for groups of equal rows with the key of the earlier row at `first`."""
    for batch in groups:
        rows = []
        for row in batch.to_pylist():
            equal = row["location"] == row["first"]
            detail = (
                f"The key `{row['key']}` is taken by an equal row."
                if equal
                else f"The key `{row['key']}` is taken by another row, {row['first']}."
            )
            bad = BadRecord("key_taken", detail, f"key {row['key']}")
            sample = (row["sample"] or "").encode("utf-8", "replace")
            origin = Origin(row["source"])
            rows.append(rejection(origin, row["location"], bad, row["n_bytes"], sample, row["n_records"]))
        yield pa.RecordBatch.from_pylist(rows, schema=REJECTED.columns)
