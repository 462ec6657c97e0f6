"""The vocabulary of a group: how many documents hold each token, how often, and the text of frequent tokens.

Each distinct text is counted once for all its copies. Spark shuffles the counts of each task, in parts by
token.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.bags import LARGE
from factory.lake_spark.documents import map_columns
from spark_udfs.dedup import bags as udf

TEXT_DOCUMENTS = 10
"""Least documents of a token whose text is stored: most tokens are rarer, and nobody reads them."""


def vocabulary(bags: DataFrame, previous: DataFrame | None = None) -> DataFrame:
    """Document and term frequency of every token of the located `bags`: VOCABULARY.

    A document without a text counts in `n_documents` alone. A token takes its text from the `previous`
    vocabulary if the bag that stored it no longer exists.
    """
    merge = partial(udf.merge_counts, text_documents=TEXT_DOCUMENTS)
    tokens = (
        map_columns(bags.select("copies", "file", "row"), LARGE, udf.count_tokens, "part int, counts binary")
        .repartition("part")
        .sortWithinPartitions("part")
        .mapInArrow(merge, "token long, document_frequency long, term_frequency long, text string")
    )
    if previous is not None:
        tokens = _with_known_texts(tokens, previous)
    n_documents = bags.agg(F.coalesce(F.sum("copies"), F.lit(0)).alias("n_documents"))
    return tokens.crossJoin(F.broadcast(n_documents)).select(
        "token",
        "document_frequency",
        "term_frequency",
        "text",
        "n_documents",
        F.lit(None).cast("string").alias("partition"),
    )


def _with_known_texts(tokens: DataFrame, previous: DataFrame) -> DataFrame:
    """`tokens` with the missing texts of frequent ones from `previous`."""
    known = previous.where("text IS NOT NULL").select("token", F.col("text").alias("known"))
    frequent = F.col("document_frequency") >= TEXT_DOCUMENTS
    text = F.when(frequent, F.coalesce("text", "known")).alias("text")
    joined = tokens.join(known, "token", "left")
    return joined.select("token", "document_frequency", "term_frequency", text)
