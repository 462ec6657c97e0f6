"""The buckets of each signature: one a band, keyed by a hash of the band's bits and its number."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.dedup.config import DedupConfig
from factory.dedup.signatures import check_versions


def buckets(signatures: DataFrame, config: DedupConfig) -> DataFrame:
    """One row for each signature, with the bucket of each of its bands: BUCKETS.

    A document without tokens has no signature, so no row. Runs a job when called, over the versions of the
    signatures: raises ConfigurationError where they are several, or not that of `config`.
    """
    check_versions(signatures, config)
    bands = F.array(*(_band(number, config) for number in range(config.banding.bands)))
    return signatures.where("signature IS NOT NULL").select("doc_id", bands.alias("buckets"), "partition")


def _band(number: int, config: DedupConfig) -> Column:
    bits = config.banding.rows * config.value_bits
    pieces = _bits("signature", number * bits, (number + 1) * bits)
    return F.xxhash64(F.lit(number), *pieces)


def _bits(column: str, start: int, end: int) -> list[Column]:
    """Bits `start` to `end` of a binary column: its whole bytes, and what is left of those at either end."""
    first, last = -(-start // 8), end // 8
    if last < first:
        return [_byte(column, last, (0xFF >> start % 8) & ~(0xFF >> end % 8))]
    pieces = [F.substring(column, first + 1, last - first)]
    if start % 8:
        pieces.append(_byte(column, first - 1, 0xFF >> start % 8))
    if end % 8:
        pieces.append(_byte(column, last, 0xFF & ~(0xFF >> end % 8)))
    return pieces


def _byte(column: str, place: int, mask: int) -> Column:
    number = F.conv(F.hex(F.substring(column, place + 1, 1)), 16, 10).cast("int")
    return number.bitwiseAND(F.lit(mask))
