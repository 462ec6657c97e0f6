"""A live table that Spark compacts under a blend, and whose old files are then removed."""

from __future__ import annotations

import pytest
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.settings import Settings
from tests.blender.lakes import packed_rows, write_table


@pytest.mark.spark
def test_compaction_and_the_end_of_old_files_change_no_row(
    spark: SparkSession, lake_settings: Settings, catalog: Catalog, unique: str
) -> None:
    table = f"packed.{unique}"
    write_table(lake_settings, table, packed_rows("live", 10))
    blends = open_blends(lake_settings)
    blend = blends.open(blends.create([Source(table=table, weight=4, live=True)]).id)
    for first in (10, 20):
        catalog.load_table(table).append(packed_rows("live", first + 10).slice(first))
    before = [blend.step(step) for step in range(7)]
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    )
    catalog.load_table(table).append(packed_rows("live", 40).slice(30))
    assert blend.step(9).column("ordinal").to_pylist() == [36, 37, 38, 39]
    operations = [
        snapshot.summary.operation.value
        for snapshot in catalog.load_table(table).snapshots()
        if snapshot.summary
    ]
    assert "replace" in operations
    spark.sql(f"CALL lake.system.expire_snapshots(table => '{table}', older_than => now(), retain_last => 1)")
    for opened in (blend, open_blends(lake_settings).open(blend.id)):
        assert [opened.step(step) for step in range(7)] == before
