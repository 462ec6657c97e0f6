"""How a chart counts rows: by a value, by bins or by the size of groups; then it draws bars or curves.

Each chart reads a few columns of the published rows as Arrow batches, reduces them to a handful of numbers
and draws those. For a table beyond the limits of `factory.orchestration.table.rows` it shows a sample and
says so in its title.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from factory.orchestration.table import drawing
from factory.orchestration.table.drawing import Drawing
from factory.orchestration.table.rows import Rows

Chart = Callable[[Rows], Drawing]
Values = Callable[[pa.RecordBatch], pa.Array]  # the values to count in a batch, any number per row

KEPT = "kept"  # the label that leads a chart, in a color of its own
QUANTILES = 20  # steps of a quantile curve
STEPS = 50  # bins of a similarity or share between 0 and 1
SAMPLED_BYTES = 64 << 20  # compressed size of a sample
_MOST_BITS = 64  # of a count


def counts(column: str, title: str) -> Chart:
    """Rows by value of a column of words, most frequent first; the word `kept` leads."""

    def chart(rows: Rows) -> Drawing:
        return most_first(*counted(rows, [column], lambda batch: _labels(batch[column]), title))

    return chart


def by_partition(rows: Rows) -> Drawing:
    """Rows by partition, in the order of the keys."""
    numbers, title = counted(
        rows, ["partition"], lambda batch: _labels(batch["partition"]), "rows by partition"
    )
    return drawing.bars(list(numbers), list(numbers.values()), title)


def powers_of_two(column: str, title: str) -> Chart:
    """Rows by value of a column of counts, in bins of powers of two."""

    def chart(rows: Rows) -> Drawing:
        return _in_powers(*counted(rows, [column], lambda batch: _powers(batch[column]), title))

    return chart


def by_powers_of_two(rows: Rows, columns: Sequence[str], title: str) -> tuple[dict[str, dict[int, int]], str]:
    """Count the rows by power of two of each of two columns of counts, in one pass; also return the title."""
    first, second = columns

    def pairs(batch: pa.RecordBatch) -> pa.Array:
        return pa.array(np.asarray(_powers(batch[first])) * _MOST_BITS + np.asarray(_powers(batch[second])))

    numbers, title = counted(rows, columns, pairs, title)
    powers: dict[str, Counter[int]] = {first: Counter(), second: Counter()}
    for pair, number in numbers.items():
        for column, power in zip(columns, divmod(pair, _MOST_BITS), strict=True):
            powers[column][power] += number
    return {column: dict(sorted(counts.items())) for column, counts in powers.items()}, title


def sizes(column: str, title: str) -> Chart:
    """Groups of rows with one value of `column`, by size in powers of two.

    In a large table, groups are sampled by a hash of the value, each with all its rows; the title says so.
    """
    return sizes_of_values(column, column, lambda batch: batch[column], title)


def sizes_of_values(column: str, expression: str, values: Values, title: str) -> Chart:
    """Values by number of occurrences, in powers of two; `expression` is their SQL, `values` their Arrow."""

    def chart(rows: Rows) -> Drawing:
        batches = rows.read_locally([column]) if rows.n_bytes < SAMPLED_BYTES else None
        if batches is not None:
            share, arrays = 1, [values(batch) for batch in batches]
        else:
            share = _sampled_share(rows)
            occurrences = rows.frame().selectExpr(f"{expression} AS value")
            sampled = occurrences.where(F.pmod(F.xxhash64("value"), F.lit(share)) == 0)
            arrays = sampled.toArrow()["value"].chunks
        return _in_powers(tally([_powers(_value_counts(arrays).field("counts"))]), _titled(title, share))

    return chart


def quantiles(*columns: str) -> Chart:
    """Quantile curves, one panel per column."""

    def chart(rows: Rows) -> Drawing:
        sample, share = _sample(rows, columns)
        batches = list(sample)
        steps = np.linspace(0, 1, QUANTILES + 1)
        panels = {}
        for name in columns:
            numbers = (
                pa.chunked_array([batch[name] for batch in batches], pa.float64()).drop_null().to_numpy()
            )
            if len(numbers):
                panels[name] = np.quantile(numbers, steps, method="lower").tolist()
        return drawing.curves(panels, _titled("each measured value, by share of the documents", share))

    return chart


def by_share(rows: Rows, columns: Sequence[str], title: str) -> Drawing:
    """Rows by the greatest of the share `columns`, in steps of .02."""

    def steps(batch: pa.RecordBatch) -> pa.Array:
        return pc.floor(pc.multiply(pc.max_element_wise(*batch.columns), STEPS))

    numbers, title = counted(rows, columns, steps, title)
    return drawing.bars([f"{step / STEPS:.2f}" for step in numbers], list(numbers.values()), title)


def counted(rows: Rows, columns: Sequence[str], values: Values, title: str) -> tuple[dict[Any, int], str]:
    """Count the values of all batches, in order; also return the title, which names a sample."""
    batches, share = _sample(rows, columns)
    return tally(map(values, batches)), _titled(title, share)


def whole(rows: Rows, columns: Sequence[str]) -> pa.Table:
    """All rows of a table that is always small."""
    batches = rows.read_locally(columns)
    if batches is None:
        return rows.frame().select(*columns).toArrow()
    in_memory = list(batches)
    if not in_memory:
        return pa.table({name: pa.nulls(0) for name in columns})
    return pa.Table.from_batches(in_memory)


def by_count(numbers: Mapping[str, int]) -> list[tuple[str, int]]:
    """Sort by count, largest first and `KEPT` before all; ties by name."""
    return sorted(numbers.items(), key=lambda pair: (pair[0] != KEPT, -pair[1], pair[0]))


def most_first(numbers: Mapping[str, int], title: str) -> Drawing:
    """Draw counts by word, the largest first."""
    ordered = dict(by_count(numbers))
    return drawing.bars(list(ordered), list(ordered.values()), title, [KEPT])


def tally(arrays: Iterable[pa.Array]) -> dict[Any, int]:
    """Return the number of occurrences of each value, by ascending value, null first."""
    pairs = _value_counts(arrays)
    values, numbers = (pairs.field(name).to_pylist() for name in ("values", "counts"))
    return dict(sorted(zip(values, numbers, strict=True), key=lambda pair: (pair[0] is not None, pair[0])))


def _sample(rows: Rows, columns: Sequence[str]) -> tuple[Iterable[pa.RecordBatch], int]:
    """Return the rows as batches, and n: a large table yields a sample of one row in n."""
    batches = rows.read_locally(columns)
    if batches is not None:
        return batches, 1
    share = _sampled_share(rows)
    frame = rows.frame().select(*columns)
    return (frame if share == 1 else frame.sample(1 / share, seed=0)).toArrow().to_batches(), share


def _sampled_share(rows: Rows) -> int:
    """Return n, where one row in n is sampled."""
    return max(1, rows.n_bytes // SAMPLED_BYTES)


def _titled(title: str, share: int) -> str:
    return title if share == 1 else f"{title}, of one in {share:,}"


def _labels(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()).fill_null("none")


def _value_counts(arrays: Iterable[pa.Array]) -> pa.StructArray:
    arrays = list(arrays)
    if arrays and pa.types.is_integer(arrays[0].type) and not any(array.null_count for array in arrays):
        # Sorting numbers is cheaper than hashing them.
        joined = np.concatenate([array.to_numpy() for array in arrays])
        values, numbers = np.unique(joined, return_counts=True)
        return pa.StructArray.from_arrays([pa.array(values), pa.array(numbers)], ["values", "counts"])
    return pc.value_counts(pa.chunked_array(arrays) if arrays else pa.nulls(0))


def _in_powers(numbers: dict[int, int], title: str) -> Drawing:
    return drawing.bars([power_of_two(power) for power in numbers], list(numbers.values()), title)


def _powers(numbers: pa.Array) -> pa.Array:
    """Return floor(log2(count)) of each element, 0 for null and zero."""
    return pa.array(np.frexp(np.maximum(pc.fill_null(numbers, 1), 1))[1] - 1)


def power_of_two(power: int) -> str:
    """Return 2 to a power in few characters, such as `64K`."""
    if power < 10:
        return str(1 << power)
    return f"{1 << (power - 10)}K" if power < 20 else f"{1 << (power - 20)}M"
