"""The one typed settings object, read from the environment (prefix `FACTORY_`).

The embedded default needs no setting: a SQLite catalog, a warehouse folder and Spark in the process,
everything below `FACTORY_HOME`. To run on servers, set another catalog, warehouse or Spark master.
"""

from __future__ import annotations

import difflib
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from factory.errors import ConfigurationError
from factory.home import HomeFiles

PREFIX = "FACTORY_"
CATALOG_NAME = "lake"  # the same in Spark and PyIceberg: it is part of the SQL catalog's primary key

_JVM_SIZE = re.compile(r"([1-9]\d*)([kmgt])", re.IGNORECASE)  # the JVM does not accept `gb`
_UNQUOTED = re.compile(r"[/?#@\[\]\s]|%(?![0-9a-fA-F]{2})")
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*)(:\d{1,5})?")
_AMBIGUOUS = re.compile(r"[?#\udc80-\udcff]|%[0-9a-fA-F]{2}")  # surrogates: bytes that are not UTF-8
_ADDRESS = re.compile(r"https?://(\[[0-9A-F:.%]+\]|[^\s:/?#\[\]]+)(:\d{1,5})?(/[^\s?#]*)?", re.IGNORECASE)
_SCHEME_OF_ONE_SLASH = re.compile(r"(?:s3[an]?|gs|file|hdfs|https?|abfss?):/", re.IGNORECASE)
_NEAR = 0.85  # similarity of names: one or two letters of a long name


class Settings(BaseSettings):
    """The location of the lake and the engines that work on it."""

    # Errors never quote values, and the repr hides those that may hold a password.
    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
    )

    home: Path = Field(Path(".factory"), description="folder of the lake: tables, Dagster, scratch")
    cache: Path = Field(
        Path(".cache"),
        description="kept between lakes: Spark's jars, its home and the archive of its classes",
    )

    datasets: Path | None = Field(None, description="file of datasets; unset: this Python installation's")

    catalog: Literal["sqlite", "postgres", "rest"] = Field("sqlite", description="kind of Iceberg catalog")
    catalog_uri: str | None = Field(None, repr=False, description="URI of a Postgres or REST catalog")
    warehouse: str | None = Field(None, description="folder or s3:// of the tables; default HOME/warehouse")

    s3_endpoint: str | None = Field(None, description="endpoint of an S3-compatible store")
    s3_region: str = Field("us-east-1", description="region of the S3 store")
    s3_access_key_id: str | None = Field(None, description="key id for the S3 store")
    s3_secret_access_key: str | None = Field(None, repr=False, description="secret for the S3 store")

    dagster_uri: str | None = Field(
        None, repr=False, description="postgresql:// URI of Dagster's records; default SQLite below HOME"
    )

    spark_master: str = Field("local[*]", description="Spark master URL")
    spark_driver_memory: str = Field("4g", description="heap of the driver; Python workers live outside it")
    spark_driver_host: str | None = Field(
        None, description="name under which executors reach the driver; default Spark's choice"
    )
    spark_executor_memory: str = Field("2g", description="heap of an executor on a cluster")
    spark_shuffle_partitions: int = Field(4, ge=1, description="partitions of a shuffle")

    java_compiler: Literal["auto", "quick", "optimizing"] = Field(
        "auto", description="compilers of the JVM: `quick` for small inputs; `auto` chooses by their size"
    )

    installation_share: float = Field(
        0.2, gt=0, le=1, description="share of the installed distributions the demo reads, by hash of name"
    )

    @field_validator("home", "cache", "datasets")
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser().absolute()

    @field_validator("home", "warehouse")
    @classmethod
    def _a_literal_path(cls, path: Path | str | None) -> Path | str | None:
        """SQLAlchemy and PyIceberg end a path at ? or #, and SQLAlchemy replaces %20 by a blank."""
        if _AMBIGUOUS.search(str(path)):
            raise ValueError("the path holds ?, #, % with two hex digits, or bytes that are not UTF-8")
        return path

    @field_validator("warehouse")
    @classmethod
    def _a_folder_or_s3(cls, warehouse: str | None) -> str | None:
        scheme, separator, _ = (warehouse or "").partition("://")
        if separator and scheme not in ("file", "s3"):
            raise ValueError(
                f"tables cannot lie at {scheme}://; name a folder or s3://BUCKET, which FACTORY_S3_ENDPOINT "
                "may place in another cloud that speaks the protocol of S3"
            )
        if not separator and (prefix := _SCHEME_OF_ONE_SLASH.match(warehouse or "")):
            raise ValueError(f"`{prefix[0]}` looks like a scheme; write two slashes behind it")
        return warehouse

    @field_validator("s3_endpoint")
    @classmethod
    def _an_address(cls, endpoint: str | None) -> str | None:
        """The client of the store panics at an address without a scheme."""
        if endpoint and not _ADDRESS.fullmatch(endpoint):
            raise ValueError(
                f"`{endpoint}` is not the address of a server; write it as http://127.0.0.1:8333"
            )
        return endpoint

    @field_validator("spark_driver_memory", "spark_executor_memory")
    @classmethod
    def _a_size(cls, size: str) -> str:
        if not _JVM_SIZE.fullmatch(size):
            raise ValueError(f"`{size}` is not a memory size; write a number with k, m, g or t, such as 4g")
        return size.lower()

    @field_validator("catalog_uri", "dagster_uri")
    @classmethod
    def _one_scheme(cls, uri: str | None) -> str | None:
        """SQLAlchemy 2 rejects the scheme `postgres://`, which libpq and many services use."""
        return re.sub(r"^postgres://", "postgresql://", uri) if uri else uri

    @field_validator("catalog_uri", "dagster_uri")
    @classmethod
    def _a_quoted_password(cls, uri: str | None) -> str | None:
        """Postgres splits an unquoted password in the wrong place and shows the pieces in its errors."""
        if uri and _UNQUOTED.search(uri.partition("://")[2].rpartition("@")[0]):
            raise ValueError(
                "the user or password before its last @ holds one of / ? # @ [ ] %; "
                "write these as %2F %3F %23 %40 %5B %5D %25"
            )
        return uri

    @field_validator("catalog_uri", "dagster_uri")
    @classmethod
    def _hosts_and_ports(cls, uri: str | None) -> str | None:
        hosts = re.split("[/?#]", (uri or "").partition("://")[2].rpartition("@")[2])[0]
        for host in hosts.split(","):
            if not _HOST_AND_PORT.fullmatch(host):
                raise ValueError(f"`{host}` is no host with a port; write them as db:5432 or [::1]:5432")
        return uri

    @model_validator(mode="after")
    def _servers_are_named(self) -> Settings:
        if self.catalog != "sqlite" and not self.catalog_uri:
            raise ValueError(f"FACTORY_CATALOG is `{self.catalog}`: set FACTORY_CATALOG_URI to its address")
        if self.catalog != "sqlite" and not self.warehouse:
            raise ValueError(
                f"FACTORY_CATALOG is `{self.catalog}`: set FACTORY_WAREHOUSE to a folder all share"
            )
        if self.catalog == "postgres" and not str(self.catalog_uri).startswith("postgresql://"):
            raise ValueError("FACTORY_CATALOG is `postgres`: begin FACTORY_CATALOG_URI with postgresql://")
        if self.dagster_uri and not self.dagster_uri.startswith("postgresql://"):
            raise ValueError("FACTORY_DAGSTER_URI must begin with postgresql://")
        return self

    @property
    def embedded(self) -> bool:
        """Whether the lake is the embedded one: one host, one writing run at a time."""
        return self.catalog == "sqlite"

    @property
    def files(self) -> HomeFiles:
        """The files and folders below `home`."""
        return HomeFiles(self.home)

    @property
    def warehouse_uri(self) -> str:
        """The location of the warehouse, without a trailing slash.

        A folder's path is not escaped: Spark and PyIceberg take locations literally.
        """
        if self.warehouse is not None and "://" in self.warehouse:
            return self.warehouse.rstrip("/")
        folder = self.files.warehouse if self.warehouse is None else Path(self.warehouse).expanduser()
        return f"file://{folder.absolute()}"

    @property
    def on_s3(self) -> bool:
        """Whether the tables lie in an S3-compatible store."""
        return self.warehouse_uri.startswith("s3://")

    def environment(self) -> dict[str, str]:
        """Return the environment variables that give another process these settings."""
        given = self.model_dump(mode="json", exclude_none=True)
        return {variable(field): str(value) for field, value in given.items()}


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the settings of this process, read once from its environment.

    Raises ConfigurationError for a wrong value, and for a variable with a name like a setting's.
    """
    for name, meant in unknown_variables():
        if meant:
            raise ConfigurationError(f"Unknown setting {name}. Did you mean {meant}? Rename it or unset it.")
    try:
        return Settings()
    except ValidationError as error:
        raise refusal(error) from error


def refusal(error: ValidationError) -> ConfigurationError:
    """Return an error that names the wrong settings without their values."""
    first = error.errors()[0]
    said = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:  # settings that exclude each other; the sentence names them
        return ConfigurationError(f"{said}.")
    name = variable("_".join(str(part) for part in first["loc"]))
    return ConfigurationError(f"Setting {name} is wrong: {said}. Correct it or unset it.")


def variable(field: str) -> str:
    """Return the environment variable of a field of `Settings`."""
    return PREFIX + field.upper()


def size_bytes(size: str) -> int:
    """Convert a memory size in the JVM's notation to bytes."""
    found = _JVM_SIZE.fullmatch(size)
    assert found is not None, size
    return int(found[1]) << 10 * ("kmgt".index(found[2].lower()) + 1)


def unknown_variables() -> list[tuple[str, str | None]]:
    """Return the variables with our prefix that are not settings, each with the nearest setting."""
    known = [variable(field) for field in Settings.model_fields]
    names = sorted(name for name in os.environ if name.upper().startswith(PREFIX))
    return [
        (name, next(iter(difflib.get_close_matches(name.upper(), known, 1, _NEAR)), None))
        for name in names
        if name.upper() not in known
    ]
