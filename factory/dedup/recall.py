"""The share of similar pairs that share a bucket, by similarity, measured and as the banding predicts.

A sample of documents is compared with all others: by signatures first, then exactly. The share of these pairs
that banding finds is compared with the curve 1 - (1 - p^rows)^bands, where p is the probability that two
values agree. The sample goes by a hash of the id, so it is the same on every machine.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from factory.dedup.banding import Banding, SignatureSize
from factory.dedup.edges import document_key, ends_of, signed_bags, verified
from factory.dedup.idf import idf_table, share
from factory.frozen_model import FrozenModel
from spark_udfs.dedup import edges as udf

LEAST_SIMILARITY = 0.5

SAMPLED_DOCUMENTS = 256
"""Documents compared with all others: thousands of pairs in a group with near copies, in seconds."""

_STEPS = 20  # steps from similarity 0 to 1
_PARTNERS = 32  # most pairs of a sampled document that are compared exactly


class RecallConfig(FrozenModel):
    """The settings that decide RECALL, apart from signatures and bags."""

    banding: Banding
    size: SignatureSize


def recall(signatures: DataFrame, bags: DataFrame, vocabulary: DataFrame, config: RecallConfig) -> DataFrame:
    """One row per step of similarity from .5 up that has sampled pairs: RECALL.

    `bags` are located. Runs jobs when called: the sample is collected, and the pairs are computed once.
    A sampled document is compared exactly with at most `_PARTNERS` others, chosen by a hash, so that a text
    with many variants does not outweigh all others.
    """
    signed = signatures.where("signature IS NOT NULL").select("doc_id", "signature")
    sample = signed.orderBy(F.xxhash64("doc_id"), "doc_id").limit(SAMPLED_DOCUMENTS).toArrow()
    compare = partial(
        udf.sampled_pairs,
        sample=sample.combine_chunks().to_batches(),
        least_estimate=config.size.least_estimate(LEAST_SIMILARITY),
        value_bits=config.size.value_bits,
        band_bits=config.banding.rows * config.size.value_bits,
        bands=config.banding.bands,
    )
    by_hash = Window.partitionBy("sampled").orderBy(F.xxhash64("other"), "other")
    pairs = (
        signed.mapInArrow(compare, "sampled string, other string, estimate double, shares_bucket boolean")
        .withColumn("number", F.row_number().over(by_hash))
        .where(F.col("number") <= _PARTNERS)
        .select(
            F.least("sampled", "other").alias("left"),
            F.greatest("sampled", "other").alias("right"),
            "estimate",
            "shares_bucket",
        )
        .localCheckpoint()
    )
    idf = share(signatures.sparkSession, idf_table(vocabulary))
    candidates = pairs.select(document_key("left"), document_key("right").alias("other"))
    exact = verified(ends_of(candidates), signed_bags(signatures, bags), LEAST_SIMILARITY, config.size, idf)
    found = exact.join(pairs.select("left", "right", "shares_bucket"), ["left", "right"])
    step = F.least(F.floor(F.col("similarity") * _STEPS), F.lit(_STEPS - 1)) / _STEPS
    return (
        found.groupBy(step.alias("similarity"))
        .agg(
            F.count("*").alias("pairs"),
            F.count_if("shares_bucket").alias("pairs_found"),
            F.avg(_promised(F.col("similarity"), config)).cast("double").alias("predicted"),
        )
        .select(
            "similarity",
            "pairs",
            "pairs_found",
            (F.col("pairs_found") / F.col("pairs")).alias("recall"),
            "predicted",
            F.lit(None).cast("string").alias("partition"),
        )
    )


def _promised(similarity: Column, config: RecallConfig) -> Column:
    """`candidate_probability` in Spark, as a decimal: its sum does not depend on the order of the rows."""
    rows, bands = config.banding
    agree = similarity + (1 - similarity) / 2**config.size.value_bits
    return (1 - F.pow(1 - F.pow(agree, F.lit(rows)), F.lit(bands))).cast("decimal(16,15)")
