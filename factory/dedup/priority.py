"""Who stays among alike documents: one sortable column, the best document first.

The order is total and the same everywhere: a null ranks last in its column, and after the listed columns
come a hash of the id, so that no source is favoured by its name, and the id.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.dedup.config import DedupConfig, Priority

_LAST = (1 << 63) - 1


def rank(documents: DataFrame, config: DedupConfig) -> Column:
    """The place of a document in the order of `config.priority`: a struct, smaller is better."""
    return F.struct(*orders(documents, config).values(), F.xxhash64("doc_id"), F.col("doc_id"))


def orders(documents: DataFrame, config: DedupConfig) -> dict[Priority, Column]:
    """The columns of `config.priority` that `documents` has, by name, each smaller where a row is better."""
    return {name: _ORDERS[name]() for name in config.priority if _COLUMNS[name] in documents.columns}


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


_COLUMNS: dict[Priority, str] = {
    "quality": "quality",
    "not_fork": "fork_of",
    "stars": "stars",
    "recency": "created_at",
    "length": "n_bytes",
}
_ORDERS: dict[Priority, Callable[[], Column]] = {
    "quality": _quality,
    "not_fork": _not_fork,
    "stars": _stars,
    "recency": _recency,
    "length": _length,
}
