"""The columns of a user's own table, compared with the DataFrames of a run before a row is written.

A table without a declared schema takes its columns from the first DataFrame, and further ones from later
DataFrames. All are nullable, and a column that a DataFrame lacks is null in its rows: a table of Iceberg
never loses a column, because older snapshots have it. With a declared schema a DataFrame has exactly its
columns. Numbers become wider, never narrower, and decimals keep their scale; any other change of a type is
up to the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

import pyarrow as pa
from pyspark.sql import types as T

from factory.errors import ConfigurationError, DamagedFile
from factory.lake.names import OWN, TableName
from factory.lake.schemas.base import TableSchema, columns
from factory.lake.schemas.ingest import TEXT_AT
from factory.lake.tables import Lake, plain_type
from factory.orchestration.table.charts.registry import chart_of
from factory.orchestration.table.declaration import Declaration, Output
from factory.orchestration.table.frame_types import column_type, is_name
from factory.orchestration.table.partition_groups import PartitionGroup
from factory.suggestions import quoted

PARTITION = "partition"
_METADATA_COLUMNS = (  # of Iceberg, which Spark reads in place of a column of the table
    *("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"),
    *("_change_type", "_change_ordinal", "_commit_snapshot_id"),
)
_WIDER = ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))


def with_columns(
    lake: Lake, declaration: Declaration, groups: list[PartitionGroup]
) -> tuple[Declaration, list[PartitionGroup]]:
    """Return an own table's declaration and groups with the columns of this run; other tables as they are.

    Raises ConfigurationError with the column for a DataFrame that does not fit the schema or the table.
    """
    if declaration.table.namespace != OWN:
        return declaration, groups
    *side_tables, main = declaration.outputs
    frames = [tables.rows for group in groups for tables in group.tables.values()]
    schemas = [frame_columns(main.table, frame.schema) for frame in frames]
    if main.schema.is_open:
        fields = _fields_of_table(lake, main.table)
        for schema in schemas:
            fields = union(main.table, fields, schema)
        for column in chain(main.schema.key, *(check.columns for check in main.checks)):
            if column not in [field.name for field in fields]:
                raise ConfigurationError(
                    f"The rows of {main.table} have no column `{column}`, which its key or a check names. "
                    f"Their columns are {quoted(field.name for field in fields)}."
                )
        schema = replace(main.schema, columns=columns(*fields), is_open=False)
    else:
        schema = main.schema
        for frame in schemas:
            require_declared(main.table, frame, schema)
    output = Output(main.table, schema, main.checks, chart_of(main.table, schema), main.figures)
    return (
        replace(declaration, outputs=(*side_tables, output)),
        [replace(group, schemas={**group.schemas, "": schema}) for group in groups],
    )


def frame_columns(table: TableName, schema: T.StructType) -> pa.Schema:
    """Return the columns of a DataFrame in the types of the lake, without the `partition` of upstream rows.

    Raises ConfigurationError for names and types that a table cannot have.
    """
    fields = [
        field
        for field in schema.fields
        if field.name != PARTITION or not isinstance(field.dataType, T.StringType | T.NullType)
    ]
    require_names(table, [field.name for field in fields])
    return pa.schema(
        [pa.field(field.name, column_type(table, field.name, field.dataType)) for field in fields]
    )


def require_names(table: TableName, names: Sequence[str]) -> None:
    """Raise ConfigurationError unless the names are free, distinct and names of columns."""
    if not names:
        raise ConfigurationError(f"The rows of {table} have no column. Return a DataFrame with one or more.")
    for number, name in enumerate(names):
        if name.lower() in (PARTITION, TEXT_AT.name, *_METADATA_COLUMNS):
            raise _is_taken(table, name)
        if not is_name(name):
            raise ConfigurationError(
                f"The rows of {table} have a column named `{name}`. Use letters, digits and underscores, no "
                "digit first, because the files of a table spell other names differently."
            )
        others = [other for other in names[:number] if other.lower() == name.lower()]
        if others:
            raise ConfigurationError(
                f"The rows of {table} have the columns `{others[0]}` and `{name}`, which are one name to "
                "Spark. Rename or drop one, for example behind a join."
            )


def require_no_partition(table: TableName, names: Sequence[str]) -> None:
    """Raise ConfigurationError for a `partition` that comes from no table of the lake and from no key."""
    if PARTITION in names:
        raise _is_taken(table, PARTITION)


def _is_taken(table: TableName, name: str) -> ConfigurationError:
    return ConfigurationError(
        f"The rows of {table} have a column `{name}`, which every table keeps for itself. Rename it: "
        f'withColumnRenamed("{name}", "{name}_of_mine").'
    )


def _fields_of_table(lake: Lake, table: TableName) -> list[pa.Field]:
    """Return the columns that a table has, without `partition`; none of a new table."""
    try:
        existing = lake.table(table).schema().as_arrow() if lake.exists(table) else []
    except DamagedFile:  # the table is made again, or the error is raised where its branch begins
        return []
    return [
        pa.field(field.name, plain_type(field.type), field.nullable)
        for field in existing
        if field.name != PARTITION
    ]


def union(table: TableName, fields: Sequence[pa.Field], rows: pa.Schema) -> list[pa.Field]:
    """Return `fields` with the further columns of `rows`."""
    by_name = {field.name.lower(): field for field in fields}
    for field in rows:
        before = by_name.setdefault(field.name.lower(), field)
        if before.name != field.name:
            raise ConfigurationError(
                f"Table {table} has column `{before.name}`, and its function returns `{field.name}`, which "
                f'is the same name to Spark. Rename it: withColumnRenamed("{field.name}", "{before.name}").'
            )
        if before is not field and not _fits(field.type, before.type):
            raise ConfigurationError(
                f"Table {table} has column `{field.name}` as {before.type}, and its function returns "
                f"{field.type}. Cast it in the function, or give the table or the column another name."
            )
    for field in fields:
        if not field.nullable and field.name not in rows.names:
            raise ConfigurationError(
                f"Table {table} has column `{field.name}` without nulls, and its function returns no such "
                "column. Return it, or give the table another name."
            )
    return list(by_name.values())


def require_declared(table: TableName, rows: pa.Schema, schema: TableSchema) -> None:
    """Raise ConfigurationError unless `rows` have the declared columns, in types that become these."""
    names = [name for name in schema.names if name != PARTITION]
    for problem, missing in (
        ("lack", [name for name in names if name not in rows.names]),
        ("have", [name for name in rows.names if name not in names]),
    ):
        if missing:
            relation = (
                "which its schema declares" if problem == "lack" else "which its schema does not declare"
            )
            raise ConfigurationError(
                f"The rows of {table} {problem} {_columns(missing)}, {relation}. "
                f"Select the declared columns: {quoted(names)}."
            )
    for name in names:
        declared_type, present = plain_type(schema.columns.field(name).type), rows.field(name).type
        if not _fits(present, declared_type):
            raise ConfigurationError(
                f"The rows of {table} have column `{name}` as {present}, and its schema declares "
                f"{declared_type}. Cast it in the function, or correct the schema."
            )


def _columns(names: Iterable[str]) -> str:
    words = list(names)
    return f"column{'s' if len(words) > 1 else ''} {quoted(words)}"


def _fits(present: pa.DataType, other: pa.DataType) -> bool:
    """Whether every value of the first type is one of the second."""
    if pa.types.is_decimal128(present) and pa.types.is_decimal128(other):
        return present.scale == other.scale and present.precision <= other.precision
    return plain_type(present) == other or (present, other) in _WIDER
