"""The vocabulary of a group: how many documents hold each token, how often, and the text of frequent ones.

Each distinct text is counted once, for all documents that hold it. What is shuffled is the counts of a task,
in parts by token.
"""

from __future__ import annotations

import hashlib
from functools import partial

import numpy as np
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from factory import _native
from factory.dedup.bags import LARGE
from factory.dedup.config import DedupConfig
from factory.lake_spark.documents import map_columns
from spark_udfs import bags as udf

_MERGED_PARTS = 8  # tables of 1 MiB that reach the driver


def vocabulary(bags: DataFrame, config: DedupConfig, before: DataFrame | None = None) -> DataFrame:
    """Document and term frequency of every token of `bags`, which are located: VOCABULARY.

    A document without a text counts in `n_documents` alone. `before` is the vocabulary that was: a token
    whose text stood in a bag that has gone takes it from there.
    """
    merge = partial(udf.merge_counts, text_documents=config.text_documents)
    tokens = (
        map_columns(bags.select("copies", "file", "row"), LARGE, udf.count_tokens, "part int, counts binary")
        .repartition("part")
        .sortWithinPartitions("part")
        .mapInArrow(merge, "token long, document_frequency long, term_frequency long, text string")
    )
    if before is not None:
        tokens = _spelled(tokens, before, config)
    n_documents = bags.agg(F.coalesce(F.sum("copies"), F.lit(0)).alias("n_documents"))
    return tokens.crossJoin(F.broadcast(n_documents)).select(
        "token",
        "document_frequency",
        "term_frequency",
        "text",
        "n_documents",
        F.lit(None).cast("string").alias("partition"),
    )


def _spelled(tokens: DataFrame, before: DataFrame, config: DedupConfig) -> DataFrame:
    """`tokens` with the text of those that have none from `before`, where they are frequent."""
    known = before.where("text IS NOT NULL").select("token", F.col("text").alias("known"))
    frequent = F.col("document_frequency") >= config.text_documents
    text = F.when(frequent, F.coalesce("text", "known")).alias("text")
    joined = tokens.join(known, "token", "left")
    return joined.select("token", "document_frequency", "term_frequency", text)


def idf_table(vocabulary: DataFrame) -> bytes:
    """The frozen idf of every token, 2^20 entries of one byte (`native/src/idf.rs`).

    Runs a job, because every task that weighs tokens needs the whole table. Tokens of one document, most of
    them, are not looked at: they weigh what a token weighs that was never seen.
    """
    parts = (
        vocabulary.where("document_frequency > 1")
        .select("token", "document_frequency", "n_documents")
        .coalesce(_MERGED_PARTS)
        .mapInArrow(udf.partial_idf, "idf binary, n_documents long")
        .collect()
    )
    n_documents = max((part.n_documents for part in parts), default=0)
    if not n_documents:
        n_documents = (vocabulary.first() or Row(n_documents=1)).n_documents
    unseen = _native.idf_steps(1, n_documents)
    tables = [np.frombuffer(part.idf, np.uint8) for part in parts]
    return udf.merge_idf([*tables, np.zeros(udf.IDF_SLOTS, np.uint8)], unseen).tobytes()


def digest(idf: bytes) -> str:
    """What names an idf table in the version of a signature."""
    return hashlib.blake2b(idf, digest_size=8).hexdigest()
