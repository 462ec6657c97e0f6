"""A store of objects with a bucket of known files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from tests.engines.processes import ObjectStore


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A server of S3, with its endpoint and its keys in the environment."""
    server = ObjectStore(tmp_path_factory.mktemp("store"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        patch.setenv("AWS_ACCESS_KEY_ID", server.key_id)
        patch.setenv("AWS_SECRET_ACCESS_KEY", server.secret)
        yield server
    server.stop()


def upload(folder: Path, address: str) -> None:
    """Copy the files of a folder to an address, `s3://bucket/folder`."""
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    objects = S3Store(bucket, prefix=prefix or None, region="us-east-1", client_options={"allow_http": True})
    for path in folder.rglob("*"):
        if path.is_file():
            obstore.put(objects, path.relative_to(folder).as_posix(), path.read_bytes())
