"""One signature for each distinct text of a group: weighted MinHash of its bag of words.

The best of exact copies by priority represents the text. A text that was signed before with the same
vocabulary and settings is not signed again.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StructType

from factory.dedup.config import DedupConfig
from factory.dedup.idf import SharedTable, digest, idf_table, share
from factory.dedup.priority import rank
from factory.errors import ConfigurationError
from factory.lake_spark.documents import map_columns
from spark_udfs.dedup import signatures as udf


def signatures(
    documents: DataFrame,
    bags: DataFrame,
    vocabulary: DataFrame,
    config: DedupConfig,
    before: DataFrame | None = None,
) -> DataFrame:
    """The representative of each distinct text, its signature and how many copies it has: SIGNATURES.

    `bags` are those of `documents`, located. `before` are signatures from which those of the same version are
    taken over, by content hash. Runs jobs when called: the idf table is built. A text without tokens has
    no signature.
    """
    idf = idf_table(vocabulary)
    version = config.signature_version(digest(idf))
    shared = share(documents.sparkSession, idf)
    texts = _texts(documents, bags, config)
    if before is None:
        signed = _signed(texts, shared, config)
    else:
        known = before.where(F.col("version") == version).select("content_hash", "signature", "n_distinct")
        fresh = _signed(texts.join(known, "content_hash", "left_anti").select(texts.columns), shared, config)
        signed = fresh.union(texts.join(known, "content_hash").select(fresh.columns))
    return signed.select(
        "doc_id",
        "dataset",
        "content_hash",
        "copies",
        "n_tokens",
        "n_distinct",
        "signature",
        F.lit(version).alias("version"),
        "partition",
    )


def _texts(documents: DataFrame, bags: DataFrame, config: DedupConfig) -> DataFrame:
    """One row for each content hash: its best document, how many have it, and where its bag lies."""
    best = F.min_by(F.struct("doc_id", "dataset", "partition"), rank(documents, config)).alias("best")
    placed = bags.select("content_hash", "copies", "n_tokens", "file", "row")
    return (
        documents.groupBy("content_hash")
        .agg(best)
        .select("content_hash", "best.*")
        .join(placed, "content_hash")
    )


def _signed(texts: DataFrame, idf: SharedTable, config: DedupConfig) -> DataFrame:
    """The columns of `texts` but for where their bags lie, with (signature, n_distinct)."""
    sign = partial(
        udf.sign,
        idf=idf,
        scheme=config.scheme,
        values=config.values,
        value_bits=config.value_bits,
        seed=config.seed,
    )
    schema = StructType(texts.drop("file", "row").schema.fields).add("signature", BinaryType())
    return map_columns(texts, ["bag"], sign, schema.add("n_distinct", LongType()))


def check_versions(signatures: DataFrame, config: DedupConfig, vocabulary: str = "") -> None:
    """Refuse signatures that cannot be compared with each other, or that other settings have made.

    With the digest of a vocabulary, also those of another one. Runs a job. Raises ConfigurationError, which
    names the versions.
    """
    wanted = config.signature_version(vocabulary)
    if vocabulary and signatures.where(F.col("version") != wanted).isEmpty():
        return  # told by the dictionaries of the files, in half the time of an aggregate
    found = signatures.groupBy("version").agg(F.count("*").alias("texts")).orderBy("version").collect()
    if len(found) > 1:
        versions = ", ".join(f"`{row.version}` ({row.texts:,} texts)" for row in found)
        raise ConfigurationError(
            f"Signatures of {len(found)} versions meet in one group: {versions}. "
            "Only those of one version can be compared: sign the whole group again."
        )
    for row in found:
        if not row.version.startswith(wanted):
            raise ConfigurationError(
                f"The signatures of the group are `{row.version}`, its settings and its vocabulary ask for "
                f"`{wanted}`. Sign the group again, or set it back."
            )
