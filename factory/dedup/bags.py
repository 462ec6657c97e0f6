"""The bag of words of each distinct text of a group: the only stage that cuts texts into tokens.

Exact copies collapse here, on the content hash. What follows counts, signs and compares bags, which are
smaller than their texts and made once: cutting a text costs several times what signing its bag does
(`make bench NAME=minhash`). The table is not compressed, because hashes hardly are.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.config import MAX_DISTINCT, DedupConfig
from factory.lake_spark.documents import map_texts
from spark_udfs.dedup import bags as udf

LARGE = ("bag", "token_texts")
"""The columns that the JVM need not see: they are read where they lie."""

_MADE = "content_hash string, copies long, n_tokens long, bag binary, token_texts binary"


def bags(documents: DataFrame, config: DedupConfig, before: DataFrame | None = None) -> DataFrame:
    """One row for each content hash of `documents`, which are located: BAGS.

    `before` are bags made with the same settings: those of known texts are taken over. A document without a
    text has an empty bag.
    """
    texts = (
        documents.groupBy("content_hash")
        .agg(F.min(F.struct("file", "row")).alias("at"), F.count("*").alias("copies"))
        .select("content_hash", "copies", "at.file", "at.row")
    )
    if before is None:
        made = _made(texts, config)
    else:
        known = before.select("content_hash", "n_tokens", *LARGE)
        fresh = _made(texts.join(known, "content_hash", "left_anti"), config)
        made = fresh.union(texts.join(known, "content_hash").select(fresh.columns))
    return made.withColumn("partition", F.lit(None).cast("string"))


def _made(texts: DataFrame, config: DedupConfig) -> DataFrame:
    make = partial(udf.make_bags, kind=config.lexer, max_distinct=MAX_DISTINCT, text_bytes=config.text_bytes)
    return map_texts(texts.select("content_hash", "copies", "file", "row"), make, _MADE)
