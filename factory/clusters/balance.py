"""The rates that bring a dataset near a target distribution, by category: `clusters.<dataset>_balance`.

The target of a category is `level x weight`. Water-filling finds the level at which the documents that stay
add up to the size: categories with few documents stay whole, and the others make up for them. With named
shares nobody makes up for a category, because the shares fix every target.

A document stays if its draw, a hash of its id, is at most the rate of its category. The rate is the draw up
to which the category has as many documents as its target; `target / documents` as the rate would miss a
target of 500 by 20 on average. Targets and rates grow with the size, so a smaller size keeps a subset of a
larger one. The rates are lasting: documents that arrive later meet the rate of their category, and a new
category keeps all of its documents.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from factory.clusters.balance_options import NamedShares, Target, Temperature
from factory.clusters.categories import JOINT, NONE
from factory.errors import ConfigurationError
from factory.lake.schemas.clusters import BALANCE
from factory.models.sampling import unit_interval
from factory.suggestions import unknown_name

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SALT = "balance"  # of the draws
BINS = 4_096  # of draws, within which a rate is interpolated
_ROUNDING = 1e-6  # of a target, in documents


def balance_table(categories: DataFrame, over: Sequence[str], target: Target, size: int | float) -> DataFrame:
    """A row of BALANCE for each category of `categories` (doc_id, category).

    `size` is a number of documents, or a share up to 1 (a float). Runs two jobs, which count the documents by
    category and by draw. Raises ConfigurationError for a size beyond the documents, for a share of an unknown
    category, and for a field of `over` that no document has.
    """
    spark = categories.sparkSession
    draws = F.floor(unit_interval(SALT) * BINS).alias("bin")
    by_draw = categories.groupBy("category", draws).agg(F.count("*").alias("n_documents"))
    table = (
        by_draw.groupBy("category")
        .agg(F.sum("n_documents").alias("n_documents"))
        .toArrow()
        .sort_by("category")
    )
    counts = table["n_documents"].to_numpy().astype(np.int64)
    _require_values(over, table["category"].to_pylist())
    n_wanted = _documents(size, int(counts.sum()))
    targets = targets_of(table["category"].to_pylist(), counts, target, n_wanted)
    table = table.append_column("target", pa.array(targets))
    is_whole = targets >= counts
    partial_targets = spark.createDataFrame(table.filter(pa.array(~is_whole)).select(["category", "target"]))
    rate_of = dict(_rates(by_draw, partial_targets).collect())
    cells = zip(table["category"].to_pylist(), is_whole, strict=True)
    rates = [1.0 if whole else rate_of.get(cell, 0.0) for cell, whole in cells]
    n_missing = np.maximum(np.ceil(targets - _ROUNDING).astype(np.int64) - counts, 0)
    rows = table.append_column("rate", pa.array(rates, pa.float64()))
    rows = rows.append_column("n_missing", pa.array(n_missing))
    rows = rows.append_column("partition", pa.nulls(len(counts), pa.string()))
    return spark.createDataFrame(rows.cast(BALANCE.columns))


def targets_of(names: Sequence[str], counts: Integers, target: Target, size: float) -> Floats:
    """Return the target of each category; `counts` are their documents, none of them 0.

    Raises ConfigurationError for a share of an unknown category.
    """
    match target:
        case NamedShares():
            return size * _shares(names, counts, target)
        case Temperature(temperature):
            return water_filling(counts, counts.astype(np.float64) ** temperature, size)
    return water_filling(counts, np.ones(len(counts)), size)


def water_filling(counts: Integers, weights: Floats, size: float) -> Floats:
    """Return targets `level x weight` with sum(min(count, target)) = size.

    They are monotone in `size`, bit by bit, and so is the set of documents that stay. Weights are positive.
    """
    if not len(counts):
        return np.zeros(0)
    ratios = counts / weights  # the level from which a category is exhausted
    order = np.argsort(ratios, kind="stable")
    n_before = np.concatenate([[0], np.cumsum(counts[order])])[:-1]  # documents of exhausted categories
    weights_left = np.cumsum(weights[order][::-1])[::-1]
    # Rounded sums may not decrease either: a level belongs to one step, and stays within it.
    sizes = np.maximum.accumulate(n_before + ratios[order] * weights_left)
    step = min(int(np.searchsorted(sizes, size)), len(sizes) - 1)
    lowest = ratios[order[step - 1]] if step else 0.0
    level = np.clip((size - n_before[step]) / weights_left[step], lowest, ratios[order[step]])
    targets = level * weights
    return np.where(level >= ratios, np.maximum(targets, counts), np.minimum(targets, counts))


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


def _rates(by_draw: DataFrame, targets: DataFrame) -> DataFrame:
    """Return (category, rate) for `targets` (category, target) above 0 and below the category's documents.

    `by_draw` are (category, bin, n_documents). Each rate is interpolated in the bin that reaches the target.
    """
    up_to = Window.partitionBy("category").orderBy("bin").rowsBetween(Window.unboundedPreceding, 0)
    rows = by_draw.join(targets, "category").withColumn("n_up_to", F.sum("n_documents").over(up_to))
    n_before = F.col("n_up_to") - F.col("n_documents")
    share_of_bin = (F.col("target") - n_before) / F.col("n_documents")
    reaching = rows.where((n_before < F.col("target")) & (F.col("target") <= F.col("n_up_to")))
    return reaching.select("category", ((F.col("bin") + share_of_bin) / F.lit(float(BINS))).alias("rate"))


def _require_values(over: Sequence[str], names: Sequence[str]) -> None:
    """Raise ConfigurationError for a field that is missing in every document."""
    parts = [name.split(JOINT) if len(over) > 1 else [name] for name in names]
    for number, field in enumerate(over):
        if names and all(part[number] == NONE for part in parts):
            raise ConfigurationError(
                f"`balance` is over `{field}`, but no document of the round has a value of it. Correct the "
                "name, or leave the field out."
            )


def _documents(size: int | float, n_documents: int) -> float:
    if size <= 1:
        return size * n_documents
    if size > n_documents:
        raise ConfigurationError(
            f"The size of `balance` is {size:,} documents, but the round has {n_documents:,}. Give at most "
            "these, or a share up to 1."
        )
    return float(size)
