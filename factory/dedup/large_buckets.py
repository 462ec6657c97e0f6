"""The edges inside large buckets, where members meet leaders instead of each other.

Large buckets with common members are one cell, so that a member comes once, not once per band. A member is
compared with the leaders of its buckets (`native/src/dedup/pairs/leaders.rs`), at a bounded cost, so a cell
costs in proportion to its members, whether its documents are similar, nearly similar or strangers.

1. The best members of a cell, `LEADING` of them, elect leaders. A task of a larger cell gets these members
   and some of the others, repeats the election, and compares its others with the leaders.
2. Members without a similar leader are open. They form the cell of the next round, with more leading
   members. Elections in rounds find the leaders that one election of all members would find.

No edge depends on the number of tasks or on who computes what. Members that the bounds leave without a
comparison are counted (`Omissions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from factory.counted import counted
from factory.dedup.idf import SharedTable
from factory.lake_spark.documents import map_scattered
from spark_udfs.dedup import edges as udf

LEADING = (4_096, 16_384, 65_536)
"""Leading members of a cell, by round. With few similar members the last round takes 85,000 of a cell."""

MEMBERS_PER_PART = 2
"""Members that one task compares with the leaders of a cell, per leading member."""

BOUNDS = udf.MemberBounds(signatures=4_096, bags=256, neighbours=16, held_bytes=512 << 20)

_COLUMNS = (
    *("cell", "part", "leads", "shown", "open", "uncompared", "buckets"),
    *("doc_id", "signature", "n_distinct", "file", "row"),
)
_ROWS = "cell long, left string, right string, estimate double, similarity double, open long, uncompared long"


@dataclass(frozen=True)
class Threshold:
    """A threshold of similarity, the least estimate of its pairs, and whether a keep rule decides at it."""

    similarity: float
    least_estimate: float
    decides: bool


@dataclass(frozen=True)
class Omissions:
    """Members of large buckets that found no similar leader and were not compared with every other one.

    `pairs` counts, at most, the pairs that were left out.
    """

    members: int = 0
    pairs: int = 0

    def facts(self) -> dict[str, str | int]:
        """The counts as metadata."""
        return {"documents not compared": self.members, "pairs not compared": self.pairs}

    def sentence(self) -> str:
        """Name the omissions and their remedy; nothing if every comparison was made."""
        if not self.members:
            return ""
        return (
            f"{counted(self.members, 'document')} of large buckets found no similar document and were not "
            f"compared with all others, which leaves out at most {counted(self.pairs, 'pair')}: some of the "
            "documents kept may be similar. They belong to families just below the threshold. Lower it to "
            "remove their copies."
        )


def large_bucket_edges(
    members: DataFrame,
    signatures: DataFrame,
    ranks: DataFrame,
    idf: SharedTable,
    value_bits: int,
    thresholds: Sequence[Threshold],
) -> tuple[DataFrame, Omissions]:
    """The edges inside large buckets with `members` (bucket, document), and the omissions.

    `signatures` are (document, doc_id, signature, n_distinct, file, row), `ranks` (doc_id, rank). Runs jobs
    when called: each round is one, and most groups need one round.
    """
    compare = partial(
        udf.large_bucket_edges,
        idf=idf,
        value_bits=value_bits,
        limits=[
            (threshold.least_estimate, threshold.similarity, threshold.decides) for threshold in thresholds
        ],
        bounds=BOUNDS,
    )
    cells = _cells(members).localCheckpoint()
    in_cells = cells.join(signatures, "document").join(ranks, "doc_id").drop("document")
    every = F.lit((1 << len(thresholds)) - 1)
    waiting = in_cells.withColumns({"open": every.cast("long"), "uncompared": F.lit(0).cast("long")})
    size = _largest(cells)
    edges, omissions = [], []
    for leading in LEADING:
        parts = _in_parts(waiting, leading) if size > leading else _in_one_part(waiting)
        rows = map_scattered(parts, "bag", pa.large_binary(), compare, _ROWS).localCheckpoint()
        edges.append(rows.where("right IS NOT NULL").select("left", "right", "estimate", "similarity"))
        unled_members = rows.where("right IS NULL").selectExpr("cell", "left AS doc_id", "open", "uncompared")
        still_open = unled_members.where("open != 0")
        size = _largest(still_open) if size > leading else 0
        omissions.append(unled_members.where("open = 0"))
        if not size:
            break
        waiting = in_cells.join(still_open, ["cell", "doc_id"])
    else:
        omissions.append(still_open)
    return reduce(DataFrame.union, edges), _omissions(reduce(DataFrame.union, omissions))


def _cells(members: DataFrame) -> DataFrame:
    """(cell, document, buckets): buckets that share a member with the least bucket of one are a cell."""
    least = members.groupBy("document").agg(F.min("bucket").alias("least"))
    in_bucket = Window.partitionBy("bucket")
    cells = members.join(least, "document").withColumn("cell", F.min("least").over(in_bucket))
    buckets = F.array_sort(F.collect_set("bucket")).alias("buckets")
    return cells.groupBy("cell", "document").agg(buckets)


def _largest(cells: DataFrame) -> int:
    """The number of members of the largest cell."""
    largest = cells.groupBy("cell").count().agg(F.max("count").alias("members")).first()
    return (largest and largest.members) or 0


def _in_one_part(members: DataFrame) -> DataFrame:
    """Members of cells that one task takes: all may lead."""
    flags = {"part": F.lit(0).cast("long"), "leads": F.lit(True), "shown": F.lit(True)}
    best_first = members.withColumns(flags).repartition("cell").sortWithinPartitions("cell", "rank")
    return best_first.select(*_COLUMNS)


def _in_parts(members: DataFrame, leading: int) -> DataFrame:
    """Members of cells of any size: the first `leading` in each part, any other in one."""
    in_cell = Window.partitionBy("cell")
    place = F.row_number().over(in_cell.orderBy("rank")) - 1
    by_place = members.withColumns({"place": place, "members": F.count("*").over(in_cell)})
    n_others, size = F.col("members") - leading, leading * MEMBERS_PER_PART
    last = F.greatest(F.ceil(n_others / size), F.lit(1)) - 1
    own = F.floor((F.col("place") - leading) / size)
    leads = F.col("place") < leading
    parts = F.when(leads, F.sequence(F.lit(0).cast("long"), last)).otherwise(F.array(own))
    in_parts = by_place.select("*", leads.alias("leads"), F.explode(parts).alias("part"))
    is_shown = ~F.col("leads") | (F.col("part") == 0)
    tasks = int(members.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    # An explicit number keeps Spark from coalescing these small rows into one task.
    best_first = in_parts.withColumn("shown", is_shown).repartition(tasks, "cell", "part")
    return best_first.sortWithinPartitions("cell", "part", "place").select(*_COLUMNS)


def _omissions(members: DataFrame) -> Omissions:
    """Count members of no leader; the open ones of a cell were not compared with each other either."""
    open_ones = F.sum(F.when(F.col("open") != 0, 1).otherwise(0))
    cells = members.groupBy("cell").agg(F.sum("uncompared").alias("pairs"), open_ones.alias("open"))
    pairs = cells.agg(F.sum(F.col("pairs") + F.col("open") * (F.col("open") - 1) / 2).alias("pairs")).first()
    distinct = members.agg(F.countDistinct("doc_id").alias("members")).first()
    assert pairs is not None
    assert distinct is not None
    return Omissions(distinct.members, int(pairs.pairs or 0))
