"""What is known of an asset before it runs, and what it gives back when it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from factory.lake.names import TableName
from factory.lake.schemas import TableSchema
from factory.orchestration.checks import Check

Derived = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Tables:
    """What an asset with several tables, table properties or scratch to release returns.

    `beside` gives the further tables by suffix, each a DataFrame or a function of the main table's rows
    as they were written. `release` is called when everything is written.
    """

    rows: DataFrame
    beside: dict[str, DataFrame | Derived] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    release: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Output:
    """One table an asset writes."""

    table: TableName
    schema: TableSchema
    checks: Sequence[Check]


@dataclass(frozen=True)
class Declaration:
    """What `table_asset` knows of an asset; `outputs` ends with the main table."""

    table: TableName
    outputs: tuple[Output, ...]
    upstream: dict[str, TableName]
    code_version: str
    config: str
    chart: Callable[[DataFrame], str] | None = None


@dataclass(frozen=True)
class Parts:
    """What a run makes of a table: partitions by key, or all of it, which is the one key None.

    `alike` are the upstream tables that are partitioned as the asset is.
    """

    keys: tuple[str | None, ...] = (None,)
    alike: frozenset[TableName] = frozenset()

    @property
    def partitions(self) -> list[str] | None:
        """The keys of the partitions, None where the table is made as a whole."""
        keys = [key for key in self.keys if key is not None]
        return keys if len(keys) == len(self.keys) else None

    def only(self, keys: Iterable[str | None]) -> Parts:
        """The same with these keys alone."""
        return replace(self, keys=tuple(keys))
