"""Training sequences, `packed.<dataset>`, and the placement of each piece of a document in them.

Revisions of repositories hash to shards; a shard, in order of (repository, revision, position), is cut in
chunks; Spark plans every chunk separately, from its lengths and dependencies and from the number of tokens
before it (`native/src/packing/runs.rs`). A sequence's number, its ordinal, follows from (append, shard,
chunk, position in the plan), never from files or partitions. Tokens travel once, from their document to
their sequence; text never travels.

Inside a chunk, a hash of their first piece orders the sequences, so that reading in order already mixes long
and short documents; neighbors in the order of a repository meet inside sequences, not across them.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.frozen_model import FrozenModel
from factory.lake.schemas.base import REPOSITORY
from factory.lake.schemas.packing import PACKED
from spark_udfs.packing.pack import assemble, plan_chunk

SEQUENCES_PER_CHUNK = 1_024  # so about a thousandth of a chunk's sequences stay unfilled
CHUNKS_PER_SHARD = 4  # repositories differ in size, so a shard of one chunk would often be too small
LEAST_CHUNK_DOCUMENTS = 2_000
ORDINALS_PER_RUN = 512  # consecutive ordinals that stay in one file

_PLAN = "shard long, chunk long, sequence long, position long, doc_id string, doc_offset long, length long"


class PackConfig(FrozenModel):
    """How documents become sequences."""

    sequence_length: int = Field(default=8_192, ge=1, le=1 << 24, description="tokens of a full sequence")
    token_bytes: Literal[2, 4] = Field(default=2, description="bytes per token")
    chunk_documents: int | None = Field(
        default=None, ge=1, description="least documents per chunk; null: enough for a thousand sequences"
    )
    shards: int | None = Field(
        default=None,
        ge=1,
        description="number of shards, a property of the table; null: follows from the documents",
    )
    slack: float = Field(
        default=0.001,  # so the fill stays above .999 of the best: tests/bench/test_packing.py
        ge=0,
        le=1,
        description="share of extra sequences of the table that may be spent to keep dependents together",
    )

    def resolved(self, n_documents: int, n_tokens: int) -> PackConfig:
        """Return the config with chunk and shard sizes chosen for these counts."""
        mean = max(1.0, n_tokens / max(1, n_documents))
        enough = max(LEAST_CHUNK_DOCUMENTS, math.ceil(SEQUENCES_PER_CHUNK * self.sequence_length / mean))
        chunk_documents = self.chunk_documents or enough
        shards = self.shards or max(1, n_documents // (CHUNKS_PER_SHARD * max(chunk_documents, enough)))
        return self.model_copy(update={"chunk_documents": chunk_documents, "shards": shards})


def resolve(tokenized: DataFrame, config: PackConfig) -> PackConfig:
    """Return `config` with sizes chosen for `tokenized`; counts rows and tokens if a size is unset."""
    if config.shards and config.chunk_documents:
        return config
    return config.resolved(*totals(tokenized))


def totals(tokenized: DataFrame) -> tuple[int, int]:
    """Return how many documents and tokens there are; packing loses none."""
    found = tokenized.agg(F.count("*").alias("documents"), F.sum("n_tokens").alias("tokens")).collect()[0]
    return found.documents, found.tokens or 0


def pack(
    tokenized: DataFrame,
    dependencies: DataFrame | None,
    config: PackConfig,
    *,
    append: int = 0,
    first_ordinal: int = 0,
) -> DataFrame:
    """Return rows of `PACKED` for rows of `TOKENIZED` and dependencies of (doc_id, depends_on).

    Later appends to a table are planned separately: they pass the table's shards in `config`, their number,
    and their first ordinal. If `config` leaves shards or chunks unset, one action counts the documents; call
    `resolve` first to record the sizes.
    """
    config = resolve(tokenized, config)
    documents = _with_dependencies(_in_chunks(tokenized, config), dependencies)
    pieces = _numbered(_planned(documents, config), first_ordinal)
    return _assembled(_with_tokens(pieces, tokenized, config), append)


def placements(packed: DataFrame) -> DataFrame:
    """Return rows of `PLACEMENTS`, by doc_id: the inverse of the segments of `packed`."""
    segments = packed.select("ordinal", F.explode("segments").alias("segment"), "partition")
    return segments.select(
        "segment.doc_id", "ordinal", "segment.doc_offset", "segment.length", "partition"
    ).orderBy("doc_id", "doc_offset")


def _in_chunks(tokenized: DataFrame, config: PackConfig) -> DataFrame:
    """Add shard, chunk and the table's tokens before the document, in order of shard and chunk.

    The chunks of a shard differ by at most one document.
    """
    shard = Window.partitionBy("shard")
    in_order = shard.orderBy(*REPOSITORY, "position", "doc_id")
    row = F.row_number().over(in_order) - 1
    earlier_tokens = F.sum("n_tokens").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    documents = (
        tokenized.select("doc_id", *REPOSITORY, "position", "n_tokens")
        .withColumn("shard", F.pmod(F.xxhash64(*REPOSITORY), F.lit(config.shards)))
        .withColumn("row", row.cast("long"))
        .withColumn("rows", F.count("*").over(shard))
        .withColumn("chunk", _chunk(F.lit(config.chunk_documents)))
        .withColumn("tokens_before", F.coalesce(earlier_tokens, F.lit(0)))
        .drop("row", "rows")
    )
    return documents if config.shards == 1 else _after_earlier_shards(documents)


def _after_earlier_shards(documents: DataFrame) -> DataFrame:
    """Add the tokens of earlier shards to the tokens before each document."""
    totals = documents.groupBy("shard").agg(F.sum("n_tokens").alias("shard_tokens"))
    earlier = F.sum("shard_tokens").over(Window.orderBy("shard").rowsBetween(Window.unboundedPreceding, -1))
    starts = totals.select("shard", F.coalesce(earlier, F.lit(0)).alias("start"))
    return (
        documents.join(F.broadcast(starts), "shard")
        .withColumn("tokens_before", F.col("tokens_before") + F.col("start"))
        .drop("start")
    )


def _chunk(least: Column) -> Column:
    n_chunks = F.greatest(F.lit(1), F.floor(F.col("rows") / least))
    return F.floor(F.col("row") * n_chunks / F.col("rows")).cast("long")


def _with_dependencies(documents: DataFrame, dependencies: DataFrame | None) -> DataFrame:
    if dependencies is None:
        return documents.withColumn("depends_on", F.array().cast("array<string>"))
    by_document = dependencies.groupBy("doc_id").agg(F.collect_set("depends_on").alias("depends_on"))
    return documents.join(by_document, "doc_id", "left").withColumn(
        "depends_on", F.coalesce("depends_on", F.array().cast("array<string>"))
    )


def _planned(documents: DataFrame, config: PackConfig) -> DataFrame:
    sequence_length, slack = config.sequence_length, config.slack

    def plan(chunk: pa.Table) -> pa.Table:
        tokens_before = pc.min(chunk.column("tokens_before")).as_py()
        pieces = plan_chunk(chunk, sequence_length, slack, tokens_before)
        for name in ("chunk", "shard"):
            number = chunk.column(name)[0].as_py()
            pieces = pieces.add_column(0, name, pa.array([number] * len(pieces), pa.int64()))
        return pieces

    return documents.groupBy("shard", "chunk").applyInArrow(plan, _PLAN)


def _numbered(planned: DataFrame, first_ordinal: int) -> DataFrame:
    """Add the ordinal of each piece; Spark plans once for the counts and once for the pieces."""
    counts = planned.groupBy("shard", "chunk").agg((F.max("sequence") + 1).alias("n"))
    before = F.sum("n").over(Window.orderBy("shard", "chunk").rowsBetween(Window.unboundedPreceding, -1))
    starts = counts.select("shard", "chunk", (F.coalesce(before, F.lit(0)) + first_ordinal).alias("start"))
    return (
        planned.join(F.broadcast(starts), ["shard", "chunk"])
        .withColumn("ordinal", F.col("start") + F.col("sequence"))
        .drop("start", "sequence")
    )


def _with_tokens(pieces: DataFrame, tokenized: DataFrame, config: PackConfig) -> DataFrame:
    """Add to each piece its share of the document's tokens."""
    width = F.lit(config.token_bytes)
    own = F.substring(
        "tokens", (F.col("doc_offset") * width + 1).cast("int"), (F.col("length") * width).cast("int")
    )
    return pieces.join(tokenized.select("doc_id", "tokens", "partition"), "doc_id").withColumn("tokens", own)


def _assembled(pieces: DataFrame, append: int) -> DataFrame:
    return (
        pieces.repartition(F.floor(F.col("ordinal") / ORDINALS_PER_RUN))
        .sortWithinPartitions("ordinal", "position")
        .mapInArrow(partial(assemble, append=append), from_arrow_schema(PACKED.columns))
    )
