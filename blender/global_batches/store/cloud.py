"""The services that keep buckets: S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage.

    cloud = cloud_of("gs", settings)                # by the scheme of an address; None for another one
    cloud.client("bucket", "run7", answer_s=30)     # obstore's client: every request is sent once
    cloud.refusal(error, "gs://bucket/run7")        # ConfigurationError, if waiting cannot mend an error

S3 takes its endpoint and keys from the lake's settings. The others take theirs from the variables of the
clouds' own tools, as obstore reads them, or from the machine.
"""

from __future__ import annotations

import os
import re
from typing import Protocol

from obstore.store import ObjectStore

from factory.errors import ConfigurationError
from factory.lake.servers import cause, s3_code, unusable
from factory.lake.store import azure_store, google_store, single_try_store
from factory.settings import Settings

_DENIED = re.compile(r"status code: 40[13] ")
_BULK_DELETE = "Bulk delete request failed"  # of Azure, even for one name; its 404 comes without a code
_GOOGLE_ENDPOINT = "GOOGLE_BASE_URL"


class Cloud(Protocol):
    """A service of buckets."""

    address_form: str
    """How an address is written."""
    place: str
    """The service in sentences."""
    credentials: str
    """The settings that say who asks, as a remedy names them."""

    def client(self, bucket: str, prefix: str, answer_s: float) -> ObjectStore:
        """A client that sends each request once; raises ValueError or BaseError."""

    def is_missing(self, error: FileNotFoundError) -> bool:
        """Whether the service itself says that an object is missing, and not a gateway on the way to it."""

    def refusal(self, error: Exception, address: str) -> ConfigurationError | None:
        """The sentence of an error that waiting cannot mend."""


def cloud_of(scheme: str, settings: Settings) -> Cloud | None:
    """The service of a scheme: `s3`, `gs` or `az`. Raises ConfigurationError for a wrong endpoint."""
    match scheme:
        case "s3":
            return S3(settings)
        case "gs":
            return GoogleCloudStorage()
        case "az":
            return AzureBlobStorage()
    return None


class S3:
    """S3, or a store that speaks its protocol at FACTORY_S3_ENDPOINT."""

    address_form = "s3://BUCKET/PREFIX"
    credentials = "FACTORY_S3_ACCESS_KEY_ID and FACTORY_S3_SECRET_ACCESS_KEY"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.place = settings.s3_endpoint or "AWS"
        _require_scheme("FACTORY_S3_ENDPOINT", settings.s3_endpoint)

    def client(self, bucket: str, prefix: str, answer_s: float) -> ObjectStore:
        """See `Cloud.client`."""
        return single_try_store(self._settings, bucket, prefix, answer_s=answer_s)

    def is_missing(self, error: FileNotFoundError) -> bool:
        """See `Cloud.is_missing`."""
        return s3_code(error) == "NoSuchKey"

    def refusal(self, error: Exception, address: str) -> ConfigurationError | None:
        """See `Cloud.refusal`."""
        problem = unusable(error, self._settings, address)
        return problem if isinstance(problem, ConfigurationError) else None


class GoogleCloudStorage:
    """Google Cloud Storage."""

    address_form = "gs://BUCKET/PREFIX"
    place = "Google Cloud Storage"
    credentials = "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT, the file of an account"

    def __init__(self) -> None:
        _require_scheme(_GOOGLE_ENDPOINT, os.environ.get(_GOOGLE_ENDPOINT))

    def client(self, bucket: str, prefix: str, answer_s: float) -> ObjectStore:
        """See `Cloud.client`."""
        return google_store(bucket, prefix, answer_s=answer_s)

    def is_missing(self, error: FileNotFoundError) -> bool:
        """See `Cloud.is_missing`."""
        return s3_code(error) == "NoSuchKey"

    def refusal(self, error: Exception, address: str) -> ConfigurationError | None:
        """See `Cloud.refusal`."""
        return _refusal(self, error, address, "NoSuchBucket")


class AzureBlobStorage:
    """Azure Blob Storage; a bucket is a container of the account that the environment names."""

    address_form = "az://CONTAINER/PREFIX"
    place = "Azure Blob Storage"
    credentials = (
        "AZURE_STORAGE_ACCOUNT_NAME, and AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or an identity"
    )

    def client(self, bucket: str, prefix: str, answer_s: float) -> ObjectStore:
        """See `Cloud.client`."""
        return azure_store(bucket, prefix, answer_s=answer_s)

    def is_missing(self, error: FileNotFoundError) -> bool:
        """See `Cloud.is_missing`."""
        return s3_code(error) == "BlobNotFound" or _BULK_DELETE in str(error)

    def refusal(self, error: Exception, address: str) -> ConfigurationError | None:
        """See `Cloud.refusal`."""
        return _refusal(self, error, address, "ContainerNotFound")


def _refusal(cloud: Cloud, error: Exception, address: str, missing_bucket: str) -> ConfigurationError | None:
    code = s3_code(error)
    if code == missing_bucket:
        return ConfigurationError(
            f"{cloud.place} does not have the bucket or container of {address}. Create it, or correct the "
            "address."
        )
    if _DENIED.search(str(error)):
        return ConfigurationError(
            f"{cloud.place} refuses the credentials for {address} ({cause(error)}). Set {cloud.credentials}."
        )
    return None


def _require_scheme(name: str, endpoint: str | None) -> None:
    """Refuse an endpoint without a scheme, with which obstore would panic at the first request."""
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"{name} is `{endpoint}`. Write it with http:// or https:// before the host."
        )
