"""Checks of a table's rows, all of one table answered by one query over its audit branch.

A check is an SQL aggregate that counts violations; it passes when the count is zero. One of files looks at
how a table is laid out, and says in sentences what it found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    violation in the files of a snapshot, and asks no SQL.
    """

    name: str
    violations: str
    columns: tuple[str, ...]
    description: str
    whole: bool = False
    distinct: bool = False
    blocking: bool = True
    files: Callable[[Table, int], list[str]] | None = None


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


def alarm(name: str, violations: str, description: str, *columns: str) -> Check:
    """A warning where `violations`, an SQL aggregate over `columns`, is not zero."""
    return Check(name, violations, columns, description, blocking=False)


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


def in_files(table: Table, snapshot_id: int, checks: Sequence[Check]) -> dict[str, list[str]]:
    """What each of `checks` that is one of files says of a snapshot."""
    return {check.name: check.files(table, snapshot_id) for check in checks if check.files}


def violations(rows: DataFrame, checks: Sequence[Check]) -> dict[str, int]:
    """How many violations each check of rows finds in `rows`."""
    asked = [check for check in checks if check.files is None]
    if not asked:
        return {}
    found = rows.agg(*[F.expr(check.violations).alias(check.name) for check in asked]).first()
    assert found is not None
    return {check.name: int(found[check.name] or 0) for check in asked}
