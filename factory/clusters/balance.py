"""The rates that bring a dataset near a target distribution, by category: `clusters.<dataset>_balance`.

The target of a category is `level x weight`, and its rate the share of its documents that reach the target,
at most 1. Water-filling finds the level at which the documents that stay add up to the size: categories with
few documents stay whole, and the others make up for them. With named shares nobody makes up for a category,
because the shares fix every target.

A document stays if its draw, a hash of its id, is at most the rate of its category. Targets grow with the
size, so a smaller size keeps a subset of a larger one. The rates are lasting: documents that arrive later
meet the rate of their category; a new category keeps all of its documents.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.clusters.balance_options import NamedShares, Target, Temperature
from factory.errors import ConfigurationError
from factory.lake.schemas.clusters import BALANCE
from factory.models.sampling import unit_interval
from factory.suggestions import unknown_name

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SALT = "balance"  # of the draws
_ROUNDING = 1e-6  # of a target, in documents


def balance_table(categories: DataFrame, target: Target, size: int | float) -> DataFrame:
    """A row of BALANCE for each category of `categories` (doc_id, cell).

    `size` is a number of documents, or a share up to 1 (a float). Runs one job, which counts the categories.
    Raises ConfigurationError for a size beyond the documents, and for a share of an unknown category.
    """
    table = categories.groupBy("cell").count().toArrow().sort_by("cell")
    names = table["cell"].to_pylist()
    counts = table["count"].to_numpy().astype(np.int64)
    n_wanted = _documents(size, int(counts.sum()))
    targets, shares = targets_and_rates(names, counts, target, n_wanted)
    rows = pa.table(
        {
            "cell": table["cell"],
            "n_documents": counts,
            "target": targets,
            "rate": shares,
            "n_missing": np.maximum(np.ceil(targets - _ROUNDING).astype(np.int64) - counts, 0),
            "partition": pa.nulls(len(counts), pa.string()),
        }
    )
    return categories.sparkSession.createDataFrame(rows.cast(BALANCE.columns))


def drawn_documents(categories: DataFrame, balance: DataFrame) -> DataFrame:
    """Return (doc_id, cell, draw, rate, is_new) for documents `categories` (doc_id, cell) and BALANCE.

    A document stays if `draw` is at most `rate`. A category without a row in `balance` is new: rate 1.
    """
    rates_by_cell = balance.select("cell", "rate")
    rows = categories.join(rates_by_cell, "cell", "left").withColumn("draw", unit_interval(SALT))
    return rows.select(
        *("doc_id", "cell", "draw"),
        F.coalesce("rate", F.lit(1.0)).alias("rate"),
        F.col("rate").isNull().alias("is_new"),
    )


def targets_and_rates(
    names: Sequence[str], counts: Integers, target: Target, size: float
) -> tuple[Floats, Floats]:
    """Return the target and the rate of each category; `counts` are their documents, none of them 0.

    Raises ConfigurationError for a share of an unknown category.
    """
    match target:
        case NamedShares():
            targets = size * _shares(names, counts, target)
            return targets, np.minimum(targets / counts, 1.0)
        case Temperature(temperature):
            return rates(counts, counts.astype(np.float64) ** temperature, size)
    return rates(counts, np.ones(len(counts)), size)


def rates(counts: Integers, weights: Floats, size: float) -> tuple[Floats, Floats]:
    """Return targets `level x weight`, and rates `min(1, target / count)` with sum(rate x count) = size.

    Both are monotone in `size`, bit by bit, and so is the set of documents that stay. Weights are positive.
    """
    ratios = counts / weights  # the level from which a category is exhausted
    order = np.argsort(ratios, kind="stable")
    n_before = np.concatenate([[0], np.cumsum(counts[order])])[:-1]  # documents of exhausted categories
    weights_left = np.cumsum(weights[order][::-1])[::-1]
    # Rounded sums may not decrease either: a level belongs to one step, and stays within it.
    sizes = np.maximum.accumulate(n_before + ratios[order] * weights_left)
    if not len(sizes):
        return np.zeros(0), np.zeros(0)
    step = min(int(np.searchsorted(sizes, size)), len(sizes) - 1)
    lowest = ratios[order[step - 1]] if step else 0.0
    level = np.clip((size - n_before[step]) / weights_left[step], lowest, ratios[order[step]])
    targets = level * weights
    return targets, np.where(level >= ratios, 1.0, np.minimum(targets / counts, 1.0))


def _shares(names: Sequence[str], counts: Integers, target: NamedShares) -> Floats:
    """Return the share of each category; categories that `target` does not name divide the rest."""
    for category in target.shares:
        if category not in names:
            raise ConfigurationError(unknown_name("category with a share in `balance`:", category, names))
    is_other = np.array([name not in target.shares for name in names])
    rest = max(0.0, 1 - sum(target.shares.values()))
    shares = np.where(is_other, rest * counts / max(1, int(counts[is_other].sum())), 0.0)
    for number, name in enumerate(names):
        shares[number] = target.shares.get(name, shares[number])
    return shares


def _documents(size: int | float, n_documents: int) -> float:
    if size <= 1:
        return size * n_documents
    if size > n_documents:
        raise ConfigurationError(
            f"The size of `balance` is {size:,} documents, but the round has {n_documents:,}. Give at most "
            "these, or a share up to 1."
        )
    return float(size)
