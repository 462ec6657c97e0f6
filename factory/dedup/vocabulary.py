"""The vocabulary of a group: how many documents hold each token, how often, and the text of frequent ones.

Each distinct text is read and counted once, for all documents that hold it. What is shuffled is the counts of
a task, in parts by token.
"""

from __future__ import annotations

import hashlib
from functools import partial

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory import _native
from factory.dedup.config import DedupConfig
from factory.lake_spark.documents import map_texts
from spark_udfs import bags

_MERGED_PARTS = 8  # tables of 1 MiB that reach the driver


def vocabulary(documents: DataFrame, config: DedupConfig) -> DataFrame:
    """Document and term frequency of every token of `documents`, which are located: VOCABULARY.

    A document without a text counts in `n_documents` alone.
    """
    texts = (
        documents.groupBy("content_hash")
        .agg(F.min(F.struct("file", "row")).alias("at"), F.count("*").alias("copies"))
        .select("at.file", "at.row", "copies")
    )
    count = partial(bags.count_tokens, kind=config.lexer, text_bytes=config.text_bytes)
    merge = partial(bags.merge_counts, text_documents=config.text_documents)
    tokens = (
        map_texts(texts, count, "part int, counts binary")
        .repartition("part")
        .sortWithinPartitions("part")
        .mapInArrow(merge, "token long, document_frequency long, term_frequency long, text string")
    )
    n_documents = documents.agg(F.count("*").alias("n_documents"))
    return tokens.crossJoin(F.broadcast(n_documents)).select(
        "token",
        "document_frequency",
        "term_frequency",
        "text",
        "n_documents",
        F.lit(None).cast("string").alias("partition"),
    )


def idf_table(vocabulary: DataFrame) -> bytes:
    """The frozen idf of every token, 2^20 entries of one byte (`native/src/idf.rs`).

    Runs a job, because every task that weighs tokens needs the whole table.
    """
    parts = (
        vocabulary.select("token", "document_frequency", "n_documents")
        .coalesce(_MERGED_PARTS)
        .mapInArrow(bags.partial_idf, "idf binary, n_documents long")
        .collect()
    )
    n_documents = max((part.n_documents for part in parts), default=1)
    unseen = _native.idf_steps(1, n_documents)
    tables = [np.frombuffer(part.idf, np.uint8) for part in parts]
    return bags.merge_idf([*tables, np.zeros(bags.IDF_SLOTS, np.uint8)], unseen).tobytes()


def digest(idf: bytes) -> str:
    """What names an idf table in the version of a signature."""
    return hashlib.blake2b(idf, digest_size=8).hexdigest()
