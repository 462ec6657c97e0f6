"""The bag of words of each distinct text of a group: the only stage that cuts texts into tokens.

Exact copies collapse here, on the content hash. Later stages count, sign and compare bags, which are smaller
than texts and made once: cutting a text costs several times what signing its bag does
(`make bench NAME=dedup.minhash`). The table is uncompressed, because hashes hardly compress.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.lake_spark.documents import map_texts
from spark_udfs.dedup import bags as udf

LARGE = ("bag", "token_texts")
"""The columns that bypass the JVM: workers read them from the files."""

MAX_DISTINCT = 1 << 20
"""Most distinct tokens kept per bag, those of the smallest hashes; bounds memory on hostile texts."""

TEXT_BYTES = 64
"""Bytes of the longest token whose text is stored: people read words, not base64 blobs."""

_BAGS = "content_hash string, copies long, n_tokens long, bag binary, token_texts binary"


def bags(documents: DataFrame, lexer: str, previous: DataFrame | None = None) -> DataFrame:
    """One row per content hash of the located `documents`: BAGS.

    Bags of known texts are taken from `previous`, which the same lexer made. A document without a text has an
    empty bag.
    """
    texts = (
        documents.groupBy("content_hash")
        .agg(F.min(F.struct("file", "row")).alias("at"), F.count("*").alias("copies"))
        .select("content_hash", "copies", "at.file", "at.row")
    )
    if previous is None:
        made = _made(texts, lexer)
    else:
        known = previous.select("content_hash", "n_tokens", *LARGE)
        fresh = _made(texts.join(known, "content_hash", "left_anti"), lexer)
        made = fresh.union(texts.join(known, "content_hash").select(fresh.columns))
    return made.withColumn("partition", F.lit(None).cast("string"))


def _made(texts: DataFrame, lexer: str) -> DataFrame:
    make = partial(udf.make_bags, lexer=lexer, max_distinct=MAX_DISTINCT, text_bytes=TEXT_BYTES)
    return map_texts(texts.select("content_hash", "copies", "file", "row"), make, _BAGS)
