"""The IO manager that loads upstream tables as lazy DataFrames, pinned to the run's snapshots."""

from __future__ import annotations

import dagster as dg
from pyspark.sql import DataFrame

from factory.lake_spark.read import read_at
from factory.orchestration.keys import table_of


class TableInputs(dg.IOManager):
    """Loads upstream arguments; `table_asset` writes and publishes tables itself."""

    def load_input(self, context: dg.InputContext) -> DataFrame:
        """Return the rows of the upstream table at the run's snapshot."""
        table = table_of(context.asset_key)
        published = context.resources.lake.pin(table)
        return read_at(context.resources.pyspark.spark_session, table, published.snapshot_id)

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Never called: `table_asset` yields results without a value."""
        raise AssertionError(f"{context.asset_key} returned {type(obj)} to Dagster")


@dg.io_manager(
    required_resource_keys={"lake", "pyspark"}, description="Tables of the lake at pinned snapshots."
)
def tables(_init: dg.InitResourceContext) -> TableInputs:
    """Return the IO manager of every table asset."""
    return TableInputs()
