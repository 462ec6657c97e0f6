"""Checks of a table's rows, all of one table answered by one query over its audit branch.

A check is an SQL aggregate that counts violations; it passes when the count is zero, or another figure within
its limit. One of files looks at how a table is laid out, and says in sentences what it found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.table import Table
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.lake.schemas import TableSchema


@dataclass(frozen=True)
class Check:
    """A named aggregate over `columns` that counts violations.

    It runs over the rows a run made; a check of the `whole` table also sees the partitions that stay. A
    `distinct` one asks that no two rows agree on `columns`, and nothing else. One that is not `blocking` is
    an alarm: it is shown as a warning, and the table is published. One of `files` gives a sentence for each
    violation in the files of a snapshot, and asks no SQL. With a `limit` the aggregate is a figure that may
    be as large, and no count.
    """

    name: str
    violations: str
    columns: tuple[str, ...]
    description: str
    whole: bool = False
    distinct: bool = False
    blocking: bool = True
    files: Callable[[Table, int], list[str]] | None = None
    limit: float | None = None

    def figures(self, found: float) -> dict[str, float]:
        """What was found of the check, by the names under which Dagster and the command line show it."""
        return {"violations": found} if self.limit is None else {"measured": found, "limit": self.limit}

    def passes(self, found: float) -> bool:
        """Whether that is no violation, or a figure within the limit."""
        return found <= (self.limit or 0)


def unique(*columns: str) -> Check:
    """No two rows agree on `columns`."""
    key = ", ".join(columns)
    return Check(
        name=f"unique_{'_'.join(columns)}",
        violations=f"count(1) - count(DISTINCT {key})",
        columns=columns,
        description=f"No two rows agree on ({key}).",
        whole=True,
        distinct=True,
    )


def holds(name: str, condition: str, *columns: str) -> Check:
    """`condition`, an SQL expression over `columns`, is true in every row."""
    return Check(name, f"count_if(NOT coalesce({condition}, false))", columns, f"{condition} in every row.")


def aggregate(name: str, violations: str, description: str, *columns: str) -> Check:
    """`violations`, an SQL aggregate over `columns`, is zero."""
    return Check(name, violations, columns, description)


def alarm(name: str, violations: str, description: str, *columns: str, limit: float | None = None) -> Check:
    """A warning where `violations`, an SQL aggregate over `columns`, is above `limit`, else above zero."""
    return Check(name, violations, columns, description, blocking=False, limit=limit)


def layout(name: str, found: Callable[[Table, int], list[str]], description: str) -> Check:
    """A warning where `found` says anything of the files of a snapshot, whose rows are right all the same."""
    return Check(name, "", (), description, whole=True, blocking=False, files=found)


def checks_of(schema: TableSchema, checks: Sequence[Check] = ()) -> list[Check]:
    """The key of the schema is unique, and `checks`."""
    return [unique(*schema.key), *checks]


def repeated(rows: DataFrame, schema: TableSchema, n: int = 3) -> list[str]:
    """`n` of the keys that more than one row has, a document's as its source and key."""
    columns = ["source", "key"] if {"source", "key"} <= set(schema.names) else list(schema.key)
    found = rows.groupBy(*columns).count().where("count > 1").orderBy(*columns).limit(n).collect()
    return [" / ".join(str(row[column]) for column in columns) for row in found]


def said(figures: Mapping[str, float]) -> str:
    """The figures of a check as a person reads them."""
    if "limit" in figures:
        return f"{figures['measured']:.3g}, at most {figures['limit']:g}"
    return f"{figures['violations']:,.0f} violation{'s' if figures['violations'] != 1 else ''}"


def in_files(table: Table, snapshot_id: int, checks: Sequence[Check]) -> dict[str, list[str]]:
    """What each of `checks` that is one of files says of a snapshot."""
    return {check.name: check.files(table, snapshot_id) for check in checks if check.files}


def violations(rows: DataFrame, checks: Sequence[Check]) -> dict[str, float]:
    """How many violations each check of rows finds in `rows`; of one with a limit its figure."""
    asked = [check for check in checks if check.files is None]
    if not asked:
        return {}
    found = rows.agg(*[F.expr(check.violations).alias(check.name) for check in asked]).first()
    assert found is not None
    return {check.name: (int if check.limit is None else float)(found[check.name] or 0) for check in asked}
