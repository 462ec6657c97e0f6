"""Rows of one document each, `packed.<dataset>` of samples: unpacked text, and documents with pictures.

A loader joins samples to rows of its own length at load time; `pack` joins documents before. A document of
more tokens than a row holds is cut into consecutive rows. Documents hash to shards, and a hash orders them
inside a shard, so an ordinal follows from the documents alone, and reading in order mixes them.

Workers read pictures straight from the raw table's files, by file and row. So their bytes pass through the
JVM once, when it writes them, and no shuffle or sort moves them.
"""

from __future__ import annotations

from functools import partial

from pydantic import Field
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.frozen_model import FrozenModel
from factory.lake.schemas.images import IMAGES, PACKED_IMAGES, with_images
from factory.lake.schemas.packing import PACKED
from factory.lake_spark.documents import located, map_scattered
from factory.packing.pack import ORDINALS_PER_RUN
from spark_udfs.packing.samples import CONTENT_LEAF, FACTS, SampleRows, image_rows, text_rows

DOCUMENTS_PER_SHARD = 1 << 16

PACKED_WITH_IMAGES = with_images(PACKED, PACKED_IMAGES)


class SampleConfig(FrozenModel):
    """How documents become rows of their own."""

    sequence_length: int = Field(default=8_192, ge=1, le=1 << 24, description="most tokens of a row")
    shards: int | None = Field(
        default=None, ge=1, description="number of shards; null: follows from the documents"
    )

    def with_shards(self, n_documents: int) -> SampleConfig:
        """Return the config with the number of shards chosen for so many documents."""
        return self.model_copy(update={"shards": self.shards or max(1, n_documents // DOCUMENTS_PER_SHARD)})


def longest_row(tokens: DataFrame, config: SampleConfig) -> int:
    """Return the tokens of the longest row that the documents become, at least 1; an action."""
    longest = tokens.agg(F.max("n_tokens").alias("longest")).collect()[0].longest
    return max(1, min(longest or 0, config.sequence_length))


def samples(tokens: DataFrame, config: SampleConfig, token_bytes: int, *, append: int = 0) -> DataFrame:
    """Return rows of `PACKED`, each of one document, for rows of `TOKENIZED`; `config` is resolved.

    Ordinals begin at 0. A document without tokens has no row.
    """
    rows = SampleRows(config.sequence_length, token_bytes, append)
    cut = partial(text_rows, rows=rows)
    return _in_order(tokens, config).mapInArrow(cut, from_arrow_schema(PACKED.columns))


def samples_with_images(
    tokens: DataFrame,
    documents: DataFrame,
    raw: DataFrame,
    config: SampleConfig,
    token_bytes: int,
    image_token: int,
    *,
    append: int = 0,
) -> DataFrame:
    """Return rows of `PACKED_WITH_IMAGES` for rows of `TOKENIZED`, their documents and the raw table.

    Every `image_token` of a document has its picture, in order. A document that has changed in `raw` since
    it was tokenized raises ConfigurationError when the rows are read, by the hash of text and pictures.
    """
    facts = [F.col(f"{IMAGES}.{fact}").alias(fact) for fact in FACTS]
    document_hash = F.col("content_hash").alias("document_hash")  # each picture has a hash of its own
    hashes = documents.select("doc_id", document_hash)
    of_raw = located(raw).select("doc_id", document_hash, "file", "row", *facts)
    pictures = of_raw.join(hashes, ["doc_id", "document_hash"]).drop("document_hash")
    rows = SampleRows(config.sequence_length, token_bytes, append, image_token)
    return map_scattered(
        _in_order(tokens, config, pictures),
        CONTENT_LEAF,
        None,
        partial(image_rows, rows=rows),
        from_arrow_schema(PACKED_WITH_IMAGES.columns),
    )


def _in_order(tokens: DataFrame, config: SampleConfig, pictures: DataFrame | None = None) -> DataFrame:
    """Return the documents with tokens, with shard and first ordinal, sorted by it in runs of ordinals."""
    n_rows = F.ceil(F.col("n_tokens") / F.lit(config.sequence_length))
    of_shard = Window.partitionBy("shard").orderBy(F.xxhash64(F.lit("order"), F.col("doc_id")), "doc_id")
    earlier = of_shard.rowsBetween(Window.unboundedPreceding, -1)
    first_rows = (
        tokens.where("n_tokens > 0")
        .select("doc_id", n_rows.alias("n_rows"))
        .withColumn("shard", F.pmod(F.xxhash64("doc_id"), F.lit(config.shards)))
        .withColumn("before", F.coalesce(F.sum("n_rows").over(earlier), F.lit(0)))
    )
    sizes = first_rows.groupBy("shard").agg(F.sum("n_rows").alias("of_shard"))
    before = F.sum("of_shard").over(Window.orderBy("shard").rowsBetween(Window.unboundedPreceding, -1))
    starts = sizes.select("shard", F.coalesce(before, F.lit(0)).alias("start"))
    ordinals = first_rows.join(F.broadcast(starts), "shard").select(
        "doc_id", "shard", (F.col("start") + F.col("before")).cast("long").alias("ordinal")
    )
    documents = ordinals.join(tokens.select("doc_id", "tokens", "partition"), "doc_id")
    if pictures is not None:
        documents = documents.join(pictures, "doc_id", "left")
    return documents.repartition(F.floor(F.col("ordinal") / ORDINALS_PER_RUN)).sortWithinPartitions("ordinal")
