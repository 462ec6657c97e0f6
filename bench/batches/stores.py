"""The stores on which durable batches are measured: a folder, and SeaweedFS as the S3 server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import obstore
from obstore.exceptions import BaseError

from blender.global_batches.store.bucket import Bucket
from blender.global_batches.store.cloud import S3
from blender.global_batches.store.folder import Folder
from blender.global_batches.store.objects import Objects
from factory.lake.store import bucket_store
from factory.settings import Settings

BUCKET, KEY, SECRET = "batches", "bench", "secret-of-the-bench"
_START_S = 60.0


@dataclass(frozen=True)
class Place:
    """A store, and where a bench may write."""

    name: str
    address: str
    """Below it namespaces are created."""
    settings: Settings

    def objects(self, name: str) -> Objects:
        """The objects of a namespace below the address."""
        if self.settings.s3_endpoint is None:
            return Folder(Path(self.address) / name)
        address = f"s3://{BUCKET}/{name}"
        return Bucket(S3(self.settings), address, BUCKET, name, answer_s=30.0)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which another process uses it."""
        own = self.settings
        if own.s3_endpoint is None:
            return {}
        return {
            "FACTORY_S3_ENDPOINT": own.s3_endpoint,
            "FACTORY_S3_ACCESS_KEY_ID": KEY,
            "FACTORY_S3_SECRET_ACCESS_KEY": SECRET,
        }


@contextmanager
def folder() -> Iterator[Place]:
    """A folder on the local disk."""
    with tempfile.TemporaryDirectory(prefix="bench-batches-") as root:
        yield Place("folder", root, Settings(home=Path(root) / "home"))


@contextmanager
def seaweed() -> Iterator[Place]:
    """SeaweedFS in one process, with a bucket."""
    with tempfile.TemporaryDirectory(prefix="bench-seaweed-") as root:
        ports = _free_ports(8)
        identity = {
            "name": KEY,
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin"],
        }
        (Path(root) / "s3.json").write_text(json.dumps({"identities": [identity]}))
        (Path(root) / "data").mkdir()
        options = {
            "dir": f"{root}/data",
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            "filer": "true",
            "s3": "true",
        }
        options |= {"s3.config": f"{root}/s3.json", "master.volumeSizeLimitMB": "256", "volume.max": "0"}
        options |= {"master.telemetry": "false", "s3.port.iceberg": "0", "s3.port.lance": "0"}
        for part, port, grpc in zip(("master", "volume", "filer", "s3"), ports[:4], ports[4:], strict=True):
            options |= {f"{part}.port": f"{port}", f"{part}.port.grpc": f"{grpc}"}
        command = [f"{Path(sys.executable).parent / 'weed'}", "-logtostderr", "server"]
        server = subprocess.Popen(
            [*command, *(f"-{name}={option}" for name, option in options.items())],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            settings = Settings(
                home=Path(root) / "home",
                s3_endpoint=f"http://127.0.0.1:{ports[3]}",
                s3_access_key_id=KEY,
                s3_secret_access_key=SECRET,
            )
            _wait_for_bucket(settings)
            yield Place("SeaweedFS", f"s3://{BUCKET}", settings)
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


PLACES = (folder, seaweed)


def _wait_for_bucket(settings: Settings) -> None:
    """Create the bucket once the server answers."""
    from pyarrow.fs import S3FileSystem

    deadline = time.monotonic() + _START_S
    while True:
        try:
            S3FileSystem(
                endpoint_override=settings.s3_endpoint,
                access_key=KEY,
                secret_key=SECRET,
                region="us-east-1",
                allow_bucket_creation=True,
            ).create_dir(BUCKET, recursive=False)
            obstore.put(bucket_store(settings, BUCKET), "answers", b"yes")
        except (OSError, BaseError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def _free_ports(n: int) -> list[int]:
    probes = [socket.socket() for _ in range(n)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
