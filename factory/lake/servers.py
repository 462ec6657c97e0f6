"""Probes of the servers of a lake: Postgres and an S3-compatible store.

Each probe returns a short description of the server, or raises one sentence that names the setting to correct
and no secret: ConfigurationError if the server refuses the request, MachineError if it does not answer.
"""

from __future__ import annotations

import re
import uuid
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from factory.errors import ConfigurationError, FactoryError, MachineError, first_line
from factory.lake.store import object_store
from factory.settings import Settings, variable

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

CONNECT_S = 10
CATALOG_URI, DAGSTER_URI = variable("catalog_uri"), variable("dagster_uri")

_REFUSED = re.compile(r"authentication failed|does not exist|no password supplied|no pg_hba\.conf entry")
_SYSTEM_SAID = re.compile(r'(?:message|error): "([^"]+)"')
_S3_CODE = re.compile(r"<Code>(\w+)</Code>")
_S3_CREDENTIALS = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AccessDenied",
    "InvalidToken",
    "ExpiredToken",
}
_DENIED = re.compile(r"status code: 40[13] ")
_S3_REGION = {"PermanentRedirect", "AuthorizationHeaderMalformed"}
_REDIRECTED = "incorrectly configured region"


class BucketMissing(ConfigurationError):
    """The store serves, but the bucket is missing."""


def connect(uri: str, setting: str, application: str) -> Connection:
    """Open a connection to the Postgres at `uri`, the value of `setting`.

    Keepalives let both sides notice within two minutes that the other machine is gone.
    """
    try:
        import psycopg2
    except ImportError as error:
        raise MachineError(
            f"{setting} names a Postgres, and its driver is not installed. "
            "Install it: pip install 'corpus-factory[postgres]'."
        ) from error
    try:
        return psycopg2.connect(
            uri,
            connect_timeout=CONNECT_S,
            application_name=application,
            keepalives_idle=60,
            keepalives_interval=15,
            keepalives_count=4,
        )
    except psycopg2.Error as error:
        raise refused(error, setting) from error


def sqlalchemy_uri(uri: str) -> str:
    """Return a Postgres URI with its driver and a connection timeout."""
    address = urlparse(uri)
    options = "&".join(part for part in (address.query, f"connect_timeout={CONNECT_S}") if part)
    return address._replace(scheme="postgresql+psycopg2", query=options).geturl()


def refused(error: Exception, setting: str) -> FactoryError:
    """Return the reason of a failed connection to Postgres."""
    said = first_line(error).removeprefix("(psycopg2.OperationalError) ")
    if _REFUSED.search(said):
        return ConfigurationError(f"Postgres refuses the connection ({said}). Correct {setting}.")
    return MachineError(f"Postgres does not answer ({said}). Start it, or correct {setting}.")


def require_servers(settings: Settings) -> None:
    """Raise one sentence if a server of the lake does not serve."""
    if settings.catalog == "postgres":
        connect(str(settings.catalog_uri), CATALOG_URI, "model-factory").close()
    if settings.on_s3:
        probe_store(settings)


def probe_postgres(uri: str, setting: str) -> str:
    """Return the version of the Postgres at `uri`; raise if the user cannot create tables."""
    with closing(connect(uri, setting, "model-factory doctor")) as connection, connection.cursor() as cursor:
        cursor.execute(
            "select current_setting('server_version'), current_user, current_database(), "
            "coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
        )
        version, user, database, may_create = cursor.fetchone() or ("", "", "", False)
    if not may_create:
        raise ConfigurationError(
            f"User {user} may not create tables in database {database}. "
            f"Grant it CREATE on the schema, or name another user in {setting}."
        )
    return f"Postgres {version.split()[0]}, database {database}"


def probe_store(settings: Settings) -> str:
    """Check that the bucket exists and can be listed."""
    bucket = urlparse(settings.warehouse_uri).netloc
    try:
        obstore.list_with_delimiter(object_store(settings))
    except BaseError as error:
        raise unusable(error, settings) from error
    return f"bucket {bucket} at {settings.s3_endpoint or 'AWS'}"


def create_bucket(settings: Settings) -> bool:
    """Create the bucket of the warehouse; return whether it was missing."""
    try:
        probe_store(settings)
        return False
    except BucketMissing:
        pass
    from pyarrow.fs import S3FileSystem  # obstore creates no buckets

    try:
        S3FileSystem(
            endpoint_override=settings.s3_endpoint,
            access_key=settings.s3_access_key_id,
            secret_key=settings.s3_secret_access_key,
            region=settings.s3_region,
            allow_bucket_creation=True,
        ).create_dir(urlparse(settings.warehouse_uri).netloc, recursive=False)
    except OSError as error:
        raise MachineError(
            f"The store at {settings.s3_endpoint or 'AWS'} does not create the bucket ({error}). "
            "Create it by its own tools, or give the keys the right to."
        ) from error
    probe_store(settings)
    return True


def probe_conditional_put(settings: Settings) -> str:
    """Check that a create-only put refuses an existing object; raise for a store that overwrites it."""
    store, name = object_store(settings), f".probe-{uuid.uuid4().hex}"
    try:
        obstore.put(store, name, b"first", mode="create")
        try:
            obstore.put(store, name, b"second", mode="create")
        except AlreadyExistsError:
            return "create-only puts hold"
        finally:
            obstore.delete(store, name)
    except (BaseError, FileNotFoundError) as error:  # the second where the bucket is missing
        raise unusable(error, settings) from error
    raise MachineError(
        f"The store at {settings.s3_endpoint or 'AWS'} overwrites what a create-only put must keep, "
        "so two Blenders could replace each other's blends. Take a store with conditional writes."
    )


def unusable(error: Exception, settings: Settings, address: str | None = None) -> FactoryError:
    """Return the error of an object store, or of the way to it, as one sentence.

    ConfigurationError if waiting cannot mend it. `address` is the s3:// address in use, unless it is the
    warehouse.
    """
    code, place = s3_code(error), settings.s3_endpoint or "AWS"
    bucket = urlparse(address or settings.warehouse_uri).netloc
    if code == "NoSuchBucket":
        remedy = (
            ", or correct the address"
            if address
            else " (factory bootstrap does), or correct FACTORY_WAREHOUSE"
        )
        return BucketMissing(f"The store at {place} has no bucket {bucket}. Create it{remedy}.")
    if code in _S3_CREDENTIALS or _DENIED.search(str(error)):
        return ConfigurationError(
            f"The store at {place} refuses the keys ({cause(error)}). "
            "Correct FACTORY_S3_ACCESS_KEY_ID and FACTORY_S3_SECRET_ACCESS_KEY."
        )
    if code in _S3_REGION or _REDIRECTED in str(error):
        return ConfigurationError(
            f"The store at {place} keeps bucket {bucket} in another region ({code or 'redirect'}). "
            "Correct FACTORY_S3_REGION."
        )
    return MachineError(
        f"The object store at {place} does not serve ({cause(error)}). "
        "Start it, or correct FACTORY_S3_ENDPOINT."
    )


def s3_code(error: Exception) -> str:
    """The code in the store's own description of an error, such as `NoSuchKey`; empty if there is none."""
    match = _S3_CODE.search(str(error))
    return match[1] if match else ""


def cause(error: Exception) -> str:
    """The cause of a store's error in a few words."""
    text = str(error)
    if "kind: Timeout" in text:
        return "no answer in time"
    system = _SYSTEM_SAID.findall(text)
    return s3_code(error) or (system[-1] if system else text.splitlines()[0].rpartition(" - ")[2])
