"""How many rows Spark sends to Python at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from factory.spark.session import NARROW_ROWS_PER_ARROW_BATCH, ROWS_PER_ARROW_BATCH, batches_of


def largest_batch(spark: SparkSession) -> int:
    def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": pa.array([batch.num_rows], pa.int64())})

    found = spark.range(0, 10_000, numPartitions=1).mapInArrow(sizes, "rows long").collect()
    return max(row.rows for row in found)


@pytest.mark.spark
def test_narrow_rows_come_in_larger_batches_and_no_others(spark: SparkSession) -> None:
    assert largest_batch(spark) == ROWS_PER_ARROW_BATCH
    with batches_of(spark, NARROW_ROWS_PER_ARROW_BATCH):
        assert largest_batch(spark) == NARROW_ROWS_PER_ARROW_BATCH
        with batches_of(spark, 7):
            assert largest_batch(spark) == 7
        assert largest_batch(spark) == NARROW_ROWS_PER_ARROW_BATCH
    with pytest.raises(ZeroDivisionError), batches_of(spark, NARROW_ROWS_PER_ARROW_BATCH):
        1 / 0  # noqa: B018
    assert largest_batch(spark) == ROWS_PER_ARROW_BATCH
