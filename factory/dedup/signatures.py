"""One signature per distinct text of a group: weighted MinHash of its bag of words.

The best copy of a text by priority represents it. A text that was signed before with the same vocabulary and
settings is not signed again.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StructType

from factory.dedup.idf import SharedTable, digest, idf_table, share
from factory.dedup.priority import Priority, rank
from factory.errors import ConfigurationError
from factory.frozen_model import FrozenModel
from factory.lake_spark.documents import map_columns
from spark_udfs.dedup import signatures as udf

Scheme = Literal["lpmh", "cell_oph"]


class SignatureConfig(FrozenModel):
    """The settings that decide SIGNATURES, apart from the texts."""

    lexer: str
    scheme: Scheme
    values: int
    value_bits: int
    seed: int
    priority: tuple[Priority, ...]

    def version(self, vocabulary: str = "") -> str:
        """The version that comparable signatures share; `vocabulary` is the digest of the idf table."""
        return f"{self.scheme}-{self.values}x{self.value_bits}-seed{self.seed}-{self.lexer}-{vocabulary}"


def signatures(
    documents: DataFrame,
    bags: DataFrame,
    vocabulary: DataFrame,
    config: SignatureConfig,
    previous: DataFrame | None = None,
) -> DataFrame:
    """The representative of each distinct text, its signature and its number of copies: SIGNATURES.

    `bags` are the located bags of `documents`. Signatures of the same version and content hash are taken from
    `previous`. Runs jobs when called, to build the idf table. A text without tokens has no signature.
    """
    idf = idf_table(vocabulary)
    version = config.version(digest(idf))
    shared = share(documents.sparkSession, idf)
    texts = _texts(documents, bags, config)
    if previous is None:
        signed = _signed(texts, shared, config)
    else:
        known = previous.where(F.col("version") == version).select("content_hash", "signature", "n_distinct")
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


def _texts(documents: DataFrame, bags: DataFrame, config: SignatureConfig) -> DataFrame:
    """One row per content hash: its best document, its number of copies, and the location of its bag."""
    best = F.min_by(F.struct("doc_id", "dataset", "partition"), rank(documents, config.priority)).alias(
        "best"
    )
    located = bags.select("content_hash", "copies", "n_tokens", "file", "row")
    return (
        documents.groupBy("content_hash")
        .agg(best)
        .select("content_hash", "best.*")
        .join(located, "content_hash")
    )


def _signed(texts: DataFrame, idf: SharedTable, config: SignatureConfig) -> DataFrame:
    """The columns of `texts` with (signature, n_distinct) in place of the location of the bag."""
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


def check_versions(signatures: DataFrame, version: str) -> None:
    """Refuse signatures that cannot be compared with each other, or that other settings made.

    Every signature must have the same version, and it must begin with `version`. Runs two jobs. Raises
    ConfigurationError with the versions it found.
    """
    first = signatures.select("version").first()
    if first is None:
        return
    others = signatures.where(F.col("version") != first.version)
    if first.version.startswith(version) and others.isEmpty():
        return  # the dictionaries of the files say so, in half the time of an aggregate
    counted = signatures.groupBy("version").agg(F.count("*").alias("texts"))
    found = sorted(counted.collect(), key=lambda row: row.version)
    if len(found) > 1:
        versions = ", ".join(f"`{row.version}` ({row.texts:,} texts)" for row in found)
        raise ConfigurationError(
            f"The group has signatures of {len(found)} versions: {versions}. "
            "Signatures compare within one version only: sign the whole group again."
        )
    for row in found:
        if not row.version.startswith(version):
            raise ConfigurationError(
                f"The signatures of the group are `{row.version}`, but its settings and vocabulary ask for "
                f"`{version}`. Sign the group again, or restore the settings."
            )
