"""Namespaces at gs:// and az://, before a server that speaks as much of both clouds as they need."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from blender.errors import StoreUnavailable
from blender.global_batches.errors import NamespaceNotFound
from blender.global_batches.log.operations import (
    Create,
    Creation,
    Routine,
    Verdict,
    create,
    delete,
    get,
    list_names,
    put,
)
from blender.global_batches.namespace import create_namespace, open_namespace
from blender.global_batches.reader import BatchReader
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.errors import ConfigurationError
from tests.blender.global_batches.store.cloud_server import CloudServer, serving_cloud
from tests.ports import free_ports

SCHEMES = {"google": "gs", "azure": "az"}
CREDENTIALS = {"google": "GOOGLE_APPLICATION_CREDENTIALS", "azure": "AZURE_STORAGE_ACCOUNT_NAME"}


@pytest.fixture(params=SCHEMES)
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudServer]:
    with serving_cloud(request.param, "bucket") as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


def address(cloud: CloudServer, path: str = "bucket/runs/a") -> str:
    return f"{SCHEMES[cloud.kind]}://{path}"


def single_create(name: str, body: bytes) -> Routine[Creation]:
    answer: Creation = yield Create(name, body)
    return answer


def test_a_namespace_lies_below_the_prefix_of_its_bucket_and_is_read_again(cloud: CloudServer) -> None:
    uri = address(cloud)
    create_namespace(uri, Mesh())
    assert set(cloud.objects) == {"runs/a/namespace.json"}  # the probe left nothing
    with BatchWriter(uri) as writer:
        for number in range(3):
            writer.put([{"tokens": np.full(4, number)}], offset=number + 1)
        writer.finish()
    names = open_store(uri).run(list_names("batches/"))
    assert len(names) == 3
    assert all(f"runs/a/{name}" in cloud.objects for name in names)
    reader = BatchReader(uri)
    assert reader.uri == uri
    assert [int(step.tokens[0]) for step in reader.read(StepRange(), 0)] == [0, 1, 2]


def test_an_object_that_is_missing_is_no_error_and_a_bucket_is(cloud: CloudServer) -> None:
    store = open_store(address(cloud))
    assert store.run(get("log/1")) is None
    store.run(delete(["log/1"]))
    store.run(put("log/1", b"body"))
    assert store.read("log/1", 1, 9) == b"ody"
    assert store.read("log/1", 4, 1) == b""
    assert store.run(single_create("log/1", b"other")) is Creation.TAKEN
    assert store.run(create("log/1", b"other")) is Verdict.NOT_OURS
    for _ in range(2):
        store.run(delete(["log/1"]))
    assert cloud.objects == {}
    with pytest.raises(NamespaceNotFound):
        open_namespace(open_store(address(cloud)))
    with pytest.raises(
        ConfigurationError, match=r"does not have the bucket or container of \w+://other/run\."
    ):
        open_store(address(cloud, "other/run")).run(get("log/1"))


def test_many_objects_are_deleted_though_one_is_missing(cloud: CloudServer) -> None:
    store = open_store(address(cloud))
    names = [f"log/{number}" for number in range(9)]
    for name in (*names[:4], *names[5:]):
        store.run(put(name, b"body"))
    store.run(delete(names))
    assert cloud.objects == {}
    cloud.denies = True
    with pytest.raises(ConfigurationError, match=r"does not let these keys delete .*AccessDenied"):
        store.run(delete(names[:2]))


def test_who_may_not_read_is_told_which_settings_say_who_asks(cloud: CloudServer) -> None:
    cloud.denies = True
    with pytest.raises(
        ConfigurationError, match=f"refuses the credentials for .* Set {CREDENTIALS[cloud.kind]}"
    ):
        open_store(address(cloud)).run(get("log/1"))


def test_a_cloud_that_does_not_answer_ends_in_a_sentence(
    cloud: CloudServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = f"http://127.0.0.1:{free_ports(1)[0]}"
    for name, value in cloud.environment().items():
        if value == cloud.endpoint:
            monkeypatch.setenv(name, nobody)
    place = "Google Cloud Storage" if cloud.kind == "google" else "Azure Blob Storage"
    with pytest.raises(
        StoreUnavailable, match=f"^The store of {address(cloud)} at {place} has not answered for"
    ):
        create_namespace(address(cloud), Mesh(), patience_s=0.2)


def test_settings_that_open_no_client_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        ConfigurationError, match=r"Account must be specified.* set AZURE_STORAGE_ACCOUNT_NAME"
    ):
        open_store("az://container/run")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", "/nowhere.json")
    with pytest.raises(ConfigurationError, match=r"No such file .* set GOOGLE_APPLICATION_CREDENTIALS"):
        open_store("gs://bucket/run")
    monkeypatch.setenv("GOOGLE_BASE_URL", "127.0.0.1:9")
    with pytest.raises(
        ConfigurationError, match=r"^GOOGLE_BASE_URL is `127\.0\.0\.1:9`\. Write it with http"
    ):
        open_store("gs://bucket/run")


@pytest.mark.parametrize("uri", ["gs://bucket/a//b", "az://container/../run"])
def test_a_prefix_with_empty_or_relative_parts_is_refused(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    with pytest.raises(ConfigurationError, match=f"cannot be the address of objects .* Write {uri[:5]}"):
        open_store(uri)
