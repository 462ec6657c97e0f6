"""The store of durable batches on a real S3-compatible store, directly and by a faulty way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from blender.errors import StoreUnavailable
from blender.global_batches.blend_production import BlendProduction
from blender.global_batches.errors import UnsafeStore
from blender.global_batches.log.operations import (
    Create,
    Creation,
    Put,
    Routine,
    Verdict,
    create,
    delete,
    get,
    get_all,
    list_names,
)
from blender.global_batches.namespace import create_namespace
from blender.global_batches.policies import Naive
from blender.global_batches.producer import Producer
from blender.global_batches.store import outage
from blender.global_batches.store.namespace_store import NamespaceStore, open_store
from blender.global_batches.store.probe import probe
from blender.records import Source
from blender.trainer.local import LocalBlender, open_blend
from factory.errors import ConfigurationError, FactoryError
from factory.lake.servers import BucketMissing
from factory.settings import Settings
from tests.blender.global_batches.killed_blend_producers import LANES, MESH, check_blend_run, state_of
from tests.blender.global_batches.killed_processes import check_run
from tests.blender.global_batches.killed_runs import check_retention
from tests.blender.global_batches.store.creators import check_one_winner_each
from tests.blender.global_batches.store.proxy import Proxy, proxy_of
from tests.blender.lakes import CODE, make_lake
from tests.engines.processes import ObjectStore

pytestmark = pytest.mark.process


def put(name: str, body: bytes) -> Routine[None]:
    yield Put(name, body)


def single_create(name: str, body: bytes) -> Routine[Creation]:
    creation: Creation = yield Create(name, body)
    return creation


@pytest.fixture
def uri(object_store: ObjectStore, unique: str) -> str:
    """The address of an empty namespace in a bucket of its own."""
    return f"{object_store.bucket(unique)}/runs/a b%20ü"


@pytest.fixture
def proxy(object_store: ObjectStore) -> Iterator[Proxy]:
    """A faulty way to the store."""
    with proxy_of(object_store) as way:
        yield way


@pytest.fixture
def behind(proxy: Proxy, settings: Settings, uri: str) -> Callable[[float], NamespaceStore]:
    """The namespace by the faulty way, with a patience."""
    return lambda patience_s: open_store(
        uri, settings.model_copy(update={"s3_endpoint": proxy.endpoint}), patience_s=patience_s
    )


def test_operations_are_answered_as_on_a_folder(settings: Settings, uri: str) -> None:
    store = open_store(uri, settings)
    assert store.run(list_names("")) == []
    assert store.run(create("log/1", b"first")) is Verdict.OURS
    assert store.run(create("log/1", b"second")) is Verdict.NOT_OURS
    store.run(put("batches/a", b"0123456789"))
    assert sorted(store.run(list_names(""))) == ["batches/a", "log/1"]
    assert store.run(list_names("log/")) == ["log/1"]
    pieces = [store.read("batches/a", offset, length) for offset, length in ((2, 3), (8, 9), (20, 1), (3, 0))]
    assert pieces == [b"234", b"89", b"", b""]
    assert store.read("batches/b", 0, 1) is None
    store.run(delete(["log/1"]))
    store.run(delete(["log/1"]))
    assert store.run(get("log/1")) is None


def test_many_objects_are_read_at_once(proxy: Proxy, behind: Callable[[float], NamespaceStore]) -> None:
    store = behind(10)
    numbers = range(40)
    for number in numbers[::2]:
        store.run(put(f"log/{number}", b"%d" % number))
    proxy.lose_answers("GET", 3)
    bodies = store.run(get_all([f"log/{number}" for number in numbers]))
    assert bodies == [None if number % 2 else b"%d" % number for number in numbers]
    proxy.leave()
    with pytest.raises(StoreUnavailable, match="Connection refused"):
        behind(0.5).run(get_all(["log/1", "log/2"]))


def test_a_large_object_arrives_whole_in_parts(
    proxy: Proxy, behind: Callable[[float], NamespaceStore]
) -> None:
    store = behind(60)
    body = bytes(range(256)) * (33 << 12)  # 33 MiB
    store.run(put("batches/a", body))
    assert proxy.requests["PUT"] == 2
    assert store.run(get("batches/a")) == body


def test_one_of_many_processes_creates_each_name(settings: Settings, uri: str) -> None:
    check_one_winner_each(open_store(uri, settings), settings.environment())


def test_a_safe_store_passes_the_probe_and_is_left_empty(settings: Settings, uri: str) -> None:
    store = open_store(uri, settings)
    facts = probe(store)
    assert 0 < facts.winner_s < 60
    assert 0 < facts.loser_s < 60
    assert store.run(list_names("")) == []


@pytest.mark.invariant(
    "A file is fsynced before its name becomes visible. A store that lets two processes create one name, "
    "or hides a created one, is refused."
)
def test_a_store_that_ignores_conditions_is_unsafe(
    proxy: Proxy, behind: Callable[[float], NamespaceStore]
) -> None:
    proxy.strips_conditions = True
    store = behind(60)
    with pytest.raises(
        UnsafeStore, match=r"confirmed \d+ of 32 concurrent creates of one name\. .*If-None-Match"
    ):
        probe(store)
    assert store.run(list_names("")) == []


def test_a_store_that_forgets_its_creates_is_unsafe(
    proxy: Proxy, behind: Callable[[float], NamespaceStore]
) -> None:
    proxy.lose_requests("PUT", 33)
    with pytest.raises(UnsafeStore, match=r"holds nothing after 32 concurrent creates .*\(32 unclear\)"):
        probe(behind(60))


def test_lost_answers_do_not_fail_the_probe(proxy: Proxy, behind: Callable[[float], NamespaceStore]) -> None:
    proxy.lose_answers("PUT", 33)
    assert probe(behind(60)).winner_s > 0


def test_a_create_is_sent_once_and_read_back_only_if_it_was_not_confirmed(
    proxy: Proxy, behind: Callable[[float], NamespaceStore]
) -> None:
    store = behind(10)
    assert store.run(create("log/1", b"ours")) is Verdict.OURS
    assert (proxy.requests["PUT"], proxy.requests["GET"]) == (1, 0)
    proxy.lose_answers("PUT", 1)
    assert store.run(create("log/2", b"ours")) is Verdict.OURS
    assert (proxy.requests["PUT"], proxy.requests["GET"]) == (2, 1)
    proxy.lose_requests("PUT", 1)
    assert store.run(create("log/3", b"ours")) is Verdict.UNKNOWN
    assert (proxy.requests["PUT"], proxy.requests["GET"]) == (3, 2)
    assert store.run(create("log/3", b"ours")) is Verdict.OURS


def test_lost_requests_and_answers_are_repeated(
    proxy: Proxy, behind: Callable[[float], NamespaceStore]
) -> None:
    store = behind(10)
    for lose in (proxy.lose_requests, proxy.lose_answers):
        for method in ("PUT", "GET", "POST"):
            lose(method, 2)
        store.run(put("batches/a", b"0123"))
        assert store.run(get("batches/a")) == b"0123"
        store.run(delete(["batches/a"]))
        assert store.run(get("batches/a")) is None
    assert (proxy.requests["PUT"], proxy.requests["POST"]) == (6, 6)


def test_a_conflict_confirms_nothing(proxy: Proxy, behind: Callable[[float], NamespaceStore]) -> None:
    proxy.answers_instead = (409, b"<Error><Code>ConditionalRequestConflict</Code></Error>")
    assert behind(10).run(single_create("log/1", b"ours")) is Creation.UNCLEAR


@pytest.mark.parametrize("status, body", [(404, b"<h1>no such page</h1>"), (502, b""), (503, b"")])
def test_an_answer_of_a_gateway_is_no_missing_name(
    proxy: Proxy, behind: Callable[[float], NamespaceStore], status: int, body: bytes
) -> None:
    proxy.answers_instead = (status, body)
    store = behind(0.5)
    for request in (lambda: store.run(get("floor/1")), lambda: store.read("batches/a", 0, 4)):
        with pytest.raises(StoreUnavailable, match=f"{status} "):
            request()


def test_a_store_that_comes_back_is_waited_for(
    proxy: Proxy,
    behind: Callable[[float], NamespaceStore],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(outage, "WARNING_S", 0.5)
    store = behind(60)
    store.run(put("batches/a", b"0123"))
    store.run(put("batches/b", b"0123"))
    proxy.leave()
    threading.Timer(2, proxy.come_back).start()
    started = time.monotonic()
    with ThreadPoolExecutor(5) as pool:
        body = pool.submit(store.run, get("batches/a"))
        names = pool.submit(store.run, list_names("batches/a"))
        piece = pool.submit(store.read, "batches/a", 1, 2)
        removal = pool.submit(store.run, delete(["batches/b"]))
        storing = pool.submit(store.run, put("batches/c", b"c"))
        assert (body.result(), names.result(), piece.result()) == (b"0123", ["batches/a"], b"12")
        removal.result()
        storing.result()
    assert time.monotonic() - started > 1.9
    assert store.run(get("batches/b")) is None
    assert store.run(get("batches/c")) == b"c"
    first, *others = [record for record in caplog.records if record.name == outage.__name__]
    assert first.levelno == logging.WARNING
    assert "(Connection refused). Trying for another" in first.message
    assert [record.message.split(", after")[0] for record in others] == [
        f"The store of {store.uri} at {proxy.endpoint} answers again"
    ]


def test_creates_alone_that_stay_unclear_end_too(
    proxy: Proxy, behind: Callable[[float], NamespaceStore]
) -> None:
    store = behind(1.5)
    proxy.lose_requests("PUT", 1_000)

    def until_ours() -> Routine[None]:
        while (yield from create("log/1", b"ours")) is not Verdict.OURS:
            pass

    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="has confirmed no create for 2 s"):
        store.run(until_ours())
    assert 1.4 < time.monotonic() - started < 10
    assert proxy.requests["GET"] > 2  # everything else was answered


@pytest.mark.parametrize(
    "wrong, kind, words",
    [
        ({"s3_secret_access_key": "hush"}, ConfigurationError, "refuses the keys (SignatureDoesNotMatch)"),
        ({"s3_access_key_id": "nobody"}, ConfigurationError, "refuses the keys (InvalidAccessKeyId)"),
        ({}, BucketMissing, "has no bucket nowhere. Create it, or correct the address."),
    ],
    ids=["secret", "key", "bucket"],
)
def test_a_refusal_is_one_sentence_at_once(
    settings: Settings, uri: str, wrong: dict[str, str], kind: type[FactoryError], words: str
) -> None:
    store = open_store(uri if wrong else "s3://nowhere/run", settings.model_copy(update=wrong))
    started = time.monotonic()
    for routine in (
        get("log/1"),
        create("log/1", b""),
        put("log/1", b""),
        delete(["log/1"]),
        list_names("log/"),
    ):
        with pytest.raises(kind) as raised:
            store.run(routine)
        assert words in str(raised.value)
        assert "hush" not in str(raised.value)
    with pytest.raises(kind):
        store.read("log/1", 0, 1)
    with pytest.raises(kind):
        probe(store)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "status, body, words",
    [
        (403, b"denied", "refuses the keys"),
        (301, b"", "keeps bucket .* in another region .* Correct FACTORY_S3_REGION"),
    ],
)
def test_a_refusal_without_a_code_is_one_too(
    proxy: Proxy, behind: Callable[[float], NamespaceStore], status: int, body: bytes, words: str
) -> None:
    proxy.answers_instead = (status, body)
    store = behind(60)
    for routine in (get("log/1"), list_names("log/"), create("log/1", b"")):
        with pytest.raises(ConfigurationError, match=words):
            store.run(routine)


@pytest.mark.invariant(
    "In assigned order the steps of a namespace equal the steps of its source, even if producers die, and"
    " a rank reads the slice that the source itself would give it."
)
def test_a_blend_comes_out_the_same_whichever_producer_is_killed(
    settings: Settings, uri: str, tmp_path: Path, batch_kills: int, batch_seed: int
) -> None:
    n_steps = 200 * batch_kills
    lake = make_lake(tmp_path / "home", code=8 * n_steps)
    blend = LocalBlender(lake).create([Source(CODE, weight=8)], seed=7).id
    undisturbed = f"{tmp_path}/undisturbed"
    create_namespace(undisturbed, MESH, lanes=LANES, order="assigned")
    Producer(undisturbed, BlendProduction(open_blend(blend, lake)), policy=Naive).run()
    notes = tmp_path / "notes"
    notes.mkdir()
    in_bucket = settings.model_copy(update={"home": lake.home, "cache": lake.cache})
    producers = ["0", "1", "2", "3"]
    environment = in_bucket.environment()
    state = check_blend_run(uri, notes, blend, producers, batch_kills, batch_seed, in_bucket, **environment)
    whole = state_of(undisturbed, lake)
    assert (state.content, state.steps) == (whole.content, whole.steps)
    assert whole.steps == n_steps


@pytest.mark.invariant(
    "The log of a namespace stays consistent under crashes, takeovers and lost, repeated or delayed "
    "requests: versions are contiguous and written once, a lane's rows appear once and in order, an "
    "acknowledged batch is visible, all readers see one sequence, and a checkpoint is the fold of the "
    "log. No rule of the protocol can be left out."
)
def test_every_batch_arrives_once_whoever_is_killed(
    settings: Settings, uri: str, tmp_path: Path, batch_kills: int, batch_seed: int
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    check_run(uri, notes, batch_kills, batch_seed, settings, **settings.environment())


@pytest.mark.invariant(
    "Reclaiming deletes no batch that an open run may ask for, under crashes, takeovers, rollbacks, zombies "
    "and lost, repeated or delayed requests: the floor never falls, a restart is never refused what its run "
    "held, and a quiet reclaimer leaves only live batches. No rule of the protocol can be left out."
)
def test_no_live_batch_is_deleted_whoever_is_killed(
    settings: Settings, uri: str, tmp_path: Path, batch_kills: int, batch_seed: int
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    check_retention(uri, notes, batch_kills, batch_seed, settings, **settings.environment())
