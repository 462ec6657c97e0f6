"""Which of several similar documents stays: one sortable column, the best document first.

The order is total and the same everywhere: a null ranks last in its column. After the listed criteria come a
hash of the id, so that no source is favoured by its name, and the id. Documents that a group only compares
with, marked `reference`, come before all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

Priority = Literal["quality", "not_fork", "stars", "recency", "length"]

REFERENCE = "reference"  # the column of documents that tells those that a group only compares with

_LAST = (1 << 63) - 1


def rank(documents: DataFrame, priority: Sequence[Priority]) -> Column:
    """A document's rank by `priority`: a struct, smaller is better."""
    references = [~F.col(REFERENCE)] if REFERENCE in documents.columns else []
    criteria = orders(documents, priority).values()
    return F.struct(*references, *criteria, F.xxhash64("doc_id"), F.col("doc_id"))


def ranked(documents: DataFrame, priority: Sequence[Priority], *carried: str) -> DataFrame:
    """(doc_id, rank) of documents by priority, and the columns `carried`."""
    return documents.select("doc_id", rank(documents, priority).alias("rank"), *carried)


def orders(documents: DataFrame, priority: Sequence[Priority]) -> dict[Priority, Column]:
    """A column per criterion of `priority` that `documents` has, smaller for better rows."""
    criteria = {name: _CRITERIA[name] for name in priority}
    return {name: order() for name, (column, order) in criteria.items() if column in documents.columns}


def _quality() -> Column:
    worst = F.lit(float("-inf"))
    return -F.coalesce(F.nanvl(F.col("quality").cast("double"), worst), worst)


def _not_fork() -> Column:
    return F.col("fork_of").isNotNull()


def _stars() -> Column:
    """Powers of two of stars: a fork must not beat its source by three of them."""
    stars = F.greatest(F.coalesce("stars", F.lit(0)), F.lit(0))
    return -F.length(F.bin(stars + 1))


def _recency() -> Column:
    return F.coalesce(-F.unix_micros("created_at"), F.lit(_LAST))


def _length() -> Column:
    return -F.coalesce("n_bytes", F.lit(0))


# The column that each criterion reads, and its order.
_CRITERIA: dict[Priority, tuple[str, Callable[[], Column]]] = {
    "quality": ("quality", _quality),
    "not_fork": ("fork_of", _not_fork),
    "stars": ("stars", _stars),
    "recency": ("created_at", _recency),
    "length": ("n_bytes", _length),
}
