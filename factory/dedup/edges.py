"""The similarity graph: pairs that share a bucket, look alike by their signatures, and are alike exactly.

1. In a bucket of up to `pair_bucket` members the estimate of every two signatures throws away the pairs
   that lie far below the threshold. What is left is compared exactly, by the bags of the texts. Pairs meet in
   *cells* named after the least neighbour of their ends, so the bags of a clique or a star are sent once
   instead of once a pair; a hub's pairs are spread over several cells.
2. Larger buckets are crowds, and no clique of them is ever built: members come by priority and are compared
   exactly with the leaders of their kind (`native/src/crowd.rs`). The keep rule finds the same kept
   documents on these few edges as on all pairs of the crowd. Buckets with common members are one crowd, so
   that a bag is sent once for it, not once a band.

Every edge carries the exact similarity, and it reaches the lowest threshold of the group's sweep; `similar`
gives those of a higher one, and crowds have leaders for each, so no threshold is compared again. The keep
rule looks at edges alone, so it never removes a document for an estimate; a pair that banding misses has no
edge.
"""

from __future__ import annotations

from functools import partial

from pyspark import Broadcast
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructType

from factory.dedup.config import DedupConfig
from factory.dedup.priority import rank
from factory.dedup.signatures import check_versions
from factory.dedup.vocabulary import digest, idf_table
from factory.lake_spark.documents import map_columns
from spark_udfs import buckets as of_buckets
from spark_udfs import edges as udf

_PAIRS_A_CELL = 4096
_PARTS = "part int, members binary"
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

    `bags` are located. Runs jobs when called: the idf table is broadcast, and the members of shared
    buckets and the candidate pairs, which are used several times, are computed once. Raises
    ConfigurationError for signatures that were not made with `vocabulary`.
    """
    idf = idf_table(vocabulary)
    check_versions(signatures, config, digest(idf))
    weights = documents.sparkSession.sparkContext.broadcast(idf)
    members = _members(buckets, signatures).localCheckpoint()
    largest = members.agg(F.max("members").alias("members")).collect()[0].members or 0
    places = bag_places(signatures, bags)
    found = _paired(members.where(F.col("members") <= config.pair_bucket), places, config, weights)
    if largest > config.pair_bucket:
        crowded = members.where(F.col("members") > config.pair_bucket)
        found = found.union(_crowded(crowded, places, documents, config, weights)).distinct()
    return found.withColumn("partition", F.lit(None).cast("string"))


def bag_places(signatures: DataFrame, bags: DataFrame) -> DataFrame:
    """(doc_id, file, row) of the bag of each document that has a signature; `bags` are located."""
    return (
        signatures.select("doc_id", "content_hash").join(bags, "content_hash").select("doc_id", "file", "row")
    )


def similar(edges: DataFrame, threshold: float) -> DataFrame:
    """The edges whose similarity reaches `threshold`."""
    return edges.where(F.col("similarity") >= threshold)


def _members(buckets: DataFrame, signatures: DataFrame) -> DataFrame:
    """(bucket, members, doc_id, signature) of the members of buckets that have more than one.

    Buckets of the same members are one, named by a hash of them: near copies share most of their bands, and
    would meet, with their signatures, once a band. Should two sets have one hash, they are one bucket.
    """
    document = F.xxhash64("doc_id").alias("document")  # a fourth of the bytes; who shares it meets too
    members = buckets.select(document, "buckets").mapInArrow(of_buckets.parted, _PARTS)
    shared = _by_part(members).mapInArrow(of_buckets.shared, _PARTS)
    each = _by_part(shared).mapInArrow(of_buckets.distinct, "bucket long, members long, document long")
    return each.join(signatures.select(document, "doc_id", "signature"), "document").drop("document")


def _by_part(rows: DataFrame) -> DataFrame:
    return rows.repartition("part").sortWithinPartitions("part")


def _paired(members: DataFrame, places: DataFrame, config: DedupConfig, idf: Broadcast[bytes]) -> DataFrame:
    """The edges inside small buckets."""
    pairs = _candidates(members, config).localCheckpoint()
    return verified(pairs, places, config.thresholds[0], idf)


def verified(pairs: DataFrame, places: DataFrame, threshold: float, idf: Broadcast[bytes]) -> DataFrame:
    """The rows (left, right, estimate) whose exact similarity reaches `threshold`, with it.

    `places` are those of bags. `pairs` are read several times, so they should be computed; runs a job, over
    their ends.
    """
    cells = _cells(pairs).localCheckpoint()
    ends = cells.select("cell", F.explode(F.array("left", "right")).alias("doc_id"))
    of_document = ends.groupBy("doc_id").agg(F.collect_set("cell").alias("cells"))
    bags = _with_bags(of_document, places).select(F.explode("cells").alias("cell"), "doc_id", "bag")
    rows = bags.withColumns({"other": F.lit(None).cast("string"), "estimate": F.lit(None).cast("double")})
    of_pairs = cells.withColumnsRenamed({"left": "doc_id", "right": "other"})
    verify = partial(udf.verified_pairs, idf=idf, threshold=threshold)
    return (
        rows.unionByName(of_pairs, allowMissingColumns=True)
        .repartition("cell")
        .sortWithinPartitions("cell")
        .mapInArrow(verify, _EDGES)
    )


def _candidates(members: DataFrame, config: DedupConfig) -> DataFrame:
    """(left, right, estimate) of the members that look alike, each pair once."""
    find = partial(
        udf.candidate_pairs,
        value_bits=config.value_bits,
        least_estimate=config.least_estimate(config.thresholds[0]),
    )
    return (
        members.repartition("bucket")
        .sortWithinPartitions("bucket")
        .select("bucket", "doc_id", "signature")
        .mapInArrow(find, "left string, right string, estimate double")
        .distinct()
    )


def _cells(pairs: DataFrame) -> DataFrame:
    """`pairs` with the cell in which each is compared."""
    ends = pairs.select("left", "right").union(pairs.select("right", "left")).toDF("doc_id", "other")
    hubs = ends.groupBy("doc_id").agg(
        F.least("doc_id", F.min("other")).alias("least"), F.count("*").alias("degree")
    )
    left = hubs.toDF("left", "left_least", "left_degree")
    right = hubs.toDF("right", "right_least", "right_degree")
    # A hub's pairs are told apart by their other end, the one of fewer pairs.
    lesser = F.when(F.col("left_degree") < F.col("right_degree"), F.col("left")).otherwise(F.col("right"))
    shards = F.ceil(F.greatest("left_degree", "right_degree") / _PAIRS_A_CELL)
    cell = F.xxhash64(F.least("left_least", "right_least"), F.pmod(F.xxhash64(lesser), shards))
    return (
        pairs.join(left, "left").join(right, "right").select(cell.alias("cell"), "left", "right", "estimate")
    )


def _crowded(
    members: DataFrame, places: DataFrame, documents: DataFrame, config: DedupConfig, idf: Broadcast[bytes]
) -> DataFrame:
    """The edges inside large buckets."""
    least = members.groupBy("doc_id").agg(F.min("bucket").alias("least"))
    in_bucket = Window.partitionBy("bucket")
    cells = members.join(least, "doc_id").select(
        F.min("least").over(in_bucket).alias("cell"), "doc_id", "signature"
    )
    ranked = documents.select("doc_id", rank(documents, config).alias("rank"))
    compare = partial(
        udf.crowd_edges,
        idf=idf,
        value_bits=config.value_bits,
        limits=[(config.least_estimate(threshold), threshold) for threshold in config.thresholds],
        neighbours=config.neighbours,
    )
    return (
        _with_bags(cells.distinct().join(ranked, "doc_id"), places)
        .repartition("cell")
        .sortWithinPartitions("cell", "rank")
        .select("cell", "doc_id", "signature", "bag")
        .mapInArrow(compare, _EDGES)
    )


def _with_bags(wanted: DataFrame, places: DataFrame) -> DataFrame:
    """The rows of `wanted`, one or more a document, with its packed `bag`."""
    schema = StructType([*wanted.schema.fields]).add("bag", BinaryType())  # `add` changes the list
    placed = wanted.join(places, "doc_id").select(*wanted.columns, "file", "row")
    return map_columns(placed, ["bag"], iter, schema)
