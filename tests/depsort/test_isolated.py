"""The bounds of a call in a child process, whose death costs that call alone."""

from __future__ import annotations

import os
import resource
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from typing import cast

import pytest

from factory.errors import MachineError
from spark_udfs.depsort.isolated import Isolated

ENOUGH = 1 << 28


def work(task: str) -> str:
    match task:
        case "memory":
            return str(len(bytearray(8 * ENOUGH)))
        case "time":
            while True:
                pass
        case "spin":
            end = time.process_time() + 0.6
            while time.process_time() < end:
                pass
        case "abort":
            os.abort()
        case "raise":
            raise ValueError("a sentence")
        case "lambda":
            return cast(str, lambda: task)  # no pickle
    return f"{task} in {os.getpid()}"


IN_WORKER = Isolated(work, memory_bytes=ENOUGH, cpu_s=1)
"""`work` with a quarter of a gigabyte and a second, in the process of the fixture `worker`."""


def call(task: str) -> str | None:
    return IN_WORKER(task)


Call = Callable[[str], str | None]


@pytest.fixture
def calls(worker: Executor) -> Iterator[Call]:
    """`work` in a child of a process that has no servers."""
    yield lambda task: worker.submit(call, task).result()
    worker.submit(IN_WORKER.close).result()


def test_calls_are_answered_by_one_child(calls: Call) -> None:
    first, second = calls("a"), calls("a")
    assert first is not None
    assert first == second
    assert not first.endswith(f" {os.getpid()}")


@pytest.mark.parametrize("task", ["memory", "time", "abort"])
def test_a_call_that_kills_its_process_has_no_answer_and_the_next_one_has(
    calls: Isolated[[str], str], task: str
) -> None:
    assert calls("before") is not None
    assert calls(task) is None
    assert str(calls("after")).startswith("after in ")


def test_what_the_function_raises_is_raised(calls: Call) -> None:
    with pytest.raises(ValueError, match="a sentence"):
        calls("raise")
    assert calls("after") is not None


def test_an_answer_that_cannot_be_pickled_is_an_error_and_no_death(calls: Call) -> None:
    with pytest.raises(Exception, match="pickle"):
        calls("lambda")
    assert calls("after") is not None


def test_the_time_of_a_call_is_its_own(calls: Call) -> None:
    for _ in range(2):
        assert calls("time") is None
    assert calls("after") is not None


@pytest.mark.parametrize("kind", [resource.RLIMIT_CPU, resource.RLIMIT_AS])
def test_a_hard_limit_below_the_bound_of_a_call_is_that_bound(kind: int) -> None:
    bounded = Isolated(work, memory_bytes=1 << 60, cpu_s=30)
    assert in_a_process_with({kind: 1 << 44 if kind == resource.RLIMIT_AS else 20}, bounded, "x") == "x"


def test_calls_together_may_use_more_than_the_hard_limit_of_time() -> None:
    bounded = Isolated(work, memory_bytes=1 << 40, cpu_s=30)
    assert in_a_process_with({resource.RLIMIT_CPU: 1}, bounded, *["spin"] * 3) == "spin spin spin"


def test_a_child_that_dies_before_its_first_call_is_an_error_of_the_machine() -> None:
    bounded = Isolated(work, memory_bytes=1 << 40, cpu_s=1)
    message = in_a_process_with({}, bounded, "x", at_fork=lambda: os._exit(9))
    assert message.startswith("A process that reads source files ended before its first file, with code 9.")


def test_a_child_that_cannot_be_forked_is_an_error_of_the_machine() -> None:
    bounded = Isolated(work, memory_bytes=1 << 40, cpu_s=1)
    message = in_a_process_with({resource.RLIMIT_NOFILE: 3}, bounded, "x")
    assert message.startswith("A process that reads source files cannot be started: [Errno 24]")


def in_a_process_with(
    limits: Mapping[int, int],
    function: Callable[[str], str | None],
    *tasks: str,
    at_fork: Callable[[], None] | None = None,
) -> str:
    """The first words of the answers, or the sentence of an error, under hard limits of a process's own."""
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            for kind, limit in limits.items():
                resource.setrlimit(kind, (limit, limit))
            if at_fork is not None:
                os.register_at_fork(after_in_child=at_fork)
            message = " ".join(str(function(task)).partition(" ")[0] for task in tasks)
            os.write(theirs, message.encode())
        except MachineError as error:
            os.write(theirs, str(error).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, encoding="utf-8") as stream:
        answers = stream.read()
    os.waitpid(process, 0)
    return answers


def test_the_child_ends_with_its_parent() -> None:
    calls = Isolated(work, memory_bytes=1 << 40, cpu_s=1)  # it is forked from this process, with its threads
    ours, theirs = os.pipe()
    parent = os.fork()
    if parent == 0:
        os.write(theirs, str(calls("x")).encode())
        signal.pause()
    child = int(os.read(ours, 100).decode().rpartition(" ")[2])
    handle = os.pidfd_open(child)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert ended(handle)
    os.close(handle)


def ended(handle: int) -> bool:
    """Whether the process of a pidfd ends within ten seconds."""
    return bool(select.select([handle], [], [], 10)[0])
