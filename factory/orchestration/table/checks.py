"""Checks of a table, run on its audit branch before publishing; one query answers all checks of rows.

A row check is an SQL aggregate that counts violations and passes at zero, or a figure with a limit. A file
check inspects the layout of a table and reports violations as sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.counted import conjunction
from factory.lake.schemas.base import TableSchema

if TYPE_CHECKING:
    from pyiceberg.table import Table


_REMARK = "factory.remark."  # snapshot property: the sentence of a check of remarks, by its name


@dataclass(frozen=True)
class Check:
    """A named aggregate over `columns` that counts violations.

    It covers the rows that a run wrote; `whole` extends it to the partitions that the run left alone.
    `distinct` requires that no two rows agree on `columns`. A check that is not `blocking` warns, and the
    table is published. `files` replaces the SQL: it returns a sentence for each violation in the files of a
    snapshot. `limit` makes the aggregate a figure that must not exceed it.
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
        """Return the result under the names that Dagster and the command line show."""
        return {"violations": found} if self.limit is None else {"measured": found, "limit": self.limit}

    def passes(self, found: float) -> bool:
        """Whether `found` is zero violations, or a figure within the limit."""
        return found <= (self.limit or 0)


def unique(*columns: str) -> Check:
    """No two rows have the same `columns`."""
    key = ", ".join(columns)
    column_names = [f"`{column}`" for column in columns]
    return Check(
        name=f"unique_{'_'.join(columns)}",
        violations=f"count(1) - count(DISTINCT {key})",
        columns=columns,
        description=f"No two rows have the same {conjunction(column_names)}.",
        whole=True,
        distinct=True,
    )


def holds(name: str, condition: str, *columns: str, description: str = "") -> Check:
    """`condition`, an SQL expression over `columns`, is true in every row.

    Without a `description` the name is the sentence that Dagster shows: `every_edge_is_similar`.
    """
    sentence = description or f"{name.replace('_', ' ').capitalize()}."
    return Check(name, f"count_if(NOT coalesce({condition}, false))", columns, sentence)


def aggregate(name: str, violations: str, description: str, *columns: str) -> Check:
    """`violations`, an SQL aggregate over `columns`, is zero."""
    return Check(name, violations, columns, description)


def alarm(name: str, violations: str, description: str, *columns: str, limit: float | None = None) -> Check:
    """Warn when `violations`, an SQL aggregate over `columns`, exceeds `limit` (default zero)."""
    return Check(name, violations, columns, description, blocking=False, limit=limit)


def layout(name: str, found: Callable[[Table, int], list[str]], description: str) -> Check:
    """Warn when `found` reports anything about the files of a snapshot; the rows are correct either way."""
    return Check(name, "", (), description, whole=True, blocking=False, files=found)


def remark(name: str, description: str) -> Check:
    """Warn with the sentence that the function of the asset gives by `remarks`.

    A sentence belongs to the snapshot, so a run that keeps the table says it again.
    """
    return layout(name, partial(_remark, name), description)


def remarks(sentences: Mapping[str, str]) -> dict[str, str]:
    """Return the snapshot properties for the sentences of `remark` checks, by name; an empty one passes."""
    return {_REMARK + name: sentence for name, sentence in sentences.items() if sentence}


def _remark(name: str, table: Table, snapshot_id: int) -> list[str]:
    snapshot = table.snapshot_by_id(snapshot_id)
    summary = snapshot.summary if snapshot is not None else None
    sentence = summary.additional_properties.get(_REMARK + name) if summary is not None else None
    return [sentence] if sentence else []


def checks_of(schema: TableSchema, checks: Sequence[Check] = ()) -> list[Check]:
    """Return the uniqueness check of the schema's key, if it has one, followed by `checks`."""
    return [unique(*schema.key), *checks] if schema.key else list(checks)


def repeated(rows: DataFrame, schema: TableSchema, n: int = 3) -> str:
    """Name `n` keys that more than one row has, and say what to change; documents by source and key."""
    columns = ["source", "key"] if {"source", "key"} <= set(schema.names) else list(schema.key)
    of_datasets = "dataset" in schema.names and "dataset" not in columns
    datasets = F.array_sort(F.collect_set("dataset")) if of_datasets else F.array()
    keys = rows.groupBy(*columns).agg(F.count(F.lit(1)).alias("count"), datasets.alias("datasets"))
    several = keys.where("count > 1").orderBy(*columns).limit(n).collect()
    shown = [" / ".join(str(row[column]) for column in columns) for row in several]
    if not any(len(row["datasets"]) > 1 for row in several):
        return f"{'; '.join(shown)}: give every row a key of its own"
    shown = [f"{key} in {' and '.join(row['datasets'])}" for key, row in zip(shown, several, strict=True)]
    return (
        f"{'; '.join(shown)}: documents with the same source and key have the same id, so give one of these "
        "datasets another `source`, or its repository's folder another name"
    )


def said(figures: Mapping[str, float]) -> str:
    """Format the figures of a check for people."""
    if "limit" in figures:
        return f"{figures['measured']:.3g}, at most {figures['limit']:g}"
    return f"{figures['violations']:,.0f} violation{'s' if figures['violations'] != 1 else ''}"


def in_files(table: Table, snapshot_id: int, checks: Sequence[Check]) -> dict[str, list[str]]:
    """Run the file checks on a snapshot; return their sentences by check name."""
    return {check.name: check.files(table, snapshot_id) for check in checks if check.files}


def violations(rows: DataFrame, checks: Sequence[Check]) -> dict[str, float]:
    """Run the row checks on `rows`; return violations, or the figure of a check with a limit."""
    asked = [check for check in checks if check.files is None]
    if not asked:
        return {}
    found = rows.agg(*[F.expr(check.violations).alias(check.name) for check in asked]).first()
    assert found is not None
    return {check.name: (int if check.limit is None else float)(found[check.name] or 0) for check in asked}
