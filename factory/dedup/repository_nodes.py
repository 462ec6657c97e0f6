"""The repositories of a group with their ranks, and the distinct texts that each of them holds.

The documents of one dataset, repository name and revision are a repository: two revisions are two
repositories, so that the newer can replace the older. A repository ranks as a document does
(`factory.dedup.priority`): it is a fork if any of its documents says so, takes the most stars and the latest
date that any of them names, and is as long as all of them together. Where dates do not order the revisions of
one name, their numbers do. Documents without a repository or without tokens are not compared: they count in
no share.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from factory.dedup.priority import Priority, orders


def repository_id() -> Column:
    """A document's repository as `factory.lake.repository` names it, or null."""
    revision = F.coalesce(F.concat(F.lit("@"), F.col("revision")), F.lit(""))
    return F.concat("dataset", F.lit("/"), "repository", revision)


def texts_held(documents: DataFrame, signatures: DataFrame) -> DataFrame:
    """(repository_id, text_id, documents, bytes): the texts with tokens of each repository, each once.

    `text_id` is the `doc_id` of the text in `signatures`; `documents` and `bytes` count its copies in the
    repository.
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
    documents: DataFrame, held: DataFrame, priority: Sequence[Priority], pinned: Sequence[str]
) -> DataFrame:
    """One row per repository of `documents`, with its `rank`, smaller for a better repository.

    (repository_id, dataset, repository, revision, documents, bytes, pinned, rank), and `compared` and
    `compared_bytes`, which count its documents with tokens.
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
    aged = found.withColumns({"age": F.dense_rank().over(newest_first), "pinned": _is_pinned(pinned)})
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
        _rank(aged, priority).alias("rank"),
    )


def least_share(documents: Column | str, n_bytes: Column | str, of: str = "") -> Column:
    """The lesser of the shares of a repository's compared documents and bytes, or 0 without any."""
    of_documents, of_bytes = F.col(f"{of}compared"), F.col(f"{of}compared_bytes")
    return F.coalesce(
        F.least(F.try_divide(documents, of_documents), F.try_divide(n_bytes, of_bytes)), F.lit(0.0)
    )


def _is_pinned(names: Sequence[str]) -> Column:
    return F.col("repository").isin(*names) | F.coalesce(
        F.concat("repository", F.lit("@"), "revision").isin(*names), F.lit(False)
    )


def _rank(repositories: DataFrame, priority: Sequence[Priority]) -> Column:
    columns = [~F.col("pinned")]
    for name, column in orders(repositories, priority).items():
        columns += [column, F.col("age")] if name == "recency" else [column]
    return F.struct(*columns, F.xxhash64("repository_id"), F.col("repository_id"))


def _version() -> Column:
    """A sortable form of a revision: numbers by value, `1.0rc1` before `1.0` before `1.0.post1`."""
    return F.expr(
        "array_append(transform(regexp_extract_all(lower(revision), '([0-9]+|[a-z]+)', 1), part -> CASE "
        "WHEN part RLIKE '^[0-9]' THEN concat('3', lpad(part, greatest(20, length(part)), '0')) "
        "WHEN part = 'post' THEN '3' ELSE concat('1', part) END), '2')"
    )
