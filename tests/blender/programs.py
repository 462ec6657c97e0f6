"""Programs in processes of their own, and waits for what other processes and threads do."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from tests.blender.lakes import ROOT


def completed(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program to its successful end."""
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=600, cwd=ROOT, env={**os.environ, **environment}
    )
    assert ended.returncode == 0, ended.stderr
    return ended


def run(program: str, *arguments: str, **environment: str) -> str:
    """Run a Python program to its successful end; return what it prints."""
    return completed(program, *arguments, **environment).stdout


def eventually(holds: Callable[[], bool], within_s: float = 60) -> bool:
    """Wait until `holds` is true, at most `within_s`; return whether it is."""
    end = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def end_workers() -> None:
    """End the workers of a torch loader that failed; torch itself waits five seconds for each one first.

    When a signal ends a worker, torch's handler of SIGCHLD raises wherever the main thread is, even where it
    holds a lock. So nothing handles that signal until the workers are gone.
    """
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        for worker in multiprocessing.active_children():
            if worker.daemon:  # torch's are, those of executors are not
                worker.kill()  # SIGTERM may do what Dagster has it do
                worker.join()
    finally:
        signal.signal(signal.SIGCHLD, handler)
