"""The vocabulary of a group: how many documents hold each token, how often, and the text of frequent ones.

Each distinct text is counted once, for all documents that hold it. What is shuffled is the counts of a task,
in parts by token.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.bags import LARGE
from factory.dedup.config import DedupConfig
from factory.lake_spark.documents import map_columns
from spark_udfs.dedup import bags as udf


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
