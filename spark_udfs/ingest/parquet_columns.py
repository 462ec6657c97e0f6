"""The columns of a Parquet file that declared fields name: a column, or a field of its structs by a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_udfs.ingest.field_paths import splits
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.rows import BadRecord


@dataclass(frozen=True)
class PathColumn:
    """The column at a path: its type, and the names from a column of the file down to it."""

    path: str
    names: tuple[str, ...]
    type: pa.DataType

    def values_in(self, batch: pa.RecordBatch) -> pa.Array:
        """Return its values; below a null struct they are null."""
        column = batch.column(self.names[0])
        for name in self.names[1:]:
            column = pc.struct_field(column, [column.type.get_field_index(name)])
        return column


def declared_columns(schema: pa.Schema, fields: Fields) -> list[PathColumn]:
    """Return the columns that `fields` names, as far as the file has them.

    Raises BadRecord `repeated_field`, and for a file that holds nothing to make texts of `no_text`,
    `text_not_a_string`, `no_messages` and `messages_not_a_list`.
    """
    columns = {path: column for path in fields.names if (column := column_at(schema, path)) is not None}
    text_column = fields.text_column_among(columns)
    paths = fields.contents if text_column is None else [text_column]
    contents = [columns[path] for path in paths if path in columns]
    reason = "no_text" if fields.conversation is None else "no_messages"
    if not contents:
        missing = " and no column ".join(f"`{path}`" for path in fields.contents)
        detail = f"The file has no column {missing}, only {', '.join(schema.names)}."
        raise BadRecord(reason, detail)
    for column in contents:
        if fields.conversation is not None:
            if not is_list(column.type):
                detail = f"Column `{column.path}` holds {column.type}, not lists of messages."
                raise BadRecord("messages_not_a_list", detail)
        elif not (is_plain(column.type) if text_column is None else is_text(column.type)):
            raise BadRecord("text_not_a_string", f"Column `{column.path}` holds {column.type}, not text.")
    return list(columns.values())


def column_at(schema: pa.Schema, path: str) -> PathColumn | None:
    """Return the column at a path, None without one; raises BadRecord `repeated_field`."""
    column = _below(schema, path)
    return None if column is None else PathColumn(path, *column)


def _below(parent: Any, path: str) -> tuple[tuple[str, ...], pa.DataType] | None:
    """Return names and type of the column at a path below a schema or a struct; exact names come first."""
    if indices := parent.get_all_field_indices(path):
        if len(indices) > 1:
            raise BadRecord("repeated_field", f"The file has two columns `{path}`. Rename one.")
        return (path,), parent.field(indices[0]).type
    for name, rest in splits(path):
        indices = parent.get_all_field_indices(name)
        kind = parent.field(indices[0]).type if len(indices) == 1 else None
        if kind is not None and pa.types.is_struct(kind) and (column := _below(kind, rest)) is not None:
            return (name, *column[0]), column[1]
    return None


def every_column(schema: pa.Schema) -> Iterator[PathColumn]:
    """Yield all columns; a struct precedes its fields."""
    for field in schema:
        yield from _with_nested((field.name,), field.type)


def _with_nested(names: tuple[str, ...], kind: pa.DataType) -> Iterator[PathColumn]:
    yield PathColumn(".".join(names), names, kind)
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            yield from _with_nested((*names, kind.field(index).name), kind.field(index).type)


def is_text(kind: pa.DataType) -> bool:
    """Whether values, also in a dictionary, are text, or bytes that may be UTF-8."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    return is_string(kind) or is_bytes


def is_string(kind: pa.DataType) -> bool:
    """Whether values are declared to be text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def is_plain(kind: pa.DataType) -> bool:
    """Whether values are one word, number or text, which a template takes, not several of them."""
    return not pa.types.is_nested(kind)
