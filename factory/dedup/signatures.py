"""One signature for each distinct text of a group: weighted MinHash of its bag of words.

Exact copies collapse here, on the content hash: the best of them by priority represents the text. Every
copy is signed before they collapse, which costs less than shuffling all text to sign it once. A text that was
signed before with the same vocabulary and settings is not signed again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StructType

from factory.dedup.config import MAX_DISTINCT, DedupConfig
from factory.dedup.priority import rank
from factory.dedup.vocabulary import digest, idf_table
from factory.errors import ConfigurationError
from spark_udfs import signatures as udf

log = logging.getLogger(__name__)

_OF_DOCUMENT = ("doc_id", "dataset", "content_hash", "partition", "rank")
_BROADCAST_ROWS = 200_000  # ids up to which they are sent to the texts instead of the reverse


def signatures(
    documents: DataFrame, vocabulary: DataFrame, config: DedupConfig, before: DataFrame | None = None
) -> DataFrame:
    """The representative of each distinct text, its signature and how many copies it has: SIGNATURES.

    `before` are signatures from which those of the same version are taken over, by content hash. Runs a job
    when called: the idf table is broadcast; with `before` another, over the documents without their texts.
    A text without tokens has no signature.
    """
    idf = idf_table(vocabulary)
    version = config.signature_version(digest(idf))
    ranked = documents.withColumn("rank", rank(documents, config)).select(*_OF_DOCUMENT, "text")
    sign = partial(_signed, idf=idf, config=config)
    signed = sign(ranked) if before is None else _with_known(ranked, before, version, sign)
    best = F.min_by(F.struct("doc_id", "dataset", "n_tokens", "n_distinct", "signature", "partition"), "rank")
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


def _signed(texts: DataFrame, idf: bytes, config: DedupConfig) -> DataFrame:
    """The columns of `texts` but the last, `text`, with (signature, n_tokens, n_distinct) of it."""
    sign = partial(
        udf.sign,
        idf=texts.sparkSession.sparkContext.broadcast(idf),
        kind=config.lexer,
        max_distinct=MAX_DISTINCT,
        scheme=config.scheme,
        values=config.values,
        value_bits=config.value_bits,
        seed=config.seed,
    )
    schema = StructType(texts.schema.fields[:-1]).add("signature", BinaryType())
    return texts.mapInArrow(sign, schema.add("n_tokens", LongType()).add("n_distinct", LongType()))


def _with_known(
    texts: DataFrame, before: DataFrame, version: str, sign: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """What `sign` gives, called for the texts alone whose signature `before` does not hold.

    1. Without reading a text, find the documents whose content hash has no signature of this version.
    2. Read and sign these, from the partitions that hold any; they are broadcast where they are few.
    3. The others take the signature of their content hash.
    """
    known = before.where(F.col("version") == version).select(
        "content_hash", "signature", "n_tokens", "n_distinct"
    )
    place = ("doc_id", "dataset", "partition")
    new = texts.join(known, "content_hash", "left_anti").select(*place).localCheckpoint()  # 1
    n_new = new.count()
    log.info("signatures: %d documents hold texts that were not signed yet", n_new)
    wanted = new.select("doc_id")
    fresh = sign(  # 2
        texts.where(_lies_in(new.select("dataset", "partition").distinct().collect()))
        .join(F.broadcast(wanted) if n_new <= _BROADCAST_ROWS else wanted, "doc_id", "left_semi")
        .select(texts.columns)
    )
    taken_over = texts.drop("text").join(known, "content_hash").select(fresh.columns)  # 3
    return fresh.union(taken_over)


def _lies_in(parts: Sequence[Row]) -> Column:
    """Whether a document is of one of these (dataset, partition), said such that files can be skipped."""
    found = F.lit(False)
    for dataset in sorted({part.dataset for part in parts}):
        keys = [part.partition for part in parts if part.dataset == dataset]
        within = F.col("partition").isin([key for key in keys if key is not None])
        if None in keys:
            within |= F.col("partition").isNull()
        found |= (F.col("dataset") == dataset) & within
    return found


def check_versions(signatures: DataFrame, config: DedupConfig, vocabulary: str = "") -> None:
    """Refuse signatures that cannot be compared with each other, or that other settings have made.

    With the digest of a vocabulary, also those of another one. Runs a job. Raises ConfigurationError, which
    names the versions.
    """
    found = signatures.groupBy("version").agg(F.count("*").alias("texts")).orderBy("version").collect()
    if len(found) > 1:
        versions = ", ".join(f"`{row.version}` ({row.texts:,} texts)" for row in found)
        raise ConfigurationError(
            f"Signatures of {len(found)} versions meet in one group: {versions}. "
            "Only those of one version can be compared: sign the whole group again."
        )
    wanted = config.signature_version(vocabulary)
    for row in found:
        if not row.version.startswith(wanted):
            raise ConfigurationError(
                f"The signatures of the group are `{row.version}`, its settings and its vocabulary ask for "
                f"`{wanted}`. Sign the group again, or set it back."
            )
