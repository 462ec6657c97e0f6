"""The repositories of a group, the best first to stay, and which distinct texts each of them holds.

A repository is what shares dataset, name and revision: two revisions are two repositories, so that the newer
can stand in for the older. It ranks as a document does (`factory.dedup.priority`), by what its documents say:
it is a fork if one of them says so, has the most stars and the latest date any of them names, and is as long
as all of them together. Where dates do not tell revisions of one name apart, their numbers do. Documents
without a repository, and without tokens, are not compared: they count in no share.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from factory.dedup.config import DedupConfig
from factory.dedup.priority import orders
from factory.dedup.repository_config import RepositoryConfig


def repository_id() -> Column:
    """A document's repository as `factory.lake.repository` names it, null where it has none."""
    revision = F.coalesce(F.concat(F.lit("@"), F.col("revision")), F.lit(""))
    return F.concat("dataset", F.lit("/"), "repository", revision)


def texts_held(documents: DataFrame, signatures: DataFrame) -> DataFrame:
    """(repository_id, text_id, documents, bytes): the texts with tokens of each repository, each once.

    A text is named by its row of `signatures`; `documents` of the repository have it, `bytes` in all.
    """
    comparable = signatures.where("signature IS NOT NULL").select(
        "content_hash", F.col("doc_id").alias("text_id")
    )
    return (
        documents.select(repository_id().alias("repository_id"), "content_hash", "n_bytes")
        .where("repository_id IS NOT NULL")
        .join(comparable, "content_hash")
        .groupBy("repository_id", "text_id")
        .agg(F.count("*").alias("documents"), F.sum("n_bytes").alias("bytes"))
    )


def repositories_of(
    documents: DataFrame, held: DataFrame, config: DedupConfig, chosen: RepositoryConfig
) -> DataFrame:
    """One row for each repository of `documents`, with its `rank`, which is smaller for a better one.

    (repository_id, dataset, repository, revision, documents, bytes, pinned, rank), and of its documents that
    have tokens `compared` and `compared_bytes`.
    """
    quality = [F.avg("quality").alias("quality")] if "quality" in documents.columns else []
    found = (
        documents.withColumn("repository_id", repository_id())
        .where("repository_id IS NOT NULL")
        .groupBy("repository_id")
        .agg(
            *(F.min(name).alias(name) for name in ("dataset", "repository", "revision")),
            *(F.max(name).alias(name) for name in ("fork_of", "stars", "created_at")),
            F.count("*").alias("documents"),
            F.sum("n_bytes").alias("n_bytes"),
            *quality,
        )
    )
    compared = held.groupBy("repository_id").agg(
        F.sum("documents").alias("compared"), F.sum("bytes").alias("compared_bytes")
    )
    newest_first = Window.partitionBy("repository").orderBy(_version().desc_nulls_last())
    aged = found.withColumns({"age": F.dense_rank().over(newest_first), "pinned": _pinned(chosen)})
    return aged.join(compared, "repository_id", "left").select(
        "repository_id",
        "dataset",
        "repository",
        "revision",
        "documents",
        F.col("n_bytes").alias("bytes"),
        F.coalesce("compared", F.lit(0).cast("long")).alias("compared"),
        F.coalesce("compared_bytes", F.lit(0).cast("long")).alias("compared_bytes"),
        "pinned",
        _rank(aged, config).alias("rank"),
    )


def least_share(documents: Column | str, n_bytes: Column | str, of: str = "") -> Column:
    """The lesser of the shares of a repository's compared documents and bytes, 0 where it has none."""
    of_documents, of_bytes = F.col(f"{of}compared"), F.col(f"{of}compared_bytes")
    return F.coalesce(
        F.least(F.try_divide(documents, of_documents), F.try_divide(n_bytes, of_bytes)), F.lit(0.0)
    )


def _pinned(chosen: RepositoryConfig) -> Column:
    names = list(chosen.pinned)
    return F.col("repository").isin(names) | F.coalesce(
        F.concat("repository", F.lit("@"), "revision").isin(names), F.lit(False)
    )


def _rank(repositories: DataFrame, config: DedupConfig) -> Column:
    columns = [~F.col("pinned")]
    for name, column in orders(repositories, config).items():
        columns += [column, F.col("age")] if name == "recency" else [column]
    return F.struct(*columns, F.xxhash64("repository_id"), F.col("repository_id"))


def _version() -> Column:
    """A revision as something to sort by: numbers by value, `1.0rc1` before `1.0` before `1.0.post1`."""
    return F.expr(
        "array_append(transform(regexp_extract_all(lower(revision), '([0-9]+|[a-z]+)', 1), part -> CASE "
        "WHEN part RLIKE '^[0-9]' THEN concat('3', lpad(part, greatest(20, length(part)), '0')) "
        "WHEN part = 'post' THEN '3' ELSE concat('1', part) END), '2')"
    )
