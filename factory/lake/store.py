"""The warehouse as an object store: a folder or an S3 bucket.

Iceberg's file systems read and write the tables; other objects, such as blends, go through this store.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from obstore.store import AzureStore, GCSStore, LocalStore, ObjectStore, S3Store

from factory.lake.files.location import local_path
from factory.settings import Settings

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config  # exist for type checkers only

_RETRY_S = 20  # enough for a restart of the store; the default gives up only after three minutes


def object_store(settings: Settings, prefix: str = "") -> ObjectStore:
    """Return the warehouse of the lake, or a folder of it."""
    folder = local_path(settings.warehouse_uri)
    if folder is not None:
        return LocalStore(prefix=f"{folder}/{prefix}".rstrip("/"), mkdir=True)
    address = urlparse(settings.warehouse_uri)
    inside = "/".join(part for part in (address.path.strip("/"), prefix) if part)
    return bucket_store(settings, address.netloc, inside)


def bucket_store(settings: Settings, bucket: str, prefix: str = "") -> ObjectStore:
    """Return an S3 bucket, or a folder of it, with the endpoint and credentials of the lake."""
    return S3Store(
        bucket,
        prefix=prefix or None,
        client_options={"allow_http": _is_plain(settings)},
        retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=_RETRY_S)},
        config=_s3(settings),
    )


def single_try_store(settings: Settings, bucket: str, prefix: str, *, answer_s: float) -> ObjectStore:
    """Return the same for a caller that repeats requests itself: each is sent once.

    A request fails if no byte comes back within `answer_s`, the sending included.
    """
    return S3Store(
        bucket,
        prefix=prefix or None,
        client_options=_single_try(answer_s, allow_http=_is_plain(settings)),
        retry_config={"max_retries": 0},
        config=_s3(settings),
    )


def google_store(bucket: str, prefix: str, *, answer_s: float) -> ObjectStore:
    """Return a bucket of Google Cloud Storage in the same way; who asks is said by the environment."""
    return GCSStore(
        bucket,
        prefix=prefix or None,
        client_options=_single_try(answer_s, allow_http=True),  # of an endpoint in the environment
        retry_config={"max_retries": 0},
    )


def azure_store(container: str, prefix: str, *, answer_s: float) -> ObjectStore:
    """Return a container of Azure Blob Storage in the same way; the environment says who asks, and where."""
    return AzureStore(
        container,
        prefix=prefix or None,
        client_options=_single_try(answer_s, allow_http=True),
        retry_config={"max_retries": 0},
    )


def _single_try(answer_s: float, *, allow_http: bool) -> ClientConfig:
    return {
        "allow_http": allow_http,
        "connect_timeout": timedelta(seconds=min(5.0, answer_s)),
        "read_timeout": timedelta(seconds=answer_s),
        "timeout": timedelta(minutes=10),  # of a whole answer; the default ends large ones after 30 s
    }


def _is_plain(settings: Settings) -> bool:
    return (settings.s3_endpoint or "").startswith("http://")


def _s3(settings: Settings) -> S3Config:
    options: S3Config = {"region": settings.s3_region}
    if settings.s3_endpoint:
        options["endpoint"] = settings.s3_endpoint
    if settings.s3_access_key_id and settings.s3_secret_access_key:
        options["access_key_id"] = settings.s3_access_key_id
        options["secret_access_key"] = settings.s3_secret_access_key
    return options
