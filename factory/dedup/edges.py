"""The similarity graph: pairs that share a bucket, look alike by their signatures, and are similar exactly.

1. All pairs of a bucket of up to `PAIR_BUCKET` members meet in *cells*, with the signatures of their
   documents; workers read their bags there, and Spark never shuffles bags. The estimate of two signatures
   rules out pairs that lie far below the threshold; the remaining pairs are compared exactly. A cell is named
   after the least neighbour of a pair's ends, so a document of a clique or a star comes once instead of once
   per pair; a hub's pairs are spread over several cells.
2. A larger bucket never becomes a clique: its members come by priority and are compared exactly with the
   leaders of their kind (`factory.dedup.large_buckets`), at a bounded cost. The keep rule finds the same kept
   documents on these few edges as on all pairs of the bucket.

Every edge carries the exact similarity, which reaches the lowest threshold of the group's sweep; `similar`
selects the edges of a higher threshold. Large buckets have leaders for each threshold, so no threshold is
compared again. The keep rule looks at edges alone, so it never removes a document for an estimate; a pair
that banding misses has no edge.

Until it is compared, a document is identified by a hash of its id, a fourth of the bytes. If two documents
have the same hash, one of them may lack edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.dedup.banding import SignatureSize
from factory.dedup.common_words import CommonWords, common_words
from factory.dedup.idf import SharedTable, digest, idf_table, share
from factory.dedup.large_buckets import Omissions, Threshold, large_bucket_edges
from factory.dedup.priority import Priority, ranked
from factory.dedup.signatures import check_versions
from factory.frozen_model import FrozenModel
from factory.lake_spark.documents import map_scattered
from spark_udfs.dedup import buckets as bucket_udf
from spark_udfs.dedup import edges as udf
from spark_udfs.dedup import pair_cells as cell_udf

PAIR_BUCKET = 64
"""Largest bucket whose pairs are all compared: 2,016 pairs, which one task holds with ease."""

_PARTS = "part int, records binary"
_EDGES = "left string, right string, estimate double, similarity double"


class EdgeConfig(FrozenModel):
    """The settings that decide EDGES, apart from texts, signatures and buckets."""

    thresholds: tuple[float, ...]  # ascending
    deciding: tuple[float, ...]  # of these, the ones at which a keep rule decides
    size: SignatureSize
    priority: tuple[Priority, ...]


@dataclass(frozen=True)
class SimilarityGraph:
    """The similarity graph: the rows of EDGES, the omitted pairs, and the pairs hidden by common words."""

    rows: DataFrame
    omissions: Omissions
    common_words: CommonWords


def edges(
    buckets: DataFrame,
    signatures: DataFrame,
    bags: DataFrame,
    documents: DataFrame,
    vocabulary: DataFrame,
    config: EdgeConfig,
    version: str,
) -> SimilarityGraph:
    """Every verified pair of similar documents, once, left id below right: EDGES.

    `bags` are located. Runs jobs when called, to build the idf table, to find the pairs of each bucket, which
    are read several times, and to compare the members of large buckets. Raises ConfigurationError for
    signatures that were not made with `vocabulary`, or with a version that does not begin with `version`.
    """
    idf = idf_table(vocabulary)
    check_versions(signatures, version + digest(idf))
    weights = share(documents.sparkSession, idf)
    collisions = _collisions(buckets).localCheckpoint()
    signed = signed_bags(signatures, bags)
    ends = collisions.where("NOT large").drop("large")
    pairs, omissions = verified(ends, signed, config.thresholds[0], config.size, weights), Omissions()
    large = collisions.where("large").drop("large")
    if not large.isEmpty():
        members = large.mapInArrow(bucket_udf.members, "bucket long, document long")
        limits = [
            Threshold(threshold, config.size.least_estimate(threshold), threshold in config.deciding)
            for threshold in config.thresholds
        ]
        by_rank = ranked(documents, config.priority)
        few, omissions = large_bucket_edges(members, signed, by_rank, weights, config.size.value_bits, limits)
        pairs = pairs.union(few).distinct()
    return SimilarityGraph(
        pairs.withColumn("partition", F.lit(None).cast("string")),
        omissions,
        common_words(signed, config.deciding[0], config.size.value_bits, weights),
    )


def similar(edges: DataFrame, threshold: float) -> DataFrame:
    """The edges with a similarity of at least `threshold`."""
    return edges.where(F.col("similarity") >= threshold)


def document_key(doc_id: str = "doc_id") -> Column:
    """The hash that identifies the document of column `doc_id` until it is compared."""
    return F.xxhash64(doc_id).alias("document")


def signed_bags(signatures: DataFrame, bags: DataFrame) -> DataFrame:
    """(document, doc_id, signature, n_distinct) of each signed document, and the (file, row) of its bag.

    `bags` are located.
    """
    signed = signatures.where("signature IS NOT NULL")
    locations = bags.select("content_hash", "file", "row")
    return signed.join(locations, "content_hash").select(
        document_key(), "doc_id", "signature", "n_distinct", "file", "row"
    )


def ends_of(pairs: DataFrame) -> DataFrame:
    """The ends of pairs (document, other), for `verified`."""
    return pairs.mapInArrow(cell_udf.ends, _PARTS)


def verified(
    ends: DataFrame, signed: DataFrame, threshold: float, size: SignatureSize, idf: SharedTable
) -> DataFrame:
    """(left, right, estimate, similarity) of the pairs of `ends` similar by at least `threshold`.

    `ends` are packed (`spark_udfs.dedup.pair_cells`) and may repeat.
    """
    neighbours = _by_part(ends).mapInArrow(cell_udf.neighbours, _PARTS)
    cells = _by_part(neighbours).mapInArrow(cell_udf.cells, "cell long, document long, others binary")
    verify = partial(
        udf.verified_pairs,
        idf=idf,
        value_bits=size.value_bits,
        least_estimate=size.least_estimate(threshold),
        threshold=threshold,
    )
    together = (
        cells.join(signed.drop("n_distinct"), "document").repartition("cell").sortWithinPartitions("cell")
    )
    return map_scattered(together, "bag", pa.large_binary(), verify, _EDGES)


def _collisions(buckets: DataFrame) -> DataFrame:
    """(part, records, large): the ends of the pairs of small buckets, and the members of large ones, packed.

    Buckets with the same members are one, named by a hash of the members: near copies share most of their
    bands, and would meet once per band. If two sets of members have the same hash, they are one bucket.
    """
    members = buckets.select(document_key(), "buckets").mapInArrow(bucket_udf.parted, _PARTS)
    shared = _by_part(members).mapInArrow(bucket_udf.shared, _PARTS)
    collide = partial(bucket_udf.collisions, pair_bucket=PAIR_BUCKET)
    return _by_part(shared).mapInArrow(collide, f"{_PARTS}, large boolean")


def _by_part(rows: DataFrame) -> DataFrame:
    return rows.repartition("part").sortWithinPartitions("part")
