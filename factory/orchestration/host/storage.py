"""Dagster's storage in Postgres, under the same kind of URI as every other setting."""

from __future__ import annotations

from typing import Any

from dagster._serdes import ConfigurableClassData
from dagster_postgres import DagsterPostgresStorage
from dagster_postgres.utils import pg_url_from_config

from factory.lake.servers import sqlalchemy_uri


class LakeStorage(DagsterPostgresStorage):
    """Dagster's Postgres storage; SQLAlchemy takes plain `postgresql://` for a driver that Dagster lacks."""

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> LakeStorage:
        """Return the storage that `dagster.yaml` configures."""
        return cls(sqlalchemy_uri(pg_url_from_config(config_value)), inst_data=inst_data)
