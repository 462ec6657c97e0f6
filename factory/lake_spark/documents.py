"""Documents and their texts: what verdicts keep of them, and texts read where they lie.

Text never passes through the JVM where `map_texts` reads it. A stage takes documents that are `located`: they
carry the file and the row of their text instead of the text. It joins and groups these as it likes, and the
workers then read the column by file and row. What else is large is read in the same way (`map_columns`), or
where a stage has brought it into an order of its own (`map_scattered`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from factory.lake.files.fetch import STORAGE
from factory.settings import CATALOG_NAME
from spark_udfs.column_fetch import Function, Scattered, over_columns, over_scattered, over_texts

# Of a file, read by one task. A row group is decoded from its begin for each, so with 4,096 rows the workers
# of a deduplication took a fifth more CPU time.
_ROWS_TOGETHER = 32_768


def located(rows: DataFrame, *large: str) -> DataFrame:
    """Rows read from the lake with `file` and `row`, where they lie, in place of the `large` columns."""
    places = {"file": F.col("_file"), "row": F.col("_pos")}  # Iceberg's, which heed deleted rows
    return rows.withColumns(places).drop(*large)


def kept_documents(documents: DataFrame, verdicts: DataFrame) -> DataFrame:
    """The rows of `documents` whose verdict is `kept`; verdicts are small beside text."""
    kept = verdicts.where("kept").select("doc_id")
    return documents.join(kept, "doc_id", "left_semi")


def of_datasets(documents: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of several datasets under each other, with their dataset in column `dataset`."""
    frames = [frame.withColumn("dataset", F.lit(dataset)) for dataset, frame in documents.items()]
    return reduce(DataFrame.unionByName, frames)


def map_texts(located: DataFrame, function: Function, schema: StructType | str) -> DataFrame:
    """What `function` makes of the rows of `located`, with `text` in place of `file` and `row`.

    It sees the rows of a part of a file together, in their order there.
    """
    read = partial(over_texts, storage=_storage(located.sparkSession), function=function)
    return _together(located).mapInArrow(read, schema)


def map_columns(
    located: DataFrame, columns: Sequence[str], function: Function, schema: StructType | str
) -> DataFrame:
    """`map_texts` of other columns than `text`."""
    storage = _storage(located.sparkSession)
    read = partial(over_columns, storage=storage, columns=list(columns), function=function)
    return _together(located).mapInArrow(read, schema)


def map_scattered(
    located: DataFrame, column: str, kind: pa.DataType, function: Scattered, schema: StructType | str
) -> DataFrame:
    """What `function` makes of the rows of `located`, partitioned and sorted as they are.

    It is given them with `file` and `row`, and what reads `column`, of type `kind`, for those it chooses.
    Each is read with the page on which it lies, so its table has small pages.
    """
    storage = _storage(located.sparkSession)
    read = partial(over_scattered, storage=storage, column=column, kind=kind, function=function)
    return located.mapInArrow(read, schema)


def _together(located: DataFrame) -> DataFrame:
    tasks = int(located.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    # A number keeps Spark from making one task of all rows, which are small here.
    together = located.repartition(tasks, "file", F.floor(F.col("row") / _ROWS_TOGETHER))
    return together.sortWithinPartitions("file", "row")


def _storage(spark: SparkSession) -> dict[str, str]:
    """How the files of the lake are opened."""
    found = {name: spark.conf.get(f"spark.sql.catalog.{CATALOG_NAME}.{name}", None) for name in STORAGE}
    return {name: value for name, value in found.items() if value is not None}
