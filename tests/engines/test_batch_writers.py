"""Writers of durable batches on a real S3-compatible store, by a way that is cut and loses answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from blender.errors import StoreUnavailable
from blender.global_batches.errors import UnsafeStore
from blender.global_batches.format.footer import Footer
from blender.global_batches.log import log
from blender.global_batches.log.client import Client
from blender.global_batches.log.operations import list_names
from blender.global_batches.namespace import create_namespace
from blender.global_batches.policies import AdaptiveCommit, Naive
from blender.global_batches.store import outage
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from factory.settings import Settings
from tests.blender.global_batches.store.proxy import Proxy, proxy_of
from tests.engines.processes import ObjectStore

pytestmark = pytest.mark.process


class Hourly:
    """Commits once an hour, so that a test decides when: by a flush."""

    def after(self, seconds: float, lanes: int) -> float:  # noqa: ARG002
        return 3600.0


@pytest.fixture(scope="module")
def bucket(object_store: ObjectStore) -> str:
    """The address of a bucket for all of these tests."""
    return object_store.bucket("batch-writers")


@pytest.fixture
def uri(bucket: str, unique: str, settings: Settings) -> str:
    """The address of a namespace of its own."""
    address = f"{bucket}/{unique}"
    create_namespace(address, Mesh(), settings=settings, order="arrival")
    return address


@pytest.fixture
def proxy(object_store: ObjectStore) -> Iterator[Proxy]:
    """A faulty way to the store."""
    with proxy_of(object_store) as way:
        yield way


@pytest.fixture
def faulty(proxy: Proxy, settings: Settings) -> Settings:
    """Settings that lead to the store by the faulty way."""
    return settings.model_copy(update={"s3_endpoint": proxy.endpoint})


def put(writer: BatchWriter, row: int) -> None:
    writer.put([{"x": np.array([row])}], offset=row + 1)


def rows(uri: str, settings: Settings) -> Iterator[int]:
    """The numbers in the batches of the log, in order."""
    store = open_store(uri, settings)
    for batch in store.run(log.load(Client())).tail:
        body = store.read(batch.name, 0, batch.n_bytes)
        assert body is not None
        footer = Footer.of_object(body, batch.name)
        offset, length = footer.range_of(0, 0)
        yield int(footer.decode(0, 0, body[offset : offset + length])["x"][0])


def test_a_commit_without_conflict_takes_four_round_trips_beside_its_batch(
    uri: str, proxy: Proxy, faulty: Settings, settings: Settings
) -> None:
    with BatchWriter(uri, "a", settings=faulty) as writer:
        for row in range(3):
            proxy.requests.clear()
            put(writer, row)
            assert proxy.requests["PUT"] >= 1  # the batch is stored by the put
            writer.flush()
            # The batch; a look for a newer version, the version, the floor after it, and the namespace.
            assert proxy.requests == {"PUT": 2, "GET": 3}
        proxy.requests.clear()
    assert not proxy.requests  # closing has nothing to ask
    assert list(rows(uri, settings)) == [0, 1, 2]


def test_many_batches_take_one_commit(uri: str, proxy: Proxy, faulty: Settings, settings: Settings) -> None:
    with BatchWriter(uri, "a", settings=faulty, policy=Hourly()) as writer:
        put(writer, 0)
        writer.flush()
        proxy.requests.clear()
        for row in range(1, 9):
            put(writer, row)
        writer.flush()
        assert proxy.requests == {"PUT": 9, "GET": 3}
    assert list(rows(uri, settings)) == list(range(9))


def test_a_writer_waits_for_a_store_that_comes_back(
    uri: str,
    proxy: Proxy,
    faulty: Settings,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(outage, "WARNING_S", 0.5)

    def away() -> float:
        proxy.leave()
        threading.Timer(2, proxy.come_back).start()
        return time.monotonic()

    with BatchWriter(uri, "a", settings=faulty, policy=Hourly()) as writer:
        put(writer, 0)
        writer.flush()
        put(writer, 1)
        put(writer, 2)
        left = away()
        writer.flush()  # the commit waits
        assert time.monotonic() - left > 1.9
        assert writer.committed == 3
        put(writer, 3)
        left = away()
        put(writer, 4)  # the batch waits
        assert time.monotonic() - left > 1.9
        put(writer, 5)
    assert list(rows(uri, settings)) == list(range(6))
    messages = [record.message for record in caplog.records if record.name == outage.__name__]
    assert sum("has not answered for" in message for message in messages) == 2
    assert sum("answers again" in message for message in messages) == 2


def test_a_writer_without_a_store_ends_by_a_sentence_and_the_next_one_goes_on(
    uri: str, proxy: Proxy, faulty: Settings, settings: Settings
) -> None:
    writer = BatchWriter(uri, "a", settings=faulty, policy=Hourly(), patience_s=1.5)
    put(writer, 0)
    writer.flush()
    put(writer, 1)
    proxy.leave()
    for call in (lambda: put(writer, 2), writer.flush, lambda: put(writer, 2), writer.close):
        started = time.monotonic()
        with pytest.raises(
            StoreUnavailable, match=r"has not answered for [12] s .*Start it, or repair the connection"
        ):
            call()
        assert time.monotonic() - started < 6
    assert (writer.offset, writer.sequence, writer.committed) == (2, 2, 1)
    writer.close()  # once more does nothing

    proxy.come_back()
    with BatchWriter(uri, "a", settings=faulty) as following:
        assert (following.offset, following.sequence) == (1, 1)
        put(following, 1)
        put(following, 2)
        following.finish()
    assert list(rows(uri, settings)) == [0, 1, 2]


def test_an_outage_does_not_make_commits_rarer(uri: str, proxy: Proxy, faulty: Settings) -> None:
    policy = AdaptiveCommit()
    with BatchWriter(uri, "a", settings=faulty, policy=policy) as writer:
        put(writer, 0)
        writer.flush()
        put(writer, 1)
        proxy.leave()
        threading.Timer(5, proxy.come_back).start()
        writer.flush()
        assert writer.committed == 2
    assert policy.window is not None
    assert policy.window < 0.9  # a fifth of the outage, or more, if it counted as an attempt


def test_a_put_that_failed_leaves_its_name_to_late_requests(
    uri: str, proxy: Proxy, faulty: Settings, settings: Settings
) -> None:
    with BatchWriter(uri, "a", settings=faulty, policy=Hourly(), patience_s=1) as writer:
        put(writer, 0)
        writer.flush()
        proxy.lose_answers("PUT", 1_000)
        with pytest.raises(StoreUnavailable):
            put(writer, 7)
        proxy.lose_answers("PUT", 0)
        put(writer, 1)
    assert list(rows(uri, settings)) == [0, 1]
    stored = [name.rpartition("/")[2] for name in open_store(uri, settings).run(list_names("batches/"))]
    assert sorted(name.partition("-")[0] for name in stored) == ["0", "1", "1"]


def test_a_store_that_is_away_refuses_a_writer_within_its_patience(
    uri: str, proxy: Proxy, faulty: Settings
) -> None:
    proxy.leave()
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="has not answered"):
        BatchWriter(uri, "a", settings=faulty, patience_s=1)
    assert time.monotonic() - started < 6


@pytest.mark.parametrize("lost", [1, 3])
@pytest.mark.parametrize("fault", ["answers", "requests"])
def test_a_lost_create_commits_each_batch_once(
    uri: str, proxy: Proxy, faulty: Settings, settings: Settings, fault: str, lost: int
) -> None:
    lose = proxy.lose_answers if fault == "answers" else proxy.lose_requests
    with BatchWriter(uri, "a", settings=faulty, policy=Hourly()) as writer:
        put(writer, 0)
        writer.flush()
        for first in (1, 4):
            for row in range(first, first + 3):
                put(writer, row)
            proxy.requests.clear()
            lose("PUT", lost)
            writer.flush()
            # A lost answer is read back at once; of lost requests, one after the other arrives in the end.
            assert proxy.requests["PUT"] == (1 if fault == "answers" else lost + 1)
            lose("PUT", 0)
        lose("PUT", lost)
        writer.finish()
    assert list(rows(uri, settings)) == list(range(7))
    state = open_store(uri, settings).run(log.load(Client()))
    assert (state.lane("a").sequence, state.lane("a").closed) == (7, True)


def test_everything_lost_now_and_then_commits_each_batch_once(
    uri: str, proxy: Proxy, faulty: Settings, settings: Settings
) -> None:
    with BatchWriter(uri, "a", settings=faulty, policy=Naive()) as writer:
        for row in range(30):
            if row % 3 == 0:
                proxy.lose_answers("PUT" if row % 2 else "GET", 1)
                proxy.lose_requests("GET" if row % 2 else "PUT", 1)
            put(writer, row)
    assert list(rows(uri, settings)) == list(range(30))


def test_no_namespace_is_created_on_a_store_that_ignores_conditions(
    bucket: str, unique: str, proxy: Proxy, faulty: Settings, settings: Settings
) -> None:
    proxy.strips_conditions = True
    address = f"{bucket}/{unique}"
    with pytest.raises(UnsafeStore, match="concurrent creates of one name"):
        create_namespace(address, Mesh(), settings=faulty, order="arrival")
    assert open_store(address, settings).run(list_names("")) == []
