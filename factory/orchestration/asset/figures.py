"""The figures of a table that Dagster plots over its materializations, counted in the published rows.

    filtered.*                kept, rejected: documents
    dedup.*_decisions         kept, duplicates: documents; documents of dropped topics count as neither
    dedup.*_repositories      the same of repositories
    tokenized.*               tokens
    packed.*                  tokens, fill: the share of the room in all sequences

`figures_of(schema)` picks them by the columns of the table. Counting reads one or two narrow columns once;
Spark counts tables beyond the limits of `factory.orchestration.asset.rows`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.packing import SEQUENCE_LENGTH
from factory.orchestration.asset.rows import Rows

Figures = Callable[[Rows, Mapping[str, str]], dict[str, int | float]]  # of rows and table properties


def figures_of(schema: TableSchema) -> Figures:
    """Return the first figures of `_BY_COLUMNS` whose columns the table has, else none."""
    for columns, figures in _BY_COLUMNS:
        if set(columns) <= set(schema.names):
            return figures
    return lambda _rows, _properties: {}


def _verdicts(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float]:
    n = _count_by(rows, "kept")
    return {"kept": n[True,], "rejected": n[False,]}


def _decisions(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float]:
    n = _count_by(rows, "kept", "reason")
    return {
        "kept": sum(of for (kept, _), of in n.items() if kept),
        "duplicates": sum(of for (kept, reason), of in n.items() if not kept and reason != "topic"),
    }


def _tokens(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float]:
    return {"tokens": _sum(rows, "n_tokens")[0]}


def _fill(rows: Rows, properties: Mapping[str, str]) -> dict[str, int | float]:
    tokens, n_rows = _sum(rows, "n_tokens")
    room = n_rows * int(properties[SEQUENCE_LENGTH])
    return {"tokens": tokens, "fill": tokens / room} if room else {"tokens": tokens}


_BY_COLUMNS: tuple[tuple[tuple[str, ...], Figures], ...] = (
    (("kept", "rejections"), _verdicts),
    (("kept", "reason"), _decisions),
    (("segments", "n_tokens"), _fill),
    (("tokens", "n_tokens"), _tokens),
)


def _count_by(rows: Rows, *columns: str) -> Counter[tuple[Any, ...]]:
    """Count the rows by the values of `columns`."""
    found = Counter[tuple[Any, ...]]()
    batches = rows.read_locally(columns)
    if batches is None:
        for row in rows.frame().groupBy(*columns).agg(F.count("*")).collect():
            found[tuple(row)[:-1]] = row[-1]
        return found
    for batch in batches:
        read = pa.table({column: batch[column] for column in columns})
        for row in read.group_by(list(columns)).aggregate([([], "count_all")]).to_pylist():
            found[tuple(row[column] for column in columns)] += row["count_all"]
    return found


def _sum(rows: Rows, column: str) -> tuple[int, int]:
    """The sum of a column, and the number of rows."""
    batches = rows.read_locally([column])
    if batches is None:
        total = rows.frame().agg(F.sum(column), F.count("*")).first()
        assert total is not None
        return int(total[0] or 0), int(total[1])
    sums = [(pc.sum(batch[column]).as_py() or 0, len(batch)) for batch in batches]
    return sum(of for of, _ in sums), sum(n for _, n in sums)
