"""How writers end: killed, interrupted, forgotten, forked, fenced by a crowd, or by an error of their own."""

from __future__ import annotations

import gc
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from blender.global_batches.errors import (
    DamagedLog,
    NamespaceDiffers,
    NamespaceNotFound,
    WriterClosed,
)
from blender.global_batches.log import log, names
from blender.global_batches.log.client import Client
from blender.global_batches.namespace import create_namespace
from blender.global_batches.policies import Naive
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from tests.blender.global_batches.written import small_log

ROOT = Path(__file__).parents[3]

PROGRAM = """
import os, resource, signal, sys, threading, time
import numpy as np
from blender.global_batches.writer import BatchWriter
from factory.errors import FactoryError

class Hourly:
    def after(self, seconds, lanes):
        return 3600.0

def put(row):
    writer.put([{"x": np.array([row])}], row + 1)

def leave_without_store():
    # A folder that opens no file does not answer, and may answer later.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, most[1]))

def interrupt_soon():
    def interrupt():
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt, daemon=True).start()

writer = BatchWriter(sys.argv[1], "a", policy=Hourly())
put(0)
writer.flush()
"""


@pytest.fixture
def uri(tmp_path: Path) -> str:
    address = f"{tmp_path}/run"
    create_namespace(address, Mesh(), order="arrival")
    return address


def program(uri: str, lines: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM + lines, uri]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome(uri: str, lines: str) -> tuple[int, str]:
    """The exit code and the output of a process that opens a writer and goes on by these lines."""
    return outcome_of(program(uri, lines))


def outcome_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and the output of a process once it has ended."""
    output, errors = process.communicate(timeout=60)
    assert "Fatal" not in errors
    return process.returncode, output.strip() or errors


class Hourly:
    """Commits once an hour, or when it is asked to."""

    def after(self, seconds: float, lanes: int) -> float:  # noqa: ARG002
        return 3600.0


def put(writer: BatchWriter, row: int) -> None:
    writer.put([{"x": np.array([row])}], row + 1)


def committed(uri: str) -> int:
    state = open_store(uri).run(log.load(Client()))
    assert state.steps == state.lane("a").sequence
    return state.steps


def commit_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("commit-")]


def test_batches_between_their_put_and_their_commit_come_again_after_a_kill(uri: str) -> None:
    code, _ = outcome(uri, "put(1); put(2); os.kill(os.getpid(), signal.SIGKILL)")
    assert code == -signal.SIGKILL
    assert committed(uri) == 1
    with BatchWriter(uri, "a") as writer:
        assert (writer.offset, writer.sequence) == (1, 1)
        put(writer, 1)
    assert committed(uri) == 2


def test_an_interrupt_is_not_held_up_by_a_store_that_is_away(tmp_path: Path) -> None:
    """A writer waits for its store for five minutes by default."""
    calls = ("put(2)", "writer.flush()", "writer.finish()", "time.sleep(600)")
    uris = [f"{tmp_path}/{number}" for number in range(len(calls))]
    processes = []
    for uri, call in zip(uris, calls, strict=True):
        create_namespace(uri, Mesh(), order="arrival")
        lines = f"""
try:
    with writer:
        put(1)
        leave_without_store()
        interrupt_soon()
        {call}
except KeyboardInterrupt:
    print("interrupted")
"""
        processes.append(program(uri, lines))
    assert [outcome_of(process) for process in processes] == [(0, "interrupted")] * len(calls)
    assert [committed(uri) for uri in uris] == [1] * len(calls)


def test_an_interrupted_flush_goes_on_and_an_interrupted_finish_takes_no_more(uri: str) -> None:
    code, output = outcome(
        uri,
        """
put(1)
most = resource.getrlimit(resource.RLIMIT_NOFILE)
for call in (writer.flush, writer.finish):
    leave_without_store()
    interrupt_soon()
    try:
        call()
    except KeyboardInterrupt:
        print("interrupted", end=" ")
    resource.setrlimit(resource.RLIMIT_NOFILE, most)
    try:
        put(2)
    except FactoryError as error:
        print(error, end=" ")
writer.finish()
print(writer.committed, writer.is_finished)
""",
    )
    assert code == 0
    sentence = "Lane `a` is being finished. Write further batches to another lane."
    assert output == f"interrupted interrupted {sentence} 3 True"
    assert committed(uri) == 3


def test_an_interrupted_writer_commits_what_was_put_while_its_store_answers(uri: str) -> None:
    writer = BatchWriter(uri, "a", policy=Hourly())

    def interrupted() -> None:
        with writer:
            put(writer, 0)
            writer.flush()
            put(writer, 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    writer.close()
    assert (writer.committed, committed(uri)) == (2, 2)
    with pytest.raises(WriterClosed, match="is closed"):
        put(writer, 2)


def test_an_interrupted_writer_says_what_it_left(uri: str) -> None:
    code, output = outcome(
        uri,
        """
put(1)
try:
    with writer:
        leave_without_store()
        raise KeyboardInterrupt
except KeyboardInterrupt:
    writer.close()
for call in (writer.flush, lambda: put(2)):
    try:
        call()
    except FactoryError as error:
        print(error)
print(writer.sequence, writer.committed)
""",
    )
    assert code == 0
    assert output.splitlines() == [
        "This writer of lane `a` was stopped before its last batches (1) were committed, or its lane closed. "
        "Open another one: it goes on there.",
        "This writer of lane `a` is closed. Open the lane by another one.",
        "2 1",
    ]


def test_a_process_that_forgets_its_writer_ends_and_loses_nothing(uri: str) -> None:
    assert outcome(uri, "[put(row) for row in range(1, 30)]") == (0, "")
    assert committed(uri) == 30


def test_a_process_that_forgets_its_writer_ends_without_its_store(uri: str) -> None:
    assert outcome(uri, "put(1); leave_without_store()") == (0, "")
    assert committed(uri) == 1


def test_the_thread_of_a_collected_writer_commits_and_ends(uri: str) -> None:
    put(BatchWriter(uri, "a"), 0)
    gc.collect()
    deadline = time.monotonic() + 20
    while commit_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert commit_threads() == []
    assert committed(uri) == 1


def test_a_forked_process_leaves_the_lane_to_its_parent(uri: str) -> None:
    code, output = outcome(
        uri,
        """
put(1)
child = os.fork()
for call in (lambda: put(2), writer.flush, writer.finish, lambda: writer.offset) if not child else ():
    try:
        call()
    except FactoryError as error:
        print(f"{type(error).__name__}: {error}"[:45], flush=True)
if not child:
    writer.close()
    sys.exit()
os.waitpid(child, 0)
writer.finish()
""",
    )
    assert code == 0
    assert output.splitlines() == ["MachineError: This process was forked from th"] * 4
    assert committed(uri) == 2


RACERS = 5


def test_one_of_many_processes_that_open_a_lane_at_once_can_commit(uri: str, tmp_path: Path) -> None:
    racer = f"""
import random, sys, time
from pathlib import Path
import numpy as np
from blender.global_batches.errors import Fenced
from blender.global_batches.writer import BatchWriter
Path({str(tmp_path)!r}, "ready-" + sys.argv[2]).touch()
while not Path({str(tmp_path)!r}, "go").exists():
    time.sleep(0.001)
try:
    with BatchWriter(sys.argv[1], "a") as writer:
        first = writer.sequence
        for row in range(2):
            writer.put([{{"x": np.array([row])}}], [sys.argv[2], row])
            writer.flush()
            time.sleep(0.5)
        print(writer.committed - first)
except Fenced as error:
    print(f"Fenced: {{error}}")
"""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", racer, uri, f"{number}"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for number in range(RACERS)
    ]
    while len(list(tmp_path.glob("ready-*"))) < RACERS:
        time.sleep(0.01)
    (tmp_path / "go").touch()
    outputs = [racer.communicate(timeout=120)[0].strip() for racer in racers]
    assert outputs.count("2") == 1
    assert sum(output.startswith("Fenced: Process ") for output in outputs) == RACERS - 1
    winner = outputs.index("2")
    state = open_store(uri).run(log.load(Client()))
    assert state.lane("a").offset == [f"{winner}", 1]
    assert state.steps == state.lane("a").sequence


class Broken:
    """A policy with a defect."""

    def after(self, seconds: float, lanes: int) -> float:
        raise ZeroDivisionError(f"{seconds} s, {lanes} lanes")


def test_an_unexpected_error_of_the_thread_is_raised_by_every_call(uri: str) -> None:
    writer = BatchWriter(uri, "a", policy=Broken())
    put(writer, 0)
    deadline = time.monotonic() + 20
    while commit_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    calls: list[Callable[[], None]] = [lambda: put(writer, 1), writer.flush, writer.finish, writer.close]
    for call in calls:
        with pytest.raises(ZeroDivisionError, match="1 lanes"):
            call()
    writer.close()
    assert (writer.sequence, writer.committed, writer.is_finished) == (1, 1, False)


def test_a_damaged_version_ends_a_writer_by_its_name(uri: str) -> None:
    writer, other = BatchWriter(uri, "a", policy=Naive()), BatchWriter(uri, "b")
    put(other, 0)
    other.close()
    damaged = Path(uri, names.log(3))
    damaged.write_bytes(damaged.read_bytes()[:-7])
    put(writer, 0)
    with pytest.raises(DamagedLog, match=r"log/0{19}3 is damaged .*Restore it from a copy"):
        writer.flush()
    with pytest.raises(DamagedLog):
        writer.close()
    assert (writer.sequence, writer.committed) == (1, 0)


CHECKPOINT_VERSIONS = 10  # a tenth of the usual number


@pytest.mark.parametrize("replaced", [False, True])
def test_a_writer_of_a_deleted_namespace_finds_out_at_its_next_commit(uri: str, replaced: bool) -> None:
    writer = BatchWriter(uri, "a", policy=Naive())
    put(writer, 0)
    writer.flush()
    shutil.rmtree(uri)
    if replaced:
        create_namespace(uri, Mesh(), order="arrival")
    put(writer, 1)
    with pytest.raises(NamespaceDiffers if replaced else NamespaceNotFound):
        writer.flush()
    assert writer.committed == 1


def test_a_writer_that_closes_at_once_writes_the_checkpoint_that_is_due(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_log(monkeypatch, CHECKPOINT_VERSIONS, segment_steps=8)
    for row in range(CHECKPOINT_VERSIONS // 2):
        with BatchWriter(uri, "a") as writer:  # a version that takes the lane, and one with the batch
            put(writer, row)
    assert Path(uri, names.checkpoint(CHECKPOINT_VERSIONS)).exists()
