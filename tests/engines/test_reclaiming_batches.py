"""Reclaiming on a real S3-compatible store: many objects a request, keys that may not delete, outages."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from blender.global_batches.log.operations import delete, list_names
from blender.global_batches.namespace import create_namespace
from blender.global_batches.reclamation import reclaim_batches
from blender.global_batches.status import namespace_status
from blender.global_batches.store.namespace_store import NamespaceStore, open_store
from blender.global_batches.training_run import TrainingRun
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from factory.cli import batches as commands
from factory.errors import ConfigurationError, NotFound
from factory.settings import Settings
from tests.blender.global_batches.store.proxy import Proxy, proxy_of
from tests.engines.processes import ObjectStore

pytestmark = pytest.mark.process

STEPS = 6


@pytest.fixture
def uri(object_store: ObjectStore, settings: Settings, unique: str) -> str:
    """The address of six batches; a run holds the last two."""
    uri = f"{object_store.bucket(unique)}/runs/a b%20ü"
    create_namespace(uri, Mesh(), settings=settings)
    run = TrainingRun(uri, "a", settings=settings)
    with BatchWriter(uri, settings=settings) as writer:
        for number in range(STEPS):
            writer.put([{"ids": np.full(4, number)}], number + 1)
    run.checkpoint("ckpt", 4)
    return uri


@pytest.fixture
def proxy(object_store: ObjectStore) -> Iterator[Proxy]:
    """A faulty way to the store."""
    with proxy_of(object_store) as way:
        yield way


def batches_of(store: NamespaceStore) -> list[str]:
    return sorted(name.rpartition("/")[2].partition("-")[0] for name in store.run(list_names("batches/")))


def test_many_objects_are_deleted_in_one_request(uri: str, settings: Settings, proxy: Proxy) -> None:
    behind = settings.model_copy(update={"s3_endpoint": proxy.endpoint})
    proxy.lose_answers("POST", 1)
    assert reclaim_batches(uri, settings=behind).batches == 4
    assert proxy.requests["POST"] == 2  # of which one was answered
    assert proxy.requests["DELETE"] == 0
    assert batches_of(open_store(uri, settings)) == ["4", "5"]


def test_keys_that_may_not_delete_are_one_sentence_and_nothing_is_recorded(
    uri: str, settings: Settings, object_store: ObjectStore
) -> None:
    keys = {"s3_access_key_id": object_store.keeper_id, "s3_secret_access_key": object_store.keeper_secret}
    start_s = time.monotonic()
    with pytest.raises(
        ConfigurationError,
        match=r"does not let these keys delete objects of .* \(AccessDenied\)\. Allow them to, or use keys",
    ):
        reclaim_batches(uri, settings=settings.model_copy(update=keys))
    assert time.monotonic() - start_s < 20
    assert "1" in batches_of(open_store(uri, settings))
    assert namespace_status(uri, settings=settings).reclaimable == 4
    assert reclaim_batches(uri, settings=settings).batches == 4
    assert batches_of(open_store(uri, settings)) == ["4", "5"]


def test_a_reclaimer_outlives_an_outage_and_ends_with_its_namespace(
    uri: str,
    settings: Settings,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    behind = settings.model_copy(update={"s3_endpoint": proxy.endpoint})
    monkeypatch.setattr(commands, "settings", lambda: behind)
    monkeypatch.setattr(commands, "_PATIENCE_S", 0.5)
    errors: list[Exception] = []

    def reclaim() -> None:
        try:
            commands.reclaim(uri, every=0.1, dry_run=False, without_runs=False)
        except NotFound as error:
            errors.append(error)

    thread = threading.Thread(target=reclaim)
    thread.start()
    wait_for("4 batches", capsys)
    proxy.leave()
    _, problems = wait_for("Reclaiming again in 0.1 s: The store of", capsys, stream=1)
    assert "has not answered for" in problems
    proxy.come_back()
    wait_for("0 batches", capsys)
    open_store(uri, settings).run(delete(["namespace.json"]))
    thread.join(30)
    assert len(errors) == 1


def wait_for(words: str, capsys: pytest.CaptureFixture[str], stream: int = 0) -> tuple[str, str]:
    """The output from now on, once it has the words."""
    outputs = ["", ""]
    deadline = time.monotonic() + 30
    while words not in outputs[stream]:
        assert time.monotonic() < deadline, outputs
        time.sleep(0.05)
        for index, text in enumerate(capsys.readouterr()):
            outputs[index] += text
    return outputs[0], outputs[1]
