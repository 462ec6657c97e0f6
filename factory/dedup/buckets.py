"""The buckets of each signature: one per band, keyed by a hash of the band's bits and number."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.dedup.banding import Banding
from factory.dedup.signatures import check_versions
from factory.frozen_model import FrozenModel


class BucketConfig(FrozenModel):
    """The settings that decide BUCKETS, apart from the signatures."""

    banding: Banding
    value_bits: int


def buckets(signatures: DataFrame, config: BucketConfig, version: str) -> DataFrame:
    """One row per signature, with the bucket of each of its bands: BUCKETS.

    A document without tokens has no signature, so no row. Runs jobs when called, to check that all
    signatures are of one version that begins with `version`; raises ConfigurationError if not.
    """
    check_versions(signatures, version)
    bands = F.array(*(_bucket(band, config) for band in range(config.banding.bands)))
    return signatures.where("signature IS NOT NULL").select("doc_id", bands.alias("buckets"), "partition")


def _bucket(band: int, config: BucketConfig) -> Column:
    bits = config.banding.rows * config.value_bits
    pieces = _bits("signature", band * bits, (band + 1) * bits)
    return F.xxhash64(F.lit(band), *pieces)


def _bits(column: str, start: int, end: int) -> list[Column]:
    """Bits `start` to `end` of a binary column: its whole bytes, and the rest of the bytes at either end."""
    first, last = -(-start // 8), end // 8
    if last < first:
        return [_byte(column, last, (0xFF >> start % 8) & ~(0xFF >> end % 8))]
    pieces = [F.substring(column, first + 1, last - first)]
    if start % 8:
        pieces.append(_byte(column, first - 1, 0xFF >> start % 8))
    if end % 8:
        pieces.append(_byte(column, last, 0xFF & ~(0xFF >> end % 8)))
    return pieces


def _byte(column: str, index: int, mask: int) -> Column:
    number = F.conv(F.hex(F.substring(column, index + 1, 1)), 16, 10).cast("int")
    return number.bitwiseAND(F.lit(mask))
