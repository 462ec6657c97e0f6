"""Words that set groups of documents apart, for people who read their tables."""

from __future__ import annotations

from functools import partial

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_udfs.clusters.terms import (
    ALL_TEXTS,
    N_BUCKETS,
    DocumentFrequency,
    terms_of_groups,
    texts_with_buckets,
)

MOST_TEXTS = 50  # of a group
TEXT_CHARACTERS = 4_096  # of a text, from its beginning


def beginning(text: str = "text") -> Column:
    """The beginning of a text, which its terms are taken from; empty for null."""
    return F.substring(F.coalesce(text, F.lit("")), 1, TEXT_CHARACTERS).alias("text")


def document_frequency(texts: DataFrame) -> DocumentFrequency:
    """Return how many rows of `texts` (text) have each word. Runs a job."""
    counts_of_tasks = texts.select(beginning()).mapInArrow(texts_with_buckets, "bucket int, n long")
    totals = counts_of_tasks.groupBy("bucket").agg(F.sum("n").alias("n")).toArrow()
    buckets, n_texts = totals["bucket"].to_numpy(), totals["n"].to_numpy()
    counts = np.zeros(N_BUCKETS, np.int64)
    counts[buckets[buckets != ALL_TEXTS]] = n_texts[buckets != ALL_TEXTS]
    return DocumentFrequency(int(n_texts[buckets == ALL_TEXTS].sum()), counts)


def terms_by(group: str, texts: DataFrame) -> DataFrame:
    """Return (group, terms) of texts (group, doc_id, text), at most MOST_TEXTS a group. Runs a job."""
    frequency = document_frequency(texts)
    function = partial(terms_of_groups, group=group, document_frequency=frequency)
    # By id within a group, because a sum of floats depends on its order.
    in_order = texts.select(group, "doc_id", beginning()).repartition(group)
    sorted_texts = in_order.sortWithinPartitions(group, "doc_id").drop("doc_id")
    return sorted_texts.mapInArrow(function, f"{group} int, terms array<string>")
