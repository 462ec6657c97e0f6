"""Samples of documents that are the same in any order and partitioning."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def unit_interval() -> Column:
    """A hash of `doc_id` in [0, 1), uniform over documents."""
    return F.shiftrightunsigned(F.xxhash64("doc_id"), 11) / F.lit(float(1 << 53))
