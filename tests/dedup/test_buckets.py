"""Bands of any number of bits, and signatures that must not be compared."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from pyspark.sql import SparkSession

from factory.dedup.buckets import BucketConfig, buckets
from factory.dedup.config import DedupConfig
from factory.dedup.signatures import SignatureConfig
from factory.errors import ConfigurationError
from factory.lake.schemas.dedup import SIGNATURES
from factory.lake_spark.audit import spark_schema

pytestmark = pytest.mark.spark

CODE = DedupConfig(kind="code", values=16)
SIGNED = CODE.part(SignatureConfig)


def signed(signatures: list[bytes], versions: list[str]) -> list[tuple[object, ...]]:
    return [
        (f"{number:03}", "d", f"{number:03}", 1, 9, 9, signature, version, None)
        for number, (signature, version) in enumerate(zip(signatures, versions, strict=True))
    ]


@pytest.mark.parametrize(
    "value_bits,band_bits", [(1, 1), (1, 5), (1, 13), (2, 6), (4, 12), (8, 24), (16, 32)]
)
def test_documents_share_a_bucket_if_all_bits_of_a_band_are_equal(
    spark: SparkSession, value_bits: int, band_bits: int
) -> None:
    config = DedupConfig(kind="code", values=32, value_bits=value_bits, band_bits=band_bits)
    generator = np.random.default_rng(band_bits)
    bits = generator.random((60, 1)) < 0.5
    bits = (bits ^ (generator.random((60, config.size.bits)) < 0.02)).astype(np.uint8)
    frame = spark.createDataFrame(
        signed(
            [row.tobytes() for row in np.packbits(bits, axis=1)],
            [config.part(SignatureConfig).version("x")] * 60,
        ),
        spark_schema(SIGNATURES),
    )
    found: dict[tuple[int, int], set[str]] = defaultdict(set)
    for row in buckets(frame, config.part(BucketConfig), config.part(SignatureConfig).version()).collect():
        for band, bucket in enumerate(row.buckets):
            found[band, bucket].add(row.doc_id)
    expected: dict[tuple[int, bytes], set[str]] = defaultdict(set)
    for band in range(config.size.bits // band_bits):
        for number, row in enumerate(bits):
            expected[band, row[band * band_bits : (band + 1) * band_bits].tobytes()].add(f"{number:03}")
    groups = sorted((band, sorted(names)) for (band, _), names in expected.items())
    assert sorted((band, sorted(names)) for (band, _), names in found.items()) == groups
    assert 1 < len(groups) < 60 * config.banding.bands


def test_signatures_of_two_versions_are_refused_by_name(spark: SparkSession) -> None:
    versions = [SIGNED.version("old"), SIGNED.version("new"), SIGNED.version("old")]
    frame = spark.createDataFrame(signed([bytes(16)] * 3, versions), spark_schema(SIGNATURES))
    with pytest.raises(ConfigurationError, match=r"`lpmh-16x8.*new` \(1 texts\), .*old` \(2 texts\)"):
        buckets(frame, CODE.part(BucketConfig), SIGNED.version())


@pytest.mark.parametrize("other", [{"scheme": "cell_oph"}, {"value_bits": 16}, {"seed": 4}])
def test_signatures_of_other_settings_are_refused_by_name(
    spark: SparkSession, other: dict[str, object]
) -> None:
    config = DedupConfig.model_validate(CODE.model_dump() | other)
    frame = spark.createDataFrame(signed([bytes(16)], [SIGNED.version("x")]), spark_schema(SIGNATURES))
    with pytest.raises(ConfigurationError, match=f"ask for `{config.part(SignatureConfig).version()}"):
        buckets(frame, config.part(BucketConfig), config.part(SignatureConfig).version())
