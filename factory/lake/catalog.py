"""One catalog for both engines: the same settings rendered for PyIceberg and for Spark.

Spark's JDBC catalog and PyIceberg's SQL catalog share one database, a SQLite file or Postgres. That works
only if PyIceberg alone creates the catalog's two tables, neither engine caches, both wait for locks, and both
use one catalog name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from factory.errors import DamagedFile, MachineError, first_line
from factory.lake.lock import making
from factory.lake.lost_catalog import MARK_OR_NAME, mark_take_over, require_known_tables
from factory.lake.place import record_place, require_place
from factory.lake.servers import CATALOG_URI, refused, sqlalchemy_uri
from factory.lake.sqlite import withheld
from factory.settings import CATALOG_NAME, Settings

if TYPE_CHECKING:  # as in `factory.lake.tables`
    from pyiceberg.catalog import Catalog
    from pyiceberg.catalog.sql import SqlCatalog

CHECKED_IO = "factory.lake.files.checked_io.CheckedFileIO"
_LOCK_WAIT_S = 60
_SYSTEM_SAID = re.compile(r"\[Errno -?\d+\] ([^'\")]+)")
_TABLES_MADE_MEANWHILE = {"42P07", "42710", "23505"}  # Postgres: table, type or their entries exist


def pyiceberg_properties(settings: Settings) -> dict[str, str]:
    """Return the properties with which PyIceberg opens the catalog."""
    properties = {"warehouse": settings.warehouse_uri}
    if settings.catalog == "rest":
        properties |= {"type": "rest", "uri": str(settings.catalog_uri)}
    elif settings.catalog == "postgres":
        properties |= {
            "type": "sql",
            "uri": sqlalchemy_uri(str(settings.catalog_uri)),
            "pool_pre_ping": "true",  # a Blender outlives its connections
        }
    else:
        properties |= {
            "type": "sql",
            "uri": f"sqlite:///{settings.files.catalog_database}?timeout={_LOCK_WAIT_S}",
        }
    optional = {
        "s3.endpoint": settings.s3_endpoint,
        "s3.region": settings.s3_region,
        "s3.access-key-id": settings.s3_access_key_id,
        "s3.secret-access-key": settings.s3_secret_access_key,
    }
    if settings.on_s3:
        properties["py-io-impl"] = "pyiceberg.io.pyarrow.PyArrowFileIO"
        properties |= {key: value for key, value in optional.items() if value}
    else:
        properties["py-io-impl"] = CHECKED_IO
    return properties


def spark_properties(settings: Settings) -> dict[str, str]:
    """Return the Spark configuration of the same catalog, without `spark_secrets`."""
    prefix = f"spark.sql.catalog.{CATALOG_NAME}"
    properties = {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.warehouse": settings.warehouse_uri,
        f"{prefix}.cache-enabled": "false",  # with the cache, Spark misses commits of PyIceberg
    }
    if settings.catalog == "rest":
        properties |= {f"{prefix}.type": "rest", f"{prefix}.uri": str(settings.catalog_uri)}
    else:
        properties |= {
            f"{prefix}.type": "jdbc",
            f"{prefix}.uri": _jdbc_uri(settings),
            f"{prefix}.jdbc.init-catalog-tables": "false",  # PyIceberg created them; Java would hold a lock
            f"{prefix}.jdbc.schema-version": "V0",
            f"{prefix}.clients": "1",
        }
    if settings.on_s3:
        properties[f"{prefix}.io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
        properties[f"{prefix}.s3.path-style-access"] = "true"
        properties[f"{prefix}.client.region"] = settings.s3_region
        if settings.s3_endpoint:
            properties[f"{prefix}.s3.endpoint"] = settings.s3_endpoint
    return properties


def spark_secrets(settings: Settings) -> dict[str, str]:
    """Return the part of Spark's configuration that is set after Spark has started.

    Its command line, which every user of the machine can read, must hold no secret.
    """
    secrets: dict[str, str | None] = {}
    if settings.catalog == "postgres":
        address = urlparse(str(settings.catalog_uri))
        secrets["jdbc.user"] = unquote(address.username or "")
        secrets["jdbc.password"] = unquote(address.password or "")
    if settings.on_s3:
        secrets["s3.access-key-id"] = settings.s3_access_key_id
        secrets["s3.secret-access-key"] = settings.s3_secret_access_key
    return {f"spark.sql.catalog.{CATALOG_NAME}.{key}": value for key, value in secrets.items() if value}


def open_catalog(settings: Settings) -> Catalog:
    """Open the lake's catalog; create the tables of a SQL catalog if they are missing.

    Raises LakeMoved for a copied or moved lake, MachineError if the embedded lake's folder cannot be written
    or a server does not answer, ConfigurationError if a server refuses the user, DamagedFile for a damaged
    SQLite file and for a lake that has lost its catalog.
    """
    from factory.lake.files.checked_io import check_pages

    require_place(settings)
    check_pages()
    if settings.catalog == "postgres":
        return _open_postgres(settings)
    if settings.catalog == "rest":
        return _open_rest(settings)
    from pyiceberg.catalog.sql import SqlCatalog

    with asking_catalog(settings):
        _make_database(settings)
        catalog = SqlCatalog(CATALOG_NAME, **pyiceberg_properties(settings))
        _require_whole(catalog, settings)
        require_known_tables(settings, partial(_is_in_use, catalog))
        return catalog


def _is_in_use(catalog: SqlCatalog) -> bool:
    with catalog.engine.connect() as connection:
        return connection.exec_driver_sql(MARK_OR_NAME).first() is not None


def _require_whole(catalog: SqlCatalog, settings: Settings) -> None:
    """Raise DamagedFile if the tables of an SQLite catalog disagree with their indexes."""
    with catalog.engine.connect() as connection:
        found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
    if found != "ok":
        raise damaged_catalog(settings, str(found))


def make_namespace(catalog: Catalog, namespace: str) -> None:
    """Create a namespace if the catalog lacks it."""
    from sqlalchemy.exc import IntegrityError

    try:
        catalog.create_namespace_if_not_exists(namespace)
    except IntegrityError:  # a SQL catalog checks, then inserts; another process was faster
        if not catalog.namespace_exists(namespace):
            raise


@contextmanager
def asking_catalog(settings: Settings) -> Iterator[None]:
    """Turn SQLite's errors into DamagedFile or MachineError; errors of a server pass through."""
    from sqlalchemy.exc import DatabaseError

    try:
        yield
    except DatabaseError as error:
        if settings.catalog != "sqlite":
            raise
        said = damaged_catalog(settings, str(error.orig))
        raise withheld(settings.files.catalog_database, error.orig) or said from error


def damaged_catalog(settings: Settings, said: str) -> DamagedFile:
    """Return the error for an embedded catalog; `said` is SQLite's message."""
    return DamagedFile(
        f"The catalog {settings.files.catalog_database} cannot be read ({' '.join(said.split())}). "
        "Restore the file from a copy, or set FACTORY_HOME to another folder."
    )


def _make_database(settings: Settings) -> None:
    """Create the embedded catalog's SQLite file with its tables, if missing.

    The lock keeps two processes from seeing each other's half-made tables.
    """
    from pyiceberg.catalog.sql import SqlCatalog

    database = settings.files.catalog_database
    if database.exists():
        return
    with making(settings.home) as folder:
        if database.exists():  # another process created it while this one waited
            return
        record_place(settings)  # first, so that every catalog has a place
        folder.mkdir()
        new = folder / database.name
        SqlCatalog(CATALOG_NAME, **pyiceberg_properties(settings) | {"uri": f"sqlite:///{new}"}).close()
        mark_take_over(settings, new)
        new.replace(database)


def _open_postgres(settings: Settings) -> Catalog:
    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

    properties = pyiceberg_properties(settings)
    try:
        return SqlCatalog(CATALOG_NAME, **properties)
    except OperationalError as error:
        raise refused(error, CATALOG_URI) from error
    except (IntegrityError, ProgrammingError) as error:
        if getattr(error.orig, "pgcode", None) not in _TABLES_MADE_MEANWHILE:
            raise MachineError(
                f"Postgres cannot hold the catalog ({first_line(error.orig)}). "
                "Correct FACTORY_CATALOG_URI, or grant its user the missing rights."
            ) from error
    return SqlCatalog(CATALOG_NAME, **properties)  # another process has just created the tables


def _open_rest(settings: Settings) -> Catalog:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import RESTError
    from requests.exceptions import RequestException

    try:
        return load_catalog(CATALOG_NAME, **pyiceberg_properties(settings))
    except (RequestException, RESTError, OSError) as error:
        raise MachineError(
            f"The catalog {shown_address(settings)} does not answer ({_refusal(error)}). "
            "Start it, or correct FACTORY_CATALOG_URI."
        ) from error


def shown_address(settings: Settings) -> str:
    """Return the URI of a server catalog without user and password."""
    uri = urlparse(str(settings.catalog_uri))
    return uri._replace(netloc=uri.netloc.rpartition("@")[2]).geturl()


def _refusal(error: BaseException) -> str:
    """Return the operating system's reason for a failed connection, else the error's first line."""
    system = _SYSTEM_SAID.findall(str(error))
    return system[-1].lower() if system else first_line(error)


def _jdbc_uri(settings: Settings) -> str:
    if settings.catalog == "sqlite":
        return f"jdbc:sqlite:{settings.files.catalog_database}?busy_timeout={_LOCK_WAIT_S * 1000}"
    address = urlparse(str(settings.catalog_uri))
    host = address.netloc.rpartition("@")[2]
    options = f"?{address.query}" if address.query else ""
    return f"jdbc:postgresql://{host}{address.path}{options}"
