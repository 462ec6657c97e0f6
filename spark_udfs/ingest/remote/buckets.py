"""Buckets of S3, Google Cloud Storage and Azure Blob Storage, by obstore.

Keys come from the environment (`AWS_ACCESS_KEY_ID`, `GOOGLE_APPLICATION_CREDENTIALS`,
`AZURE_STORAGE_ACCOUNT_KEY` and their kin) or from the machine's role, and so does the endpoint
(`AWS_ENDPOINT_URL`). If no variable of AWS names keys or an endpoint, S3 is the store of the warehouse, if
that has settings (`FACTORY_S3_ENDPOINT`, `FACTORY_S3_ACCESS_KEY_ID`). No address holds a key, and no message
repeats the answer of a store, which may.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import obstore
from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from factory.errors import ConfigurationError, FactoryError
from spark_udfs.ingest.remote.objects import Interrupted, ObjectChanged, ObjectState, RemoteFailure

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, RetryConfig, S3Config  # exist for type checkers only

_RETRIES: RetryConfig = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_PIECE_BYTES = 1 << 20
_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d{3})|\b(4\d\d) [A-Z][a-z]+")
_CLIENT_ERROR = re.compile(r"\b4\d\d [A-Z]")
_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound"}
_REFUSALS = {
    "AccessDenied",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "AuthenticationFailed",
    "AuthorizationFailure",
}
_ELSEWHERE = re.compile(r"<Code>(AuthorizationHeaderMalformed|PermanentRedirect)<|redirect without LOCATION")
_BAD_NAME = re.compile(r'path:? "(.*?)"', re.IGNORECASE | re.DOTALL)
_NO_KEYS = re.compile(r"169\.254\.169\.254|Account must be specified")  # where a machine asks for its role
_ENDPOINTS = {"s3": "AWS_ENDPOINT_URL", "gs": "GOOGLE_BASE_URL", "az": "AZURE_STORAGE_ENDPOINT"}
_PUBLIC = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
_OF_AWS = (
    *("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AWS_SKIP_SIGNATURE", "AWS_ACCESS_KEY_ID"),
    *("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_OF_THE_WAREHOUSE: dict[str, Literal["endpoint", "region", "access_key_id", "secret_access_key"]] = {
    "FACTORY_S3_ENDPOINT": "endpoint",
    "FACTORY_S3_REGION": "region",
    "FACTORY_S3_ACCESS_KEY_ID": "access_key_id",
    "FACTORY_S3_SECRET_ACCESS_KEY": "secret_access_key",
}
_WAREHOUSE_KEYS = "FACTORY_S3_ACCESS_KEY_ID and FACTORY_S3_SECRET_ACCESS_KEY"
_KEYS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN, if they are temporary)",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}


@dataclass(frozen=True)
class BucketObjects:
    """The objects of a bucket or container; `scheme` is `s3`, `gs` or `az`."""

    scheme: str
    name: str

    @cached_property
    def _store(self) -> ObjectStore:
        client: ClientConfig = {
            "allow_http": True,  # of an endpoint in the environment
            "connect_timeout": timedelta(seconds=10),
            "read_timeout": timedelta(seconds=60),
            "timeout": timedelta(minutes=10),
        }
        if self.scheme == "gs":
            return GCSStore(self.name, client_options=client, retry_config=_RETRIES)
        if self.scheme == "az":
            return AzureStore(self.name, client_options=client, retry_config=_RETRIES)
        config = self._warehouse or {"region": os.environ.get("AWS_REGION") or _default_region()}
        return S3Store(self.name, config=config, client_options=client, retry_config=_RETRIES)

    @cached_property
    def _warehouse(self) -> S3Config:
        """The settings of the warehouse's store, if it is the store of this bucket, else none."""
        names = ("FACTORY_S3_ENDPOINT", "FACTORY_S3_ACCESS_KEY_ID")
        if self.scheme != "s3" or any(map(os.environ.get, _OF_AWS)) or not any(map(os.environ.get, names)):
            return {}
        config: S3Config = {"region": _default_region()}
        for variable, option in _OF_THE_WAREHOUSE.items():
            if text := os.environ.get(variable):
                config[option] = text
        return config

    def state(self, name: str) -> ObjectState | None:
        """Return the state of an object, None if there is none."""
        try:
            return _state_of(obstore.head(self._store, name))
        except (BaseError, FileNotFoundError) as error:
            if not _CLIENT_ERROR.search(str(error)):
                raise self._failure(error) from None
        except ValueError as error:
            raise self._failure(error) from None
        try:  # a refused HEAD has no body with the reason, a GET has one
            return _state_of(obstore.get(self._store, name).meta)
        except (BaseError, FileNotFoundError) as error:
            if self._is_missing(error):
                return None
            raise self._failure(error) from None

    def below(self, prefix: str) -> Iterator[tuple[str, ObjectState]]:
        """Yield the objects with names that begin with `prefix`, in the order of the store, as listed."""
        # A prefix of obstore is a whole folder. It lists page by page.
        try:
            for page in obstore.list(self._store, prefix=prefix.rstrip("/") or None):
                for entry in page:
                    if entry["path"].startswith(prefix):
                        yield entry["path"], _state_of(entry)
        except (BaseError, FileNotFoundError) as error:
            raise self._failure(error) from None

    def folder(self, prefix: str) -> list[str]:
        """Return the names directly below `prefix`, which is empty or ends with `/`; folders end with `/`."""
        try:
            listing = obstore.list_with_delimiter(self._store, prefix=prefix.rstrip("/") or None)
        except (BaseError, FileNotFoundError) as error:
            raise self._failure(error) from None
        if prefix.rstrip("/") in listing["common_prefixes"]:
            raise self._refusal_of(f"{prefix}/")
        folders = [f"{folder}/" for folder in listing["common_prefixes"]]
        names = [*folders, *(entry["path"] for entry in listing["objects"])]
        return [name.removeprefix(prefix) for name in names if name not in (prefix, prefix.rstrip("/"))]

    def obstacle(self, name: str) -> str | None:
        """Return why a name that was listed cannot be asked for, None if its object is gone.

        The client cuts slashes at both ends of names, in listings and in questions.
        """
        try:
            for page in obstore.list(self._store, prefix=name):
                if any(entry["path"] == name for entry in page):
                    return "its name ends with a slash, which cannot be asked for; rename it"
                break  # that name precedes the names below it
            if self._has_leading_slashes:
                return (
                    "it is gone, or its name begins with a slash, as others in this bucket, which cannot be "
                    "asked for; rename these"
                )
        except (BaseError, FileNotFoundError) as error:
            raise self._failure(error) from None
        return None

    @cached_property
    def _has_leading_slashes(self) -> bool:
        return "" in obstore.list_with_delimiter(self._store)["common_prefixes"]

    def pieces(self, name: str, begin: int, end: int, state: ObjectState) -> Iterator[bytes]:
        """Yield the bytes from `begin` to `end` of an object with that state."""
        options: Any = {"range": (begin, end), "if_match": state.e_tag}
        try:
            answer = obstore.get(self._store, name, options=options)
            if _state_of(answer.meta).is_other_than(state):  # of a store that heeds no conditions
                raise ObjectChanged
            for piece in answer.stream(min_chunk_size=_PIECE_BYTES):
                yield bytes(piece)
        except PreconditionError:
            raise ObjectChanged from None
        except (BaseError, FileNotFoundError) as error:
            if self._is_missing(error):
                raise FileNotFoundError(2, "The object is gone", name) from None
            failure = self._failure(error)
            if isinstance(failure, RemoteFailure):
                raise Interrupted(_cause(error)) from None
            raise failure from None

    def _is_missing(self, error: Exception) -> bool:
        """Whether an object is missing, and not its bucket."""
        return isinstance(error, FileNotFoundError | NotFoundError) and _code(error) not in _NO_BUCKET

    def _failure(self, error: Exception) -> FactoryError:
        """Return the reason that a store does not serve, as one sentence."""
        code, address = _code(error), f"{self.scheme}://{self.name}"
        keys = _WAREHOUSE_KEYS if self._warehouse else _KEYS[self.scheme]
        variables = "FACTORY_S3" if self._warehouse else "AWS"
        endpoint = "FACTORY_S3_ENDPOINT" if self._warehouse else _ENDPOINTS[self.scheme]
        if code in _NO_BUCKET or isinstance(error, FileNotFoundError | NotFoundError):
            place = f" at {self._warehouse['endpoint']}" if "endpoint" in self._warehouse else ""
            return ConfigurationError(f"There is no bucket `{address}`{place}. Correct its name.")
        if (bad_name := _BAD_NAME.search(str(error))) and isinstance(error, ValueError | InvalidPathError):
            return self._refusal_of(bad_name[1])
        if _ELSEWHERE.search(str(error)):
            return ConfigurationError(f"`{address}` is in another region. Set {variables}_REGION to its own.")
        if _NO_KEYS.search(str(error)):
            return ConfigurationError(
                f"There are no keys for `{address}`, and the machine has no role. Set "
                f"{keys}, or {_PUBLIC[self.scheme]}_SKIP_SIGNATURE=true for a public bucket."
            )
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or code in _REFUSALS:
            reason = f" ({code})" if code else ""
            return ConfigurationError(
                f"The store refuses the keys for `{address}`{reason}. Correct or renew {keys}."
            )
        return RemoteFailure(
            f"The store of `{address}` does not answer ({_cause(error)}). Check the network and, if it has "
            f"an endpoint of its own, {endpoint}."
        )

    def _refusal_of(self, name: str) -> ConfigurationError:
        return ConfigurationError(
            f"The name {name!r} in `{self.scheme}://{self.name}` has an empty part, a part `.` or `..`, or a "
            "control character, and cannot be asked for. Rename it, or read a folder without it."
        )


def _default_region() -> str:
    return os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _state_of(entry: ObjectMeta) -> ObjectState:
    return ObjectState(entry["size"], entry["e_tag"], int(entry["last_modified"].timestamp() * 1e9))


def _code(error: Exception) -> str:
    match = _CODE.search(str(error))
    return match[1] if match else ""


def _cause(error: Exception) -> str:
    """Return a cause without the answer of the store, which may repeat keys."""
    if code := _code(error):
        return code
    match = _STATUS.search(str(error))
    if match:
        return f"status {match[1] or match[2]}"
    for phrase in ("error trying to connect", "connection closed", "timed out", "dns error"):
        if phrase in str(error).lower():
            return phrase
    return type(error).__name__
