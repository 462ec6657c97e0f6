"""The buckets of each signature: one a band, keyed by a hash of the band's bytes and its number."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.dedup.config import DedupConfig


def buckets(signatures: DataFrame, config: DedupConfig) -> DataFrame:
    """One row for each band of each signature: BUCKETS.

    A document without tokens has no signature, so no row.
    """
    bands = F.array(*(_band(number, config) for number in range(config.banding.bands)))
    return signatures.where(F.col("signature").isNotNull()).select(F.inline(bands), "doc_id", "partition")


def _band(number: int, config: DedupConfig) -> Column:
    rows = config.banding.rows
    values = F.substring("signature", number * rows + 1, rows)
    return F.struct(F.lit(number).alias("band"), F.xxhash64(F.lit(number), values).alias("bucket"))
