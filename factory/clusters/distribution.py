"""Documents by category before a dataset is balanced, after all rounds, and after deduplication.

`factory.clusters.evenness` says how even each of these is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.clusters.categories import JOINT, combination, values_of
from factory.lake.schemas.clusters import DISTRIBUTION


def distribution(
    documents: DataFrame,
    over: Sequence[str],
    tables: Mapping[str, DataFrame],
    kept_ids: DataFrame,
    deduplicated_ids: DataFrame,
) -> DataFrame:
    """A row of DISTRIBUTION for each category of each field of `over`, and of their combination.

    `categories` takes the same `documents` (RAW), `over` and `tables`. `kept_ids` are the `doc_id` that every
    round kept, `deduplicated_ids` the `doc_id` after deduplication, each once.
    """
    values, columns = values_of(documents, over, tables)
    by_field = dict(zip(over, columns, strict=True))
    if len(over) > 1:
        by_field[JOINT.join(over)] = combination(columns)
    rows = _with_mark(_with_mark(values, kept_ids, "is_kept"), deduplicated_ids, "is_deduplicated")
    pairs = [
        F.struct(F.lit(name).alias("over"), column.alias("category")) for name, column in by_field.items()
    ]
    of_fields = rows.select(F.explode(F.array(*pairs)).alias("of"), "is_kept", "is_deduplicated")
    counts = of_fields.groupBy("of.over", "of.category").agg(
        F.count("*").alias("n_before"),
        F.count("is_kept").alias("n_after"),
        F.count("is_deduplicated").alias("n_deduplicated"),
    )
    partition = F.lit(None).cast("string").alias("partition")
    return counts.select(*DISTRIBUTION.names[:-1], partition)


def _with_mark(rows: DataFrame, ids: DataFrame, mark: str) -> DataFrame:
    """Return the rows with the column `mark`, which is null unless the row's `doc_id` is in `ids`."""
    return rows.join(ids.select("doc_id", F.lit(True).alias(mark)), "doc_id", "left")
