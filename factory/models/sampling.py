"""Samples of documents that are the same in any order and partitioning."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def unit_interval(salt: str = "") -> Column:
    """A hash of `doc_id` in [0, 1), uniform over documents; hashes of two salts are independent."""
    columns = (F.lit(salt), F.col("doc_id")) if salt else (F.col("doc_id"),)
    return F.shiftrightunsigned(F.xxhash64(*columns), 11) / F.lit(float(1 << 53))
