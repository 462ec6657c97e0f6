"""Files by location, on a local disk or in the store of the warehouse: their content and version."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs

from factory.lake.files.location import local_path

S3_ENDPOINT, S3_REGION = "s3.endpoint", "client.region"
S3_KEY_ID, S3_SECRET = "s3.access-key-id", "s3.secret-access-key"
STORAGE = (S3_ENDPOINT, S3_REGION, S3_KEY_ID, S3_SECRET)
"""Properties of Spark's catalog for opening files that are not local."""
_PYICEBERG_REGION = "s3.region"


class FileVersion(NamedTuple):
    """The facts that show a change of a file without reading it.

    `stamp` is the modification time of a local file in nanoseconds, or `stamp_of` the ETag of an object.
    """

    n_bytes: int
    stamp: int


def opened(file: str, storage: Mapping[str, str]) -> pa.NativeFile:
    """Open a file for reading; `storage` holds the lake's `STORAGE` options, empty on local disk."""
    local = local_path(file)
    if local is not None:
        return pa.OSFile(local)
    region = storage.get(S3_REGION, storage.get(_PYICEBERG_REGION))
    keys = storage.get(S3_KEY_ID), storage.get(S3_SECRET)
    store = _store(os.getpid(), storage.get(S3_ENDPOINT), region, *keys)
    return store.open_input_file(file.partition(":")[2].lstrip("/"))


@lru_cache(maxsize=4)
def _store(
    process: int,  # noqa: ARG001  # a fork must not share connections
    endpoint: str | None,
    region: str | None,
    key_id: str | None,
    secret: str | None,
) -> fs.S3FileSystem:
    """Return a client, which keeps its connections for the next file."""
    return fs.S3FileSystem(endpoint_override=endpoint, region=region, access_key=key_id, secret_key=secret)


def version_of(file: str, storage: Mapping[str, str]) -> FileVersion:
    """Return the version of a file as it is now; a link is not followed. Raises OSError."""
    local = local_path(file)
    if local is not None:
        status = os.lstat(local)
        return FileVersion(status.st_size, status.st_mtime_ns)
    with opened(file, storage) as stream:
        return FileVersion(stream.size(), stamp_of(stream.metadata()["ETag"].decode()))


def stamp_of(e_tag: str) -> int:
    """Return a number in place of an ETag, to be stored where local files have a time."""
    return int.from_bytes(hashlib.blake2b(e_tag.encode(), digest_size=7).digest(), "big")
