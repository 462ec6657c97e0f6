"""One signature for each distinct text of a group: LPMH over its weighted bag of words.

Exact copies collapse here, on the content hash: the best of them by priority represents the text. Every
copy is signed before they collapse, which costs less than shuffling all text to sign it once.
"""

from __future__ import annotations

import hashlib
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StructType

from factory.dedup.config import MAX_DISTINCT, DedupConfig
from factory.dedup.priority import rank
from factory.dedup.vocabulary import idf_table
from spark_udfs import signatures as udf


def signatures(documents: DataFrame, vocabulary: DataFrame, config: DedupConfig) -> DataFrame:
    """The representative of each distinct text, its signature and how many copies it has: SIGNATURES.

    Runs a job when called: the idf table is broadcast. A text without tokens has no signature.
    """
    idf = idf_table(vocabulary)
    sign = partial(
        udf.sign,
        idf=documents.sparkSession.sparkContext.broadcast(idf),
        kind=config.kind,
        values=config.values,
        seed=config.seed,
        max_distinct=MAX_DISTINCT,
    )
    inputs = documents.select(
        "doc_id", "dataset", "content_hash", "partition", rank(documents, config).alias("rank"), "text"
    )
    schema = StructType(inputs.schema.fields[:-1]).add("signature", BinaryType())
    signed = inputs.mapInArrow(sign, schema.add("n_tokens", LongType()).add("n_distinct", LongType()))
    best = F.min_by(F.struct("doc_id", "dataset", "n_tokens", "n_distinct", "signature", "partition"), "rank")
    version = config.signature_version(hashlib.blake2b(idf, digest_size=8).hexdigest())
    return (
        signed.groupBy("content_hash")
        .agg(best.alias("best"), F.count("*").alias("copies"))
        .select(
            "best.doc_id",
            "best.dataset",
            "content_hash",
            "copies",
            "best.n_tokens",
            "best.n_distinct",
            "best.signature",
            F.lit(version).alias("version"),
            "best.partition",
        )
    )
