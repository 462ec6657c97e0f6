"""The rows of an asset, called partition by partition, in groups that are written one after another.

The function of a partitioned asset is called once per partition. Spark plans the union of n frames in a time
that grows with the square of n: a year of days planned for more than ten minutes. So the frames of a group
are a union, and a run of many partitions writes one group after another to its audit branch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.errors import ConfigurationError
from factory.lake.schemas.base import TableSchema
from factory.lake_spark import audit as spark_audit
from factory.orchestration.table.declaration import (
    AssetResult,
    Declaration,
    PartitionSelection,
    Tables,
    note_of,
    together,
)

GROUP_SIZE = 32  # partitions


@dataclass(frozen=True)
class PartitionGroup:
    """The tables of each partition of a group by key, or of a whole table under None."""

    tables: dict[str | None, Tables]
    schemas: dict[str, TableSchema]
    """The schema of the main table under "", of a side table under its suffix."""

    @property
    def partitions(self) -> list[str] | None:
        """The keys, None for a whole table."""
        return None if None in self.tables else [str(key) for key in self.tables]

    def rows(self) -> DataFrame:
        """Return the rows of the main table; the column `partition` holds the key."""
        if None in self.tables:
            whole = self.tables[None]
            return whole.registered.rows if whole.registered else whole.rows
        return self._union("", {key: tables.rows for key, tables in self.tables.items()})

    def side_rows(self, suffix: str, written: DataFrame) -> DataFrame:
        """Return the rows of a side table; `written` has the rows of the main table."""
        frames = {}
        for key, tables in self.tables.items():
            side_table = tables.side_tables[suffix]
            if not isinstance(side_table, DataFrame):
                side_table = side_table(written if key is None else written.where(_is(key)))
            frames[key] = side_table
        return frames[None] if None in frames else self._union(suffix, frames)

    def _union(self, suffix: str, frames: dict[str | None, DataFrame]) -> DataFrame:
        schema = self.schemas[suffix]
        marked = [
            spark_audit.conform(frame.withColumn("partition", F.lit(key)), schema)
            for key, frame in frames.items()
        ]
        return reduce(DataFrame.unionAll, marked)


def call(
    function: Callable[[str | None], AssetResult], parts: PartitionSelection, declared: Declaration
) -> tuple[Tables, list[PartitionGroup]]:
    """Call `function` for each key of `parts`; return the facts of all tables, and their rows in groups.

    The facts are the properties, inputs and release of all partitions; their rows are the groups'. Raises
    ConfigurationError if a source found no file.
    """
    made: dict[str | None, Tables] = {}

    def release() -> None:
        # A dead JVM holds no scratch, and its error must not hide the first one.
        with suppress(Py4JError, ConnectionError):
            for tables in made.values():
                tables.release()

    try:
        for key in parts.keys:
            result = function(key)
            tables = Tables.of(result)
            if any(reading.empty for reading in tables.inputs.values()):
                part = "" if key is None else f" of partition {key}"
                raise ConfigurationError(
                    f"{declared.table} found no file{part} to read. Correct its paths and patterns, or put "
                    "files there."
                )
            made[key] = tables if key is None else tables.rewritten()
    except BaseException:
        release()
        raise
    prefix = f"{declared.table.name}_"
    schemas = {
        "" if output.table == declared.table else output.table.name.removeprefix(prefix): output.schema
        for output in declared.outputs
    }
    keys = list(made)
    groups = [
        PartitionGroup({key: made[key] for key in keys[first : first + GROUP_SIZE]}, schemas)
        for first in range(0, len(keys), GROUP_SIZE)
    ]
    if parts.partitions is None:
        return made[None], groups
    every = list(made.values())
    merged_facts = together([tables.facts for tables in every])
    facts = replace(
        every[0],
        properties={name: value for tables in every for name, value in tables.properties.items()},
        said={},
        release=release,
        facts=merged_facts,
        note=note_of(merged_facts),
        max_rejected=min(tables.max_rejected for tables in every),
        inputs={key: ingested for key, tables in made.items() for ingested in tables.inputs.values()},
    )
    return facts, groups


def _is(key: str) -> Column:
    return F.col("partition") == key
