"""The similarity graph: pairs that share a bucket, look alike by their signatures, and are alike exactly.

1. The pairs of buckets of up to `pair_bucket` members meet in *cells*, with the signatures of their
   documents; their bags are read there, and never shuffled. The estimate of two signatures throws away the
   pairs that lie far below the threshold; what is left is compared exactly. A cell is named after the least
   neighbour of a pair's ends, so a document of a clique or a star comes once instead of once a pair; a hub's
   pairs are spread over several cells.
2. Of a larger bucket no clique is ever built: its members come by priority and are compared exactly with the
   leaders of their kind (`native/src/dedup/large_buckets.rs`). The keep rule finds the same kept documents on
   these few edges as on all pairs of the bucket. Large buckets with common members are joined, so that a
   member comes once, not once a band.

Every edge carries the exact similarity, and it reaches the lowest threshold of the group's sweep; `similar`
gives those of a higher one. Large buckets have leaders for each threshold, so no threshold is compared again.
The keep rule looks at edges alone, so it never removes a document for an estimate; a pair that banding misses
has no edge.

Until it is compared, a document is known by a hash of its id, a fourth of the bytes. Should two have one
hash, one of them has fewer edges than it might.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from factory.dedup.config import DedupConfig
from factory.dedup.idf import SharedTable, digest, idf_table, share
from factory.dedup.priority import rank
from factory.dedup.signatures import check_versions
from factory.lake_spark.documents import map_scattered
from spark_udfs.dedup import buckets as of_buckets
from spark_udfs.dedup import edges as udf
from spark_udfs.dedup import pair_cells as of_cells

_PARTS = "part int, records binary"
_EDGES = "left string, right string, estimate double, similarity double"


def edges(
    buckets: DataFrame,
    signatures: DataFrame,
    bags: DataFrame,
    documents: DataFrame,
    vocabulary: DataFrame,
    config: DedupConfig,
) -> DataFrame:
    """Every verified pair of similar documents, once, left id below right: EDGES.

    `bags` are located. Runs jobs when called: the idf table is built, and what meets in buckets, which is
    read several times, is computed once. Raises ConfigurationError for signatures that were not made with
    `vocabulary`.
    """
    idf = idf_table(vocabulary)
    check_versions(signatures, config, digest(idf))
    weights = share(documents.sparkSession, idf)
    met = _met(buckets, config).localCheckpoint()
    signed = signed_bags(signatures, bags)
    ends = met.where("NOT large").drop("large")
    found = verified(ends, signed, config.thresholds[0], config, weights)
    large = met.where("large").drop("large")
    if not large.isEmpty():
        members = large.mapInArrow(of_buckets.members, "bucket long, document long")
        found = found.union(_large_bucket_edges(members, signed, documents, config, weights)).distinct()
    return found.withColumn("partition", F.lit(None).cast("string"))


def similar(edges: DataFrame, threshold: float) -> DataFrame:
    """The edges whose similarity reaches `threshold`."""
    return edges.where(F.col("similarity") >= threshold)


def document_key(doc_id: str = "doc_id") -> Column:
    """What the document of column `doc_id` is known by until it is compared."""
    return F.xxhash64(doc_id).alias("document")


def signed_bags(signatures: DataFrame, bags: DataFrame) -> DataFrame:
    """(document, doc_id, signature) of each document that has a signature, with the (file, row) of its bag.

    `bags` are located.
    """
    signed = signatures.where("signature IS NOT NULL")
    places = bags.select("content_hash", "file", "row")
    return signed.join(places, "content_hash").select(document_key(), "doc_id", "signature", "file", "row")


def ends_of(pairs: DataFrame) -> DataFrame:
    """The ends of pairs (document, other), for `verified`."""
    return pairs.mapInArrow(of_cells.ends, _PARTS)


def verified(
    ends: DataFrame, signed: DataFrame, threshold: float, config: DedupConfig, idf: SharedTable
) -> DataFrame:
    """(left, right, estimate, similarity) of the pairs of `ends` that reach `threshold` exactly.

    `ends` are packed (`spark_udfs.dedup.pair_cells`) and may repeat.
    """
    neighbours = _by_part(ends).mapInArrow(of_cells.neighbours, _PARTS)
    cells = _by_part(neighbours).mapInArrow(of_cells.cells, "cell long, document long, others binary")
    verify = partial(
        udf.verified_pairs,
        idf=idf,
        value_bits=config.value_bits,
        least_estimate=config.least_estimate(threshold),
        threshold=threshold,
    )
    together = cells.join(signed, "document").repartition("cell").sortWithinPartitions("cell")
    return map_scattered(together, "bag", pa.large_binary(), verify, _EDGES)


def _met(buckets: DataFrame, config: DedupConfig) -> DataFrame:
    """(part, records, large): the ends of the pairs of small buckets, and the members of large ones, packed.

    Buckets of the same members are one, named by a hash of them: near copies share most of their bands, and
    would meet once a band. Should two sets have one hash, they are one bucket.
    """
    members = buckets.select(document_key(), "buckets").mapInArrow(of_buckets.parted, _PARTS)
    shared = _by_part(members).mapInArrow(of_buckets.shared, _PARTS)
    meet = partial(of_buckets.met, pair_bucket=config.pair_bucket)
    return _by_part(shared).mapInArrow(meet, f"{_PARTS}, large boolean")


def _by_part(rows: DataFrame) -> DataFrame:
    return rows.repartition("part").sortWithinPartitions("part")


def _large_bucket_edges(
    members: DataFrame, signed: DataFrame, documents: DataFrame, config: DedupConfig, idf: SharedTable
) -> DataFrame:
    """The edges inside large buckets, whose `members` are (bucket, document)."""
    least = members.groupBy("document").agg(F.min("bucket").alias("least"))
    in_bucket = Window.partitionBy("bucket")
    cells = members.join(least, "document").select(F.min("least").over(in_bucket).alias("cell"), "document")
    ranked = documents.select("doc_id", rank(documents, config).alias("rank"))
    compare = partial(
        udf.large_bucket_edges,
        idf=idf,
        value_bits=config.value_bits,
        limits=[(config.least_estimate(threshold), threshold) for threshold in config.thresholds],
        neighbours=config.neighbours,
    )
    placed = (
        cells.distinct()
        .join(signed, "document")
        .join(ranked, "doc_id")
        .repartition("cell")
        .sortWithinPartitions("cell", "rank")
        .select("cell", "doc_id", "signature", "file", "row")
    )
    return map_scattered(placed, "bag", pa.large_binary(), compare, _EDGES)
