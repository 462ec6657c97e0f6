"""Documents without their texts, and texts read in Spark's Python workers.

Texts that `map_texts` reads never pass through the JVM. `located` documents carry the file and row of their
text instead of the text; a stage joins and groups them freely, and the workers read the column by file and
row. Other large columns are read the same way (`map_columns`), or in an order of the stage's own
(`map_scattered`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from factory.lake_spark.storage import storage_of
from spark_udfs.column_fetch import Function, Scattered, over_columns, over_scattered, over_texts

# Rows of a file per task. Each task decodes its row group from the start: with 4,096 rows the workers of a
# deduplication took a fifth more CPU time.
_ROWS_TOGETHER = 32_768


def located(rows: DataFrame, *large: str) -> DataFrame:
    """Return rows of the lake with `file` and `row` in place of the `large` columns."""
    places = {"file": F.col("_file"), "row": F.col("_pos")}  # Iceberg's columns, which heed deleted rows
    return rows.withColumns(places).drop(*large)


def kept_documents(documents: DataFrame, verdicts: DataFrame) -> DataFrame:
    """Return the rows of `documents` whose verdict is `kept`; verdicts are small compared with texts."""
    kept = verdicts.where("kept").select("doc_id")
    return documents.join(kept, "doc_id", "left_semi")


def of_datasets(documents: Mapping[str, DataFrame]) -> DataFrame:
    """Union the rows of several datasets, with the dataset's name in column `dataset`."""
    frames = [frame.withColumn("dataset", F.lit(dataset)) for dataset, frame in documents.items()]
    return reduce(DataFrame.unionByName, frames)


def map_texts(located: DataFrame, function: Function, schema: StructType | str) -> DataFrame:
    """Map the rows of `located` through `function`, with `text` in place of `file` and `row`.

    `function` receives the rows of one part of a file together, in file order.
    """
    read = partial(over_texts, storage=storage_of(located.sparkSession), function=function)
    return _together(located).mapInArrow(read, schema)


def map_columns(
    located: DataFrame, columns: Sequence[str], function: Function, schema: StructType | str
) -> DataFrame:
    """`map_texts` for other columns than `text`."""
    storage = storage_of(located.sparkSession)
    read = partial(over_columns, storage=storage, columns=list(columns), function=function)
    return _together(located).mapInArrow(read, schema)


def map_scattered(
    located: DataFrame, column: str, kind: pa.DataType | None, function: Scattered, schema: StructType | str
) -> DataFrame:
    """Map the rows of `located` through `function`, keeping their partitions and order.

    `function` receives them with `file` and `row`, and a reader of `column` (of type `kind`) for the rows it
    chooses; both as `ScatteredRows` has them. Each read costs one page, so the table has small pages.
    """
    storage = storage_of(located.sparkSession)
    read = partial(over_scattered, storage=storage, column=column, kind=kind, function=function)
    return located.mapInArrow(read, schema)


def _together(located: DataFrame) -> DataFrame:
    tasks = int(located.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    # An explicit number keeps Spark from coalescing these small rows into one task.
    together = located.repartition(tasks, "file", F.floor(F.col("row") / _ROWS_TOGETHER))
    return together.sortWithinPartitions("file", "row")
