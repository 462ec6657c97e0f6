"""Every name below `FACTORY_HOME`, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class HomeFiles:
    """The files and folders that an embedded lake and its processes keep below `home`."""

    home: Path

    @property
    def catalog_database(self) -> Path:
        """The SQLite file of the embedded catalog."""
        return self.home / "catalog.db"

    @property
    def warehouse(self) -> Path:
        """The folder of all tables and blends."""
        return self.home / "warehouse"

    @property
    def dagster(self) -> Path:
        """The folder of the Dagster instance (`DAGSTER_HOME`)."""
        return self.home / "dagster"

    @property
    def dagster_config(self) -> Path:
        """The configuration of the Dagster instance."""
        return self.dagster / "dagster.yaml"

    @property
    def dagster_runs(self) -> Path:
        """The SQLite file of Dagster's run records."""
        return self.dagster / "history" / "runs.db"

    @property
    def dagster_workspace(self) -> Path:
        """The code location that `factory ui` serves."""
        return self.dagster / "workspace.yaml"

    @property
    def page_index(self) -> Path:
        """The folder of Blender's page indexes, rebuilt when missing."""
        return self.home / "page-index"

    @property
    def spark(self) -> Path:
        """The scratch folders of all processes that run Spark."""
        return self.home / "spark"

    @property
    def spark_log(self) -> Path:
        """Spark's log."""
        return self.spark / "spark.log"

    @property
    def writing_lock(self) -> Path:
        """The lock held by the run that writes an embedded lake."""
        return self.home / "writing.lock"

    @property
    def writer(self) -> Path:
        """The process, run and start time of the holder of `writing_lock`, as JSON."""
        return self.home / "writing.json"

    @property
    def summary(self) -> Path:
        """The figures of the last `factory demo`, as JSON."""
        return self.home / "summary.json"

    @property
    def blender_address(self) -> Path:
        """The address of the Blender that `factory demo` starts."""
        return self.home / "blender.address"

    @property
    def blender_log(self) -> Path:
        """The log of the Blender that `factory demo` starts."""
        return self.home / "blender.log"
