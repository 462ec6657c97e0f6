"""Losses of clusters by a proxy model, before and after it continues on half of each: LOSSES.

The model scores at most 64 documents of a cluster, and 16 KiB of each. They are the documents of the least
hashes, after leaving out the training documents of the proxy. The loss *after* tells noise, which stays high,
from another language, which the proxy learns, and from templates, which it learns by heart.

    clusters   doc_id, cell, cluster
    documents  doc_id, text
    languages  texts -> languages
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.clusters.checkpoint import Checkpoint, unchanged_checkpoint
from factory.clusters.options import WEIGHT
from factory.clusters.terms import document_frequency
from factory.lake.schemas.clusters import LOSSES
from factory.models.arrow_stream import arrow_stream_of
from factory.models.sampling import unit_interval
from spark_udfs.clusters import losses as udf

_CANDIDATES = 4 * udf.DOCUMENTS  # of a cluster, expected, from which the first by hash are chosen
_COMMON_WORDS_DOCUMENTS = 2_000  # that tell how common words are


def losses(
    clusters: DataFrame,
    documents: DataFrame,
    languages: udf.Languages | None,
    proxy: DataFrame,
    weight: float = WEIGHT,
    checkpoint: Checkpoint | None = None,
) -> DataFrame:
    """Return a row of LOSSES for each cluster of `clusters` (CLUSTERS); `proxy` is the row of PROXY.

    Without `languages` the documents have theirs in a column `language`. The row does not hold a checkpoint:
    `checkpoint` names its files. Runs three bounded jobs when called, to read the proxy, to choose the
    documents that are scored, and to count common words. Raises ConfigurationError if the files of a
    checkpoint have changed since its row was made.
    """
    model = proxy.toArrow()
    sizes = clusters.groupBy("cluster", "cell").agg(F.count("*").alias("n_documents"))
    sample = _sample(clusters, sizes, model["trained_below"][0].as_py()).localCheckpoint()
    first = sample.orderBy("unit", "doc_id").limit(_COMMON_WORDS_DOCUMENTS)
    text = F.substring("text", 1, udf.TEXT_BYTES).alias("text")
    texts = documents.where("text != ''").select("doc_id", text, *([] if languages else ["language"]))
    score = partial(
        udf.losses,
        open_proxy=_opening(model, checkpoint),
        weight=weight,
        document_frequency=document_frequency(texts.join(F.broadcast(first), "doc_id")),
        languages=languages,
    )
    scores = (
        sample.join(texts, "doc_id")
        .repartition("cluster")
        .sortWithinPartitions("cluster", "unit", "doc_id")
        .mapInArrow(score, from_arrow_schema(udf.SCORES))
    )
    no_words = F.array().cast("array<string>")
    columns = {
        "n_sampled": F.coalesce("n_sampled", F.lit(0)),
        "n_families": F.coalesce("n_families", F.lit(0)),
        "terms": F.coalesce("terms", no_words),
        "examples": F.coalesce("examples", no_words),
        "partition": F.lit(None).cast("string"),
    }
    return sizes.join(scores, "cluster", "left").withColumns(columns).select(*LOSSES.names)


def _opening(model: pa.Table, checkpoint: Checkpoint | None) -> Callable[[], udf.Proxy]:
    """Return a function that opens the proxy of a row of PROXY, in a worker."""
    if model["kind"][0].as_py() == "transformers":
        [row] = model.to_pylist()
        return unchanged_checkpoint(checkpoint, row)
    return partial(udf.load, arrow_stream_of(model))


def _sample(clusters: DataFrame, sizes: DataFrame, trained_below: float) -> DataFrame:
    """(cluster, unit, doc_id) of the documents that are scored, if they have a text."""
    share = F.lit(float(_CANDIDATES)) / F.col("n_documents")
    below = trained_below + (1 - trained_below) * share
    by_hash = Window.partitionBy("cluster").orderBy("unit", "doc_id")
    return (
        clusters.select("doc_id", "cluster", unit_interval().alias("unit"))
        .join(sizes.select("cluster", "n_documents"), "cluster")
        .where((F.col("unit") >= trained_below) & (F.col("unit") < below))
        .withColumn("place", F.row_number().over(by_hash))
        .where(F.col("place") <= udf.DOCUMENTS)
        .select("cluster", "unit", "doc_id")
    )
