"""How figures are counted that Dagster plots over the materializations of a table.

Counting reads one or two narrow columns of the published rows once; Spark counts tables beyond the limits of
`factory.orchestration.table.rows`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from factory.clusters.evenness import effective_number, entropy, share_of_largest
from factory.orchestration.table.rows import Rows

NOTE = "note"  # the figure that is a phrase, which stands in the line of the run as well
Figures = Callable[[Rows, Mapping[str, str]], Mapping[str, int | float | str]]  # of rows and properties


def no_figures(rows: Rows, properties: Mapping[str, str]) -> dict[str, int | float]:  # noqa: ARG001
    """The figures of a table that has none."""
    return {}


def count_by(rows: Rows, *columns: str) -> Counter[tuple[Any, ...]]:
    """Count the rows by the values of `columns`."""
    numbers = Counter[tuple[Any, ...]]()
    batches = rows.read_locally(columns)
    if batches is None:
        for row in rows.frame().groupBy(*columns).agg(F.count("*")).collect():
            numbers[tuple(row)[:-1]] = row[-1]
        return numbers
    for batch in batches:
        table = pa.table({column: batch[column] for column in columns})
        for row in table.group_by(list(columns)).aggregate([([], "count_all")]).to_pylist():
            numbers[tuple(row[column] for column in columns)] += row["count_all"]
    return numbers


def evenness(counts: npt.ArrayLike) -> dict[str, float]:
    """How evenly documents are spread over categories, by the documents of each."""
    return {
        "entropy": entropy(counts),
        "effective number": effective_number(counts),
        "share of the largest 1 %": share_of_largest(counts),
    }


def total(rows: Rows, column: str) -> tuple[int, int]:
    """Return the sum of a column, and the number of rows."""
    batches = rows.read_locally([column])
    if batches is None:
        sums = rows.frame().agg(F.sum(column), F.count("*")).first()
        assert sums is not None
        return int(sums[0] or 0), int(sums[1])
    pairs = [(pc.sum(batch[column]).as_py() or 0, len(batch)) for batch in batches]
    return sum(part for part, _ in pairs), sum(n_rows for _, n_rows in pairs)
