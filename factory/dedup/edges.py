"""The similarity graph: pairs that share a bucket, look alike by their signatures, and are alike exactly.

1. Members of a bucket are paired, all of them in a small bucket, with leaders and their first followers in
   a large one (`native/src/candidates.rs`). Both ends of every pair stand in the order of priority that
   decides who stays, so a member of a giant bucket is joined to those of its kind that will be kept.
2. The estimate of the two signatures throws away what lies far below the threshold.
3. What is left is compared exactly, from the texts. They are read again for these documents alone: making
   a bag takes a tenth of a millisecond, no more than reading a stored one would. Pairs meet in *cells*
   named after the least neighbour of their ends, so the documents of a clique or star meet once instead of
   once a pair; the pairs of a hub are spread over cells of bounded size.

Every edge carries the exact similarity, and it reaches the threshold. So the keep rule, which looks at
edges alone, never removes a document for an estimate; a pair that banding misses has no edge.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from factory.dedup.config import MAX_DISTINCT, DedupConfig
from factory.dedup.priority import rank
from factory.dedup.vocabulary import idf_table
from spark_udfs import edges as udf

_PAIRS_A_CELL = 4096
_BROADCAST_PAIRS = 200_000  # pairs up to which their ids are sent to the texts instead of the reverse


def edges(
    buckets: DataFrame,
    signatures: DataFrame,
    documents: DataFrame,
    vocabulary: DataFrame,
    config: DedupConfig,
) -> DataFrame:
    """Every verified pair of similar documents, once, left id below right: EDGES.

    Runs two jobs when called: the idf table is broadcast, and the candidates, which are used three times,
    are computed once and their number decides how texts are joined.
    """
    idf = documents.sparkSession.sparkContext.broadcast(idf_table(vocabulary))
    pairs = _candidates(_members(buckets, signatures, documents, config), config).localCheckpoint()
    cells = _cells(pairs)
    verify = partial(
        udf.verified_pairs,
        idf=idf,
        kind=config.kind,
        max_distinct=MAX_DISTINCT,
        threshold=config.threshold,
    )
    few = pairs.count() <= _BROADCAST_PAIRS
    return (
        _texts(cells, documents, few)
        .unionByName(_pairs(cells))
        .repartition("cell")
        .sortWithinPartitions("cell")
        .mapInArrow(verify, "left string, right string, estimate double, similarity double")
        .withColumn("partition", F.lit(None).cast("string"))
    )


def _members(
    buckets: DataFrame, signatures: DataFrame, documents: DataFrame, config: DedupConfig
) -> DataFrame:
    """(bucket, doc_id, signature, rank) of the members of buckets that have more than one."""
    crowded = (
        buckets.select("bucket", "doc_id", F.count("*").over(Window.partitionBy("bucket")).alias("members"))
        .where("members > 1")
        .drop("members")
    )
    ranks = documents.select("doc_id", rank(documents, config).alias("rank"))
    return crowded.join(signatures.select("doc_id", "signature"), "doc_id").join(ranks, "doc_id")


def _candidates(members: DataFrame, config: DedupConfig) -> DataFrame:
    """(left, right, estimate) of the members that look alike, each pair once."""
    find = partial(
        udf.candidate_pairs,
        least_estimate=config.least_estimate,
        pair_bucket=config.pair_bucket,
        neighbours=config.neighbours,
    )
    return (
        members.repartition("bucket")
        .sortWithinPartitions("bucket", "rank")
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
    left, right = (
        hubs.select(
            F.col("doc_id").alias(end),
            F.col("least").alias(f"{end}_least"),
            F.col("degree").alias(f"{end}_degree"),
        )
        for end in ("left", "right")
    )
    # A hub's pairs are told apart by their other end, the one of fewer pairs.
    lesser = F.when(F.col("left_degree") < F.col("right_degree"), F.col("left")).otherwise(F.col("right"))
    shards = F.ceil(F.greatest("left_degree", "right_degree") / _PAIRS_A_CELL)
    cell = F.xxhash64(F.least("left_least", "right_least"), F.pmod(F.xxhash64(lesser), shards))
    return (
        pairs.join(left, "left").join(right, "right").select(cell.alias("cell"), "left", "right", "estimate")
    )


def _texts(cells: DataFrame, documents: DataFrame, few: bool) -> DataFrame:
    """A row (cell, doc_id, text) for each document of each cell."""
    wanted = cells.select("cell", F.explode(F.array("left", "right")).alias("doc_id")).distinct()
    texts = documents.select("doc_id", "text").join(F.broadcast(wanted) if few else wanted, "doc_id")
    return texts.select(
        "cell",
        "doc_id",
        F.lit(None).cast("string").alias("other"),
        F.lit(None).cast("double").alias("estimate"),
        "text",
    )


def _pairs(cells: DataFrame) -> DataFrame:
    """A row (cell, doc_id, other, estimate) for each pair of each cell."""
    return cells.select(
        "cell",
        F.col("left").alias("doc_id"),
        F.col("right").alias("other"),
        "estimate",
        F.lit(None).cast("string").alias("text"),
    )
