"""The resources of every asset: the lake, Spark, and the readers of raw material.

The lake has a lifetime: a run is in the lake from its first asset to its last, and begins by cleaning up
after killed runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import PrivateAttr

from factory.ingest.readers import Ingests
from factory.lake.names import TableName
from factory.lake.tables import Lake, Published
from factory.orchestration.host.reap import lake_session
from factory.settings import Settings
from factory.spark.session import build_session

REUSE_TAG = (
    "factory/reuse"  # on a run: keep tables whose code, configuration and upstream content are unchanged
)


@dataclass
class LakeRun:
    """The lake as one run sees it: every upstream table is resolved to a snapshot once."""

    lake: Lake
    run_id: str
    reuse: bool = False
    _pins: dict[TableName, Published] = field(default_factory=dict)

    def pin(self, table: TableName) -> Published:
        """Return the snapshot of `table` that this run reads."""
        if table not in self._pins:
            self._pins[table] = self.lake.published(table)
        return self._pins[table]


class LakeSpark(LazyPySparkResource):
    """The one SparkSession of the process, started on first use."""

    _settings: Settings = PrivateAttr()

    @classmethod
    def of(cls, settings: Settings) -> LakeSpark:
        """Return the session of the lake that `settings` describe."""
        made = cls(spark_config={})
        made._settings = settings
        return made

    def _init_session(self) -> None:
        if self._spark_session is None:
            self._spark_session = build_session(self._settings)


def resources(settings: Settings) -> Mapping[str, Any]:
    """Return the resources of the lake that `settings` describe, by the names that assets use."""
    from factory.orchestration.host.io_manager import tables

    @dg.resource(description="Spark on the lake.")
    def pyspark(_init: dg.InitResourceContext) -> LakeSpark:
        return LakeSpark.of(settings)

    @dg.resource(description="The lake, held by this run.")
    def lake(init: dg.InitResourceContext) -> Iterator[LakeRun]:
        opened = Lake(settings)
        run_id = init.run.run_id if init.run is not None else "no-run"
        with lake_session(opened, init.instance, run_id):
            reuse = init.run is not None and init.run.tags.get(REUSE_TAG) == "true"
            yield LakeRun(opened, run_id, reuse)

    @dg.resource(required_resource_keys={"pyspark"}, description="The readers of raw material.")
    def ingests(init: dg.InitResourceContext) -> Ingests:
        return Ingests(init.resources.pyspark.spark_session)

    return {"lake": lake, "pyspark": pyspark, "ingests": ingests, "tables": tables}
