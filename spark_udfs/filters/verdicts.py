"""Verdicts on documents from their signals alone, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


class RuleLimit(NamedTuple):
    """A rule, the lowest and highest value it allows, and whether a document without a value fails it.

    With `has_ceilings` each document has a highest value of its own as well.
    """

    rule: str
    low: float
    high: float
    rejects_missing: bool = False
    has_ceilings: bool = False


def decide(
    batches: Iterator[pa.RecordBatch], limits: Sequence[RuleLimit], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield rows of `schema` (doc_id, kept, rejections, without_value, partition) for (doc_id, partition,
    value, value, ..., ceiling, ...).

    The float64 values belong to `limits` in order, the ceilings to the limits with `has_ceilings`. A document
    that fails no rule is kept.
    """
    end = 2 + len(limits)
    for batch in batches:
        ceilings = batch.select(list(range(end, batch.num_columns)))
        rejections, without_value = judge(batch.select(list(range(2, end))), limits, ceilings)
        columns = {
            "doc_id": batch.column(0),
            "kept": pc.equal(pc.list_value_length(rejections), 0),
            "rejections": rejections,
            "without_value": without_value,
            "partition": batch.column(1),
        }
        yield pa.RecordBatch.from_arrays(
            [columns[field.name].cast(field.type) for field in schema], schema=schema
        )


def judge(
    values: pa.RecordBatch, limits: Sequence[RuleLimit], ceilings: pa.RecordBatch | None = None
) -> tuple[pa.ListArray, pa.ListArray]:
    """Return two lists for each row of `values`: (rule, value, threshold) of the limits it fails, in their
    order, and the rules it passes without a value.

    NaN is no value, and no ceiling. A failure without a value has a null value and the lower bound, or the
    upper bound if there is no lower. Raises ValueError for another number of columns, or another type than
    float64.
    """
    matrix = _matrix(values, limits)
    names = pa.array([limit.rule for limit in limits], pa.string())
    low = np.array([limit.low for limit in limits], np.float64)
    high = _highest(limits, ceilings, len(matrix))
    asks = np.array([limit.rejects_missing for limit in limits], np.bool_)
    missing = np.isnan(matrix)
    rows, rules = np.nonzero((matrix < low) | (matrix > high) | (missing & asks))
    numbers, upper_bounds = matrix[rows, rules], high[rows, rules]
    is_upper = (numbers > upper_bounds) | (np.isnan(numbers) & np.isneginf(low[rules]))
    failures = pa.StructArray.from_arrays(
        [
            names.take(pa.array(rules)),
            pa.array(numbers, mask=np.isnan(numbers)),
            pa.array(np.where(is_upper, upper_bounds, low[rules])),
        ],
        ["rule", "value", "threshold"],
    )
    rows_passed, rules_passed = np.nonzero(missing & ~asks)
    return (
        pa.ListArray.from_arrays(_offsets(rows, len(matrix)), failures),
        pa.ListArray.from_arrays(_offsets(rows_passed, len(matrix)), names.take(pa.array(rules_passed))),
    )


def _highest(
    limits: Sequence[RuleLimit], ceilings: pa.RecordBatch | None, n_rows: int
) -> npt.NDArray[np.float64]:
    """The highest value of each document (rows) by each limit (columns)."""
    high = np.array([limit.high for limit in limits], np.float64)
    with_ceilings = [number for number, limit in enumerate(limits) if limit.has_ceilings]
    if not with_ceilings:
        return np.broadcast_to(high, (n_rows, len(limits)))
    if ceilings is None or ceilings.num_columns != len(with_ceilings):
        raise ValueError(f"{len(with_ceilings)} limits need a column of ceilings each. Pass them in order.")
    by_document = np.tile(high, (n_rows, 1))
    for number, column in zip(with_ceilings, ceilings.columns, strict=True):
        own = column.to_numpy(zero_copy_only=False)
        by_document[:, number] = np.fmin(by_document[:, number], own)  # fmin ignores NaN
    return by_document


def _matrix(values: pa.RecordBatch, limits: Sequence[RuleLimit]) -> npt.NDArray[np.float64]:
    """The values of a batch, a row per document and a column per limit; NaN where there is none."""
    if values.num_columns != len(limits):
        raise ValueError(
            f"There are {values.num_columns} columns of values and {len(limits)} limits. Pass one column per "
            "limit."
        )
    matrix = np.empty((values.num_rows, len(limits)), np.float64)
    for number, (column, limit) in enumerate(zip(values.columns, limits, strict=True)):
        if column.type != pa.float64():
            raise ValueError(f"The values of `{limit.rule}` are of type {column.type}. Cast them to float64.")
        matrix[:, number] = column.to_numpy(zero_copy_only=False)
    return matrix


def _offsets(rows: npt.NDArray[np.int64], n_rows: int) -> pa.Array:
    """Where the list of each row begins, and where the last ends, for entries of ascending `rows`."""
    offsets = np.zeros(n_rows + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=offsets[1:])
    return pa.array(offsets)
