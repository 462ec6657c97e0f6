"""The pages of a packed table as Spark writes them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.lake.files.layout import FIRST_LOOK, PAGE_ROWS, odd_pages
from factory.lake.names import TableName, packed
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.packing import PACKED
from factory.lake.tables import Lake
from factory.lake_spark.audit import begin, head_of, replace_rows
from factory.settings import Settings

pytestmark = pytest.mark.spark

LEAVES = 10  # of PACKED, `segments` having three
N, TOKENS = 300, 4_096


def rows(spark: SparkSession) -> DataFrame:
    """Rows whose tokens make pages longer than other columns', in one file."""
    made = [
        {
            "ordinal": ordinal,
            "tokens": ordinal.to_bytes(2, "little") * TOKENS,
            "n_tokens": TOKENS,
            "segments": [
                {"doc_id": f"{ordinal}-{number}", "doc_offset": 0, "length": TOKENS // 4}
                for number in range(ordinal % 5)
            ],
            **dict.fromkeys(("append", "shard", "chunk"), 0),
            "partition": None,
        }
        for ordinal in range(N)
    ]
    return spark.createDataFrame(pa.Table.from_pylist(made, schema=PACKED.columns)).coalesce(1)


def sentences(spark: SparkSession, settings: Settings, table: TableName, schema: TableSchema) -> list[str]:
    """The odd pages of the rows written as a table of `schema`."""
    lake = Lake(settings)
    audit = begin(spark, lake, table, schema, "run")
    replace_rows(rows(spark), audit, schema, "run")
    return odd_pages(lake.table(table), head_of(lake, audit))


@pytest.mark.invariant(
    "In a packed table the pages of all columns end at the same rows, as its property "
    "`write.parquet.page-row-limit` says. A check warns about files with other pages; their rows are "
    "correct all the same."
)
@pytest.mark.parametrize(
    "properties",
    [{}, {PAGE_ROWS: "1", FIRST_LOOK: "1"}, {PAGE_ROWS: "150", FIRST_LOOK: "150"}],
    ids=["as packed", "a row", "more than a MiB"],
)
def test_every_column_has_pages_of_the_declared_rows(
    spark: SparkSession, lake_settings: Settings, unique: str, properties: dict[str, str]
) -> None:
    schema = replace(PACKED, properties=PACKED.properties | properties)
    assert sentences(spark, lake_settings, packed(unique), schema) == []


def test_without_an_early_check_a_row_group_begins_with_100_rows(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    schema = replace(PACKED, properties={PAGE_ROWS: PACKED.properties[PAGE_ROWS]})
    (sentence,) = sentences(spark, lake_settings, packed(unique), schema)
    assert "`tokens` has 1 of 26, the first is page 0 of row group 0 with 100 rows" in sentence
    assert f"and {LEAVES - 3} more columns" in sentence
