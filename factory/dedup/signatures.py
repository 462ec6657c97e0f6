"""One signature for each distinct text of a group: weighted MinHash of its bag of words.

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
from factory.errors import ConfigurationError
from spark_udfs import signatures as udf


def signatures(documents: DataFrame, vocabulary: DataFrame, config: DedupConfig) -> DataFrame:
    """The representative of each distinct text, its signature and how many copies it has: SIGNATURES.

    Runs a job when called: the idf table is broadcast. A text without tokens has no signature.
    """
    idf = idf_table(vocabulary)
    sign = partial(
        udf.sign,
        idf=documents.sparkSession.sparkContext.broadcast(idf),
        kind=config.lexer,
        max_distinct=MAX_DISTINCT,
        scheme=config.scheme,
        values=config.values,
        value_bits=config.value_bits,
        seed=config.seed,
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


def check_versions(signatures: DataFrame, config: DedupConfig) -> None:
    """Refuse signatures that cannot be compared with each other, or that other settings have made.

    Runs a job. Raises ConfigurationError, which names the versions.
    """
    found = signatures.groupBy("version").agg(F.count("*").alias("texts")).orderBy("version").collect()
    if len(found) > 1:
        versions = ", ".join(f"`{row.version}` ({row.texts:,} texts)" for row in found)
        raise ConfigurationError(
            f"Signatures of {len(found)} versions meet in one group: {versions}. "
            "Only those of one version can be compared: sign the whole group again."
        )
    wanted = config.signature_version("")
    for row in found:
        if not row.version.startswith(wanted):
            raise ConfigurationError(
                f"The signatures of the group are `{row.version}`, its settings ask for `{wanted}...`. "
                "Sign the group again, or set it back."
            )
