"""`@table_asset` of `factory.api`: a table of the user's own, which no stage writes.

    @table_asset(group_name="nl", partitions_def=dg.StaticPartitionsDefinition(["de", "en"]))
    def articles(context, pyspark, partition) -> DataFrame:
        return pyspark.spark_session.read.parquet(f"/data/articles/{partition}")

The table is `own.articles`, and the argument `own_articles` of another function reads it. Own tables have a
namespace of their own, so that none has the name of a stage's table. `group_name` is a group in Dagster's
graph; it is no part of the table's name, so that a table may change its group. The function takes the same
arguments as every asset's (`factory.orchestration.table.table_asset`). Without a schema the table has the
columns of the DataFrame (`factory.orchestration.table.frame_columns`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import dagster as dg
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from factory.errors import ConfigurationError, first_line
from factory.ingest.readers import Ingested, Ingests
from factory.lake.names import OWN, TableName
from factory.lake.schemas.base import TableSchema, columns
from factory.orchestration.table.configuration import Config
from factory.orchestration.table.declaration import FilesOf, Tables
from factory.orchestration.table.frame_columns import frame_columns, require_names, require_no_partition
from factory.orchestration.table.table_asset import table_asset
from factory.suggestions import quoted

_GROUP = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*")


def own_table(
    *,
    group_name: str = OWN,
    name: str | None = None,
    schema: TableSchema | pa.Schema | None = None,
    key: str | Sequence[str] = (),
    upstream: Mapping[str, TableName | str] | None = None,
    config: Config = None,
    files: FilesOf | None = None,
    description: str | None = None,
    owners: Sequence[str] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
) -> Callable[[Callable[..., DataFrame]], dg.AssetsDefinition]:
    """Declare the decorated function as the asset of the table `own.<name>`, by default the function's name.

    Every argument of the function but `context`, `pyspark`, `ingests`, `partition` and `previous` is an
    upstream table: `raw_web` means `raw.web`, and `upstream` maps arguments that spell no table. Without a
    `schema` the table has the columns of the DataFrame. No two rows may agree on the columns of `key`.
    `config` holds everything but the code that decides the rows. `files` returns the files that the function
    reads, for a partition if there are any, so that `--changed` keeps the table while they are as they were.
    With `partitions_def` the function makes the one partition that `partition` names.

    Raises ConfigurationError at decoration for a wrong name, group, schema, key or argument.
    """
    if not _GROUP.fullmatch(group_name):
        raise ConfigurationError(
            f"`{group_name}` is not a group. Use letters, digits and underscores, with `/` between groups."
        )
    key_columns = (key,) if isinstance(key, str) else tuple(key)
    tables = {
        argument: TableName.parse(table) if isinstance(table, str) else table
        for argument, table in (upstream or {}).items()
    }

    def declare(function: Callable[..., DataFrame]) -> dg.AssetsDefinition:
        table = TableName(OWN, name or function.__name__)

        @wraps(function)
        def rows(**arguments: Any) -> Tables:
            ingests = arguments.get("ingests")
            n_before = n_readings(ingests)
            frame = require_frame(function(**arguments), f"The function of {table}")
            if partitions_def is None and arguments.keys() <= {"context", "pyspark"}:
                require_no_partition(table, frame.columns)
            release = ingests.release if isinstance(ingests, Ingests) else lambda: None
            return Tables(frame, release=release).leaving_out(other_readings(ingests, n_before))

        return table_asset(
            namespace=OWN,
            name=table.name,
            asset_group=group_name,
            schema=_schema(table, schema, key_columns),
            upstream=tables,
            config=config,
            files=files,
            description=description,
            owners=owners,
            partitions_def=partitions_def,
        )(rows)

    return declare


def n_readings(ingests: object) -> int:
    """Return how many results of readers are held."""
    return len(ingests.readings) if isinstance(ingests, Ingests) else 0


def other_readings(ingests: object, n_before: int, result_reading: Ingested | None = None) -> list[Ingested]:
    """Return the results of readers, since `n_before`, that are not in the one that a function returns."""
    if not isinstance(ingests, Ingests):
        return []
    scans = [
        reading.scan for reading in (result_reading.each_reading() if result_reading is not None else ())
    ]
    return [
        reading for reading in ingests.readings[n_before:] if not any(reading.scan is scan for scan in scans)
    ]


def require_frame(rows: object, where: str) -> DataFrame:
    """Return `rows` if they are a DataFrame of Spark; raises ConfigurationError with a remedy."""
    if isinstance(rows, DataFrame):
        return rows
    if rows is None:
        raise ConfigurationError(f"{where} returns nothing. End it with `return` and a DataFrame.")
    kind = type(rows)
    if isinstance(rows, Ingested):
        remedy = "Return its `documents`, or declare a dataset with `@source`."
    elif kind.__name__ in ("DataFrame", "Table") and kind.__module__.split(".")[0] in (
        *("pandas", "pyarrow", "polars"),
    ):
        frame = "frame.to_arrow()" if kind.__module__.startswith("polars") else "frame"
        remedy = f"Return `pyspark.spark_session.createDataFrame({frame})`."
    else:
        remedy = "Return a DataFrame of Spark."
    raise ConfigurationError(f"{where} returns {kind.__module__}.{kind.__qualname__}. {remedy}")


def _schema(table: TableName, schema: TableSchema | pa.Schema | None, key: tuple[str, ...]) -> TableSchema:
    if schema is None:
        return TableSchema(columns(), key, is_open=True)
    if isinstance(schema, TableSchema):
        return schema
    if not isinstance(schema, pa.Schema):
        raise ConfigurationError(
            f"The schema of {table} is {type(schema).__name__}. Give a schema of pyarrow, such as "
            '`pa.schema({"id": pa.int64(), "title": pa.string()})`, or none.'
        )
    require_names(table, schema.names)
    for name in key:
        if name not in schema.names:
            raise ConfigurationError(
                f"The key of {table} is `{name}`, which is not among its columns: {quoted(schema.names)}."
            )
    try:
        frame = from_arrow_schema(schema)
    except Exception as error:  # the class differs between versions of Spark
        raise ConfigurationError(
            f"The schema of {table} has a type that Spark lacks: {first_line(error)}. Declare another."
        ) from error
    kinds = frame_columns(table, frame)
    fields = [pa.field(field.name, kinds.field(field.name).type, field.nullable) for field in schema]
    return TableSchema(columns(*fields), key)
