"""A wait for a signal: whichever thread receives it, before the wait or during it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from blender.serving import processes
from blender.serving.shutdown import ShutdownSignal
from tests.blender.programs import run

START = """
import os, signal, sys, threading, time
from blender.serving.shutdown import ForcedExit, ShutdownSignal

shutdown = ShutdownSignal()
shutdown.install(signal.SIGTERM, signal.SIGINT)
"""


def test_it_is_set_once_and_for_good_by_any_thread() -> None:
    shutdown = ShutdownSignal()
    assert not shutdown.is_set()
    assert not shutdown.wait(0.01)
    setter = threading.Timer(0.05, shutdown.set)
    setter.start()
    assert shutdown.wait()
    shutdown.set()
    assert shutdown.is_set()
    assert shutdown.wait(0)
    setter.join()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_another_thread_receives_ends_the_wait(number: signal.Signals) -> None:
    printed = run(
        START + "def receive():\n"
        "    time.sleep(0.2)\n"  # the main thread waits by then
        f"    signal.pthread_kill(threading.get_ident(), {int(number)})\n"
        "    time.sleep(600)\n"
        "threading.Thread(target=receive, daemon=True).start()\n"
        "print(shutdown.wait(), flush=True)\n"
        "os._exit(0)\n"
    )
    assert printed == "True\n"


def test_a_signal_before_the_wait_counts() -> None:
    printed = run(START + "os.kill(os.getpid(), signal.SIGTERM)\nprint(shutdown.wait())")
    assert printed == "True\n"


def test_a_second_signal_is_raised() -> None:
    printed = run(
        START + "os.kill(os.getpid(), signal.SIGTERM)\n"
        "shutdown.wait()\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(600)\n"
        "except ForcedExit as again:\n"
        "    print(again.number == signal.SIGINT)\n"
    )
    assert printed == "True\n"


def test_more_than_its_pipe_holds_is_set_too() -> None:
    shutdown = ShutdownSignal()
    for _ in range(100_000):
        shutdown.set()
    assert shutdown.is_set()


def test_what_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_AFTER_GRACE_S", 0.2)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # it ignores the signal by now
        processes.end_in_order([child], 0.1)
        assert child.returncode == -signal.SIGKILL
