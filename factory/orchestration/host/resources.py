"""The resources of every asset: the lake, Spark, and the readers of raw material.

The lake has a lifetime: a run is in the lake from its first asset to its last, and begins by cleaning up
after killed runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import PrivateAttr

from factory.ingest.readers import Ingests
from factory.lake.names import TableName
from factory.lake.tables import Lake, Published
from factory.orchestration.host.partitions import READERS_TAG
from factory.orchestration.host.reap import LakeSession, lake_session
from factory.settings import Settings
from factory.spark.session import build_session
from spark_udfs.ingest.remote.files import resolve_branches_anew

REUSE_TAG = (
    "factory/reuse"  # on a run: keep tables whose code, configuration and upstream content are unchanged
)

PRIORITY_TAG = "dagster/priority"  # orders the steps of a run and the runs in the queue, highest first
NAMED_TAG = "factory/named"  # on a run: the tables that the selection spells out, between blanks

InputBytes = Callable[[Lake, Collection[dg.AssetKey] | None, dg.DagsterInstance], int | None]
"""The bytes that a run of the selected assets (None: all) reads from outside it; None if unknown."""


@dataclass
class LakeRun:
    """The lake as one run sees it: every upstream table is resolved to a snapshot once."""

    lake: Lake
    run_id: str
    reuse: bool = False
    named_tables: frozenset[TableName] = frozenset()
    """Tables whose names somebody wrote to select them."""
    readers: frozenset[TableName] = frozenset()
    """Tables that read a table of an earlier run of the same selection."""
    session: LakeSession | None = None
    """Its stay in the lake, which an asset that waits for others may interrupt."""
    _pins: dict[TableName, Published] = field(default_factory=dict)

    def pin(self, table: TableName) -> Published:
        """Return the snapshot of `table` that this run reads."""
        if table not in self._pins:
            self._pins[table] = self.lake.published(table)
        return self._pins[table]


class LakeSpark(LazyPySparkResource):
    """The one SparkSession of the process, started on first use."""

    _settings: Settings = PrivateAttr()
    _input_bytes: Callable[[], int | None] = PrivateAttr()

    @classmethod
    def of(cls, settings: Settings, input_bytes: Callable[[], int | None]) -> LakeSpark:
        """Return the session of the lake that `settings` describe, for a run that reads `input_bytes`."""
        made = cls(spark_config={})
        made._settings, made._input_bytes = settings, input_bytes
        return made

    def _init_session(self) -> None:
        if self._spark_session is None:
            self._spark_session = build_session(self._settings, input_bytes=self._input_bytes())


def _tables(init: dg.InitResourceContext, tag: str) -> frozenset[TableName]:
    """The tables in a tag of the run."""
    names = init.run.tags.get(tag, "").split() if init.run is not None else []
    return frozenset(map(TableName.parse, names))


def _priority(tags: Mapping[str, str]) -> int:
    """The priority of a run; 0 for a tag that is no number, as in Dagster's queue."""
    try:
        return int(tags.get(PRIORITY_TAG, "0"))
    except ValueError:
        return 0


def resources(settings: Settings, input_bytes: InputBytes | None = None) -> Mapping[str, Any]:
    """Return the resources of the lake that `settings` describe, by the names that assets use.

    `input_bytes` measures the input of a run, which then chooses its JVM; without it the size is unknown.
    """
    from factory.orchestration.host.io_manager import tables

    @dg.resource(description="Spark on the lake.")
    def pyspark(init: dg.InitResourceContext) -> LakeSpark:
        def size() -> int | None:
            if input_bytes is None or init.run is None or init.instance is None:
                return None
            return input_bytes(Lake(settings), init.run.asset_selection, init.instance)

        return LakeSpark.of(settings, size)

    @dg.resource(description="The lake, held by this run.")
    def lake(init: dg.InitResourceContext) -> Iterator[LakeRun]:
        opened = Lake(settings)
        resolve_branches_anew()
        run_id = init.run.run_id if init.run is not None else "no-run"
        tags = init.run.tags if init.run is not None else {}
        with lake_session(opened, init.instance, run_id, _priority(tags)) as session:
            reuse = tags.get(REUSE_TAG) == "true"
            yield LakeRun(
                opened, run_id, reuse, _tables(init, NAMED_TAG), _tables(init, READERS_TAG), session
            )

    @dg.resource(required_resource_keys={"pyspark"}, description="The readers of raw material.")
    def ingests(init: dg.InitResourceContext) -> Ingests:
        return Ingests(init.resources.pyspark.spark_session)

    return {"lake": lake, "pyspark": pyspark, "ingests": ingests, "tables": tables}
