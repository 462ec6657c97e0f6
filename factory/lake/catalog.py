"""One catalog for both engines: the same settings rendered for PyIceberg and for Spark.

The embedded catalog is a SQLite file that Spark's JDBC catalog and PyIceberg's SQL catalog share. That
works only if configured for it: PyIceberg creates the catalog's two tables and Spark is told not to,
neither caches, both wait for a lock, and both use one catalog name.
"""

from __future__ import annotations

from urllib.parse import urlparse

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy.exc import DatabaseError

from factory.errors import MachineError
from factory.settings import CATALOG_NAME, Settings

_LOCK_WAIT_S = 60


def pyiceberg_properties(settings: Settings) -> dict[str, str]:
    """The properties PyIceberg opens the catalog with."""
    properties = {"warehouse": settings.warehouse_uri}
    if settings.catalog == "rest":
        properties |= {"type": "rest", "uri": str(settings.catalog_uri)}
    elif settings.catalog == "postgres":
        properties |= {"type": "sql", "uri": _sqlalchemy_uri(str(settings.catalog_uri))}
    else:
        properties |= {"type": "sql", "uri": f"sqlite:///{settings.catalog_database}?timeout={_LOCK_WAIT_S}"}
    optional = {
        "s3.endpoint": settings.s3_endpoint,
        "s3.region": settings.s3_region,
        "s3.access-key-id": settings.s3_access_key_id,
        "s3.secret-access-key": settings.s3_secret_access_key,
    }
    if settings.warehouse_uri.startswith("s3://"):
        properties |= {key: value for key, value in optional.items() if value}
    return properties


def spark_properties(settings: Settings) -> dict[str, str]:
    """The Spark configuration of the same catalog."""
    prefix = f"spark.sql.catalog.{CATALOG_NAME}"
    properties = {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.warehouse": settings.warehouse_uri,
        f"{prefix}.cache-enabled": "false",  # with the cache, Spark misses what PyIceberg commits
    }
    if settings.catalog == "rest":
        properties |= {f"{prefix}.type": "rest", f"{prefix}.uri": str(settings.catalog_uri)}
    else:
        properties |= {
            f"{prefix}.type": "jdbc",
            f"{prefix}.uri": _jdbc_uri(settings),
            f"{prefix}.jdbc.init-catalog-tables": "false",  # PyIceberg made them; Java would hold a lock
            f"{prefix}.jdbc.schema-version": "V0",
            f"{prefix}.clients": "1",
        }
        if settings.catalog == "postgres":
            address = urlparse(str(settings.catalog_uri))
            properties |= {
                f"{prefix}.jdbc.user": address.username or "",
                f"{prefix}.jdbc.password": address.password or "",
            }
    if settings.warehouse_uri.startswith("s3://"):
        properties[f"{prefix}.io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
        properties[f"{prefix}.s3.path-style-access"] = "true"
        properties[f"{prefix}.client.region"] = settings.s3_region
        optional = {
            "s3.endpoint": settings.s3_endpoint,
            "s3.access-key-id": settings.s3_access_key_id,
            "s3.secret-access-key": settings.s3_secret_access_key,
        }
        properties |= {f"{prefix}.{key}": value for key, value in optional.items() if value}
    return properties


def open_catalog(settings: Settings) -> Catalog:
    """Open the lake's catalog, creating the embedded one where it does not exist.

    Raises MachineError when the embedded lake's folder cannot be written.
    """
    if not settings.embedded:
        return load_catalog(CATALOG_NAME, **pyiceberg_properties(settings))
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(
            f"The lake's folder {settings.home} cannot be created ({error.strerror}). "
            "Set FACTORY_HOME to a folder you can write."
        ) from error
    try:
        return SqlCatalog(CATALOG_NAME, **pyiceberg_properties(settings))
    except DatabaseError as error:
        raise MachineError(
            f"The catalog {settings.catalog_database} cannot be read ({error.orig}). "
            "Restore the file from a copy, or set FACTORY_HOME to another folder."
        ) from error


def _jdbc_uri(settings: Settings) -> str:
    if settings.catalog == "sqlite":
        return f"jdbc:sqlite:{settings.catalog_database}?busy_timeout={_LOCK_WAIT_S * 1000}"
    address = urlparse(str(settings.catalog_uri))
    return f"jdbc:postgresql://{address.hostname}:{address.port or 5432}{address.path}"


def _sqlalchemy_uri(uri: str) -> str:
    return uri.replace("postgresql://", "postgresql+psycopg2://", 1)
