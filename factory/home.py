"""Every name below `FACTORY_HOME`, in one place."""

from __future__ import annotations

from pathlib import Path


class HomeFiles:
    """The files and folders that an embedded lake and its processes keep below `home`."""

    def __init__(self, home: Path) -> None:
        self.lake_record = home / "lake.json"  # id of the lake and the place it was made at
        self.catalog_database = home / "catalog.db"  # SQLite file of the embedded catalog
        self.relocation = home / "relocation.json"  # files that `factory relocate` is still to remove
        self.warehouse = home / "warehouse"  # all tables and blends
        self.dagster = home / "dagster"  # the Dagster instance (`DAGSTER_HOME`)
        self.dagster_config = self.dagster / "dagster.yaml"
        self.dagster_runs = self.dagster / "history" / "runs.db"  # SQLite file of Dagster's run records
        self.page_index = home / "page-index"  # Blender's page indexes, rebuilt when missing
        self.spark = home / "spark"  # scratch folders of all processes that run Spark
        self.spark_log = self.spark / "spark.log"
        self.writing_lock = home / "writing.lock"  # held by the run that writes an embedded lake
        self.writer = home / "writing.json"  # process, run and start time of that run
        self.summary = home / "summary.json"  # figures of the last `factory demo`
        self.blender_address = home / "blender.address"  # address of the Blender that `factory demo` starts
        self.blender_log = home / "blender.log"  # its log
