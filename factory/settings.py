"""The one typed settings object, read from the environment (prefix `FACTORY_`).

The embedded default needs no setting at all: a SQLite catalog, a warehouse folder and Spark in the
process, everything written below `FACTORY_HOME`. Naming another catalog, warehouse or Spark master
here is all it takes to run on servers.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

CATALOG_NAME = "lake"  # the same in Spark and PyIceberg: it is part of the SQL catalog's primary key


class Settings(BaseSettings):
    """Where the lake lies and which engines work on it."""

    model_config = SettingsConfigDict(env_prefix="FACTORY_", frozen=True, extra="forbid")

    home: Path = Field(Path(".factory"), description="folder of the lake: tables, Dagster, scratch")
    cache: Path = Field(Path(".cache"), description="downloads that outlive a lake: Spark's jars")

    catalog: Literal["sqlite", "postgres", "rest"] = Field("sqlite", description="kind of Iceberg catalog")
    catalog_uri: str | None = Field(None, description="URI of a Postgres or REST catalog")
    warehouse: str | None = Field(None, description="folder or s3:// of the tables; default HOME/warehouse")

    s3_endpoint: str | None = Field(None, description="endpoint of an S3-compatible store")
    s3_region: str = Field("us-east-1", description="region of the S3 store")
    s3_access_key_id: str | None = Field(None, description="key id for the S3 store")
    s3_secret_access_key: str | None = Field(None, description="secret for the S3 store")

    spark_master: str = Field("local[*]", description="Spark master URL")
    spark_driver_memory: str = Field("4g", description="heap of the driver; Python workers live outside it")
    spark_shuffle_partitions: int = Field(4, ge=1, description="partitions of a shuffle")

    installation_share: float = Field(
        0.2, gt=0, le=1, description="share of the installed distributions the demo reads, by hash of name"
    )

    @field_validator("home", "cache")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @model_validator(mode="after")
    def _servers_are_named(self) -> Settings:
        if self.catalog != "sqlite" and not self.catalog_uri:
            raise ValueError(f"FACTORY_CATALOG is `{self.catalog}`: set FACTORY_CATALOG_URI to its address")
        if self.catalog != "sqlite" and not self.warehouse:
            raise ValueError(
                f"FACTORY_CATALOG is `{self.catalog}`: set FACTORY_WAREHOUSE to a folder all share"
            )
        return self

    @property
    def embedded(self) -> bool:
        """Whether the lake is the embedded one: one host, one writing run at a time."""
        return self.catalog == "sqlite"

    @property
    def catalog_database(self) -> Path:
        """The SQLite file of the embedded catalog."""
        return self.home / "catalog.db"

    @property
    def warehouse_uri(self) -> str:
        """The warehouse as a URI, without a trailing slash."""
        if self.warehouse is None:
            return (self.home / "warehouse").as_uri()
        if "://" in self.warehouse:
            return self.warehouse.rstrip("/")
        return Path(self.warehouse).expanduser().absolute().as_uri()

    @property
    def dagster_home(self) -> Path:
        """The folder of the Dagster instance."""
        return self.home / "dagster"


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process, read once from its environment."""
    return Settings()
