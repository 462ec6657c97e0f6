"""The driver: addresses, the five operations, waiting for a store that does not answer."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from blender.call_context import CallContext, use_context
from blender.errors import CallCancelled, Stalled, StoreUnavailable
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
from blender.global_batches.store import outage
from blender.global_batches.store.namespace_store import open_store
from factory.errors import ConfigurationError
from factory.settings import Settings
from tests.blender.global_batches.store.creators import check_one_winner_each
from tests.blender.global_batches.store.proxy import Proxy
from tests.ports import free_ports

if TYPE_CHECKING:
    from tests.engines.processes import ObjectStore

ROOT = Path(__file__).parents[3]


def put(name: str, body: bytes) -> Routine[None]:
    yield Put(name, body)


@pytest.fixture
def nobody(tmp_path: Path) -> Settings:
    """Settings of a store at a port where nothing listens."""
    return Settings(
        home=tmp_path,
        s3_endpoint=f"http://127.0.0.1:{free_ports(1)[0]}",
        s3_access_key_id="key",
        s3_secret_access_key="secret",
    )


@pytest.fixture
def silent(nobody: Settings) -> Iterator[Settings]:
    """Settings of a store that takes requests and does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield nobody.model_copy(update={"s3_endpoint": f"http://127.0.0.1:{server.getsockname()[1]}"})


@pytest.mark.parametrize(
    "form", ["{}/run", "file://{}/run", "file:{}/run", "~/run", "run", "./run", "{}/run/"]
)
def test_a_folder_has_many_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    store = open_store(form.format(tmp_path))
    assert not (tmp_path / "run").exists()
    assert store.uri == f"file://{tmp_path}/run"
    store.run(put("log/1", b"body"))
    assert (tmp_path / "run/log/1").read_bytes() == b"body"
    assert open_store(store.uri).run(get("log/1")) == b"body"


def test_a_path_is_taken_literally(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/100%20 #1?")
    store.run(put("log/1", b"body"))
    assert (tmp_path / "100%20 #1?" / "log" / "1").exists()
    assert store.run(list_names("log/")) == ["log/1"]


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "gcs://bucket/run",
        "http://host/run",
        "s3:/bucket",
        "file://run",
        "file://host/run",
        "s3://",
        "s3:///run",
        "gs://",
        "az:///run",
    ],
)
def test_any_other_address_is_refused_in_one_sentence(uri: str) -> None:
    with pytest.raises(ConfigurationError, match=r"Give a folder|names no bucket\. Write") as raised:
        open_store(uri)
    assert f"`{uri}`" in str(raised.value)


@pytest.mark.parametrize("uri", ["s3://bucket/a//b", "s3://bucket/../run"])
def test_a_prefix_with_empty_or_relative_parts_is_refused(nobody: Settings, uri: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be the address of objects"):
        open_store(uri, nobody)


def test_an_endpoint_without_a_scheme_is_refused(nobody: Settings) -> None:
    settings = nobody.model_copy(update={"s3_endpoint": "127.0.0.1:9000"})
    with pytest.raises(ConfigurationError, match=r"FACTORY_S3_ENDPOINT is `127\.0\.0\.1:9000`"):
        open_store("s3://bucket/run", settings)


def test_operations_are_answered_one_after_the_other(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))

    def life() -> Routine[list[object]]:
        answers: list[object] = [(yield from create("log/1", b"first"))]
        answers.append((yield from create("log/1", b"second")))
        answers.append((yield from create("log/1", b"first")))
        answers.append((yield from get("log/1")))
        answers.append((yield from get_all(["log/2", "log/1"])))
        yield from put("batches/a", b"0123456789")
        answers.append(sorted((yield from list_names(""))))
        yield from delete(["log/1"])
        yield from delete(["log/1"])
        answers.append((yield from get("log/1")))
        return answers

    assert store.run(life()) == [
        Verdict.OURS,
        Verdict.NOT_OURS,
        Verdict.OURS,
        b"first",
        [None, b"first"],
        ["batches/a", "log/1"],
        None,
    ]
    pieces = [store.read("batches/a", offset, length) for offset, length in ((2, 3), (8, 9), (20, 1), (3, 0))]
    assert pieces == [b"234", b"89", b"", b""]
    assert store.read("batches/b", 0, 1) is None


def test_a_routine_is_closed_when_its_operation_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    closed = []

    def routine() -> Routine[None]:
        try:
            yield from get("log/1")
        finally:
            closed.append(True)

    with pytest.raises(ConfigurationError):
        open_store(str(tmp_path / "file")).run(routine())
    assert closed == [True]


def test_one_of_many_processes_creates_each_name(tmp_path: Path) -> None:
    check_one_winner_each(open_store(str(tmp_path / "run")), {})


def test_a_store_that_stays_away_is_one_sentence_after_the_patience(
    nobody: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outage, "WARNING_S", 0.3)
    store = open_store("s3://bucket/run", nobody, patience_s=1.0)
    started = time.monotonic()
    with pytest.raises(StoreUnavailable) as raised:
        store.run(get("log/1"))
    assert 0.9 < time.monotonic() - started < 5
    assert str(raised.value) == (
        f"The store of s3://bucket/run at {nobody.s3_endpoint} has not answered for 1 s "
        "(Connection refused). Start it, or repair the connection, and start again: what is committed stays."
    )
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert re.search(
        r"has not answered for . s \(Connection refused\)\. Trying for another . s\.", record.message
    )


def test_a_store_that_takes_requests_and_does_not_answer_is_away(silent: Settings) -> None:
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="no answer in time"):
        open_store("s3://bucket/run", silent, patience_s=0.5).run(get("log/1"))
    assert time.monotonic() - started < 5


def test_creates_that_stay_unclear_end_too(nobody: Settings) -> None:
    store = open_store("s3://bucket/run", nobody, patience_s=1.0)

    def creates() -> Routine[None]:
        while True:
            yield from create_alone()

    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="has confirmed no create for 1 s"):
        store.run(creates())
    assert 0.9 < time.monotonic() - started < 5


def create_alone() -> Routine[Creation]:
    creation: Creation = yield Create("log/1", b"body")
    return creation


def test_a_conflict_is_an_answer_and_no_outage(nobody: Settings) -> None:
    proxy = Proxy(cast("ObjectStore", None))  # forwards nothing
    proxy.answers_instead = (409, b"<Error><Code>ConditionalRequestConflict</Code></Error>")
    try:
        settings = nobody.model_copy(update={"s3_endpoint": proxy.endpoint})
        store = open_store("s3://bucket/run", settings, patience_s=1.0)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            assert store.run(create_alone()) is Creation.UNCLEAR
        assert store.pauses == 0
    finally:
        proxy.leave()


@pytest.mark.parametrize("asks", [get("log/1"), create_alone()])
def test_no_request_begins_after_the_deadline(tmp_path: Path, asks: Routine[object]) -> None:
    store = open_store(str(tmp_path))
    with (
        use_context(CallContext(timeout_s=0)),
        pytest.raises(Stalled, match="before the next request to file"),
    ):
        store.run(asks)


def test_a_wait_ends_with_its_call(nobody: Settings) -> None:
    store = open_store("s3://bucket/run", nobody)
    with use_context(CallContext(timeout_s=0.3)), pytest.raises(Stalled, match="has not answered"):
        store.run(get("log/1"))
    call = CallContext()
    threading.Timer(0.3, call.cancel, [CallCancelled("enough")]).start()
    started = time.monotonic()
    with use_context(call), pytest.raises(CallCancelled, match="enough"):
        store.run(get("log/1"))
    assert time.monotonic() - started < 5


def test_an_interrupt_ends_a_wait(nobody: Settings) -> None:
    code = (
        "from blender.global_batches.log.operations import get\n"
        "from blender.global_batches.store.namespace_store import open_store\n"
        "store = open_store('s3://bucket/run')\n"
        "print('waiting', flush=True)\n"
        "store.run(get('log/1'))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | nobody.environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert errors.endswith("KeyboardInterrupt\n")


@pytest.mark.parametrize("routine", ["get('log/1')", "get_all(['log/1', 'log/2'])"])
def test_a_forked_process_is_told_that_it_cannot_use_a_bucket(nobody: Settings, routine: str) -> None:
    code = (
        "import os\n"
        "from blender.global_batches.log.operations import get, get_all\n"
        "from blender.global_batches.store.namespace_store import open_store\n"
        "store = open_store('s3://bucket/run', patience_s=0.1)\n"
        "for _ in range(2):\n"
        f"    try: store.run({routine})\n"
        "    except Exception as error: print(type(error).__name__, error, flush=True)\n"
        "    if os.fork(): os.wait(); break\n"
    )
    output = lines_of(code, nobody)
    assert output[0].startswith("StoreUnavailable ")
    assert output[1].startswith("MachineError This process was forked from one that had used a bucket")


@pytest.mark.parametrize("names", [["log/1"], ["log/1", "log/2"]])
def test_a_bucket_is_read_while_the_interpreter_shuts_down(nobody: Settings, names: list[str]) -> None:
    code = (
        "import atexit\n"
        "from blender.global_batches.log.operations import get_all\n"
        "from blender.global_batches.store.namespace_store import open_store\n"
        "@atexit.register\n"
        "def read():\n"
        f"    try: open_store('s3://bucket/run', patience_s=0.1).run(get_all({names}))\n"
        "    except Exception as error: print(type(error).__name__, flush=True)\n"
    )
    assert lines_of(code, nobody) == ["StoreUnavailable"]


def lines_of(code: str, settings: Settings) -> list[str]:
    """What a program prints."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | settings.environment(),
        timeout=30,
        check=True,
    ).stdout.splitlines()


def test_the_driver_loads_no_engine() -> None:
    code = (
        "import sys, blender.global_batches.store.probe\n"
        "print(*{'pyiceberg', 'pandas', 'grpc', 'dagster', 'pyspark', 'pyarrow'} & set(sys.modules))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert output.stdout == "\n"
