"""The vocabulary of a group: how many documents hold each token, how often, and the text of frequent ones.

Tokens are counted where the texts lie; what is shuffled is one row a token and partition. All documents
count, exact copies too: to count each text once, all text would have to be shuffled first.
"""

from __future__ import annotations

import hashlib
from functools import partial

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory import _native
from factory.dedup.config import DedupConfig
from spark_udfs import bags

_MERGED_PARTS = 8  # tables of 1 MiB that reach the driver


def vocabulary(documents: DataFrame, config: DedupConfig) -> DataFrame:
    """Document and term frequency of every token of `documents`: VOCABULARY.

    Reads the column `text`; a document without a text counts in `n_documents` alone.
    """
    count = partial(bags.count_tokens, kind=config.lexer, text_bytes=config.text_bytes)
    tokens = (
        documents.select("text")
        .mapInArrow(count, "token long, document_frequency long, term_frequency long, text string")
        .groupBy("token")
        .agg(
            F.sum("document_frequency").alias("document_frequency"),
            F.sum("term_frequency").alias("term_frequency"),
            F.min("text").alias("text"),
        )
    )
    n_documents = documents.agg(F.count("*").alias("n_documents"))
    return tokens.crossJoin(F.broadcast(n_documents)).select(
        "token",
        "document_frequency",
        "term_frequency",
        F.when(F.col("document_frequency") >= config.text_documents, F.col("text")).alias("text"),
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
