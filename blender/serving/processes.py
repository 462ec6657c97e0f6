"""A Blender of several processes on one port: starts, watches, replaces and ends them.

    parent   holds the port, prints the address, answers scrapes; takes no calls
    child    a whole Blender that shares the port (SO_REUSEPORT): the kernel deals connections to the children

One Python process answers calls with one core. Children share nothing: every answer is a function of the
request, and a blend that one has stored the others read from the lake. The first child starts alone, so that
a fault is reported once. A child that dies is replaced, because only its own readers notice, and they come
back; several deaths within a short time are the sign of a lasting fault, and end all.

A child ends when its standard input closes, so none outlives its parent.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from blender.serving.shutdown import ShutdownSignal
from factory.errors import MachineError

log = logging.getLogger("blender")

MOST_DEATHS, WITHIN_S = 5, 60.0
_LOOK_EVERY_S = 0.1
_AFTER_GRACE_S = 10.0  # to finish after the calls have ended


def end_in_order(blenders: Sequence[subprocess.Popen[bytes]], grace_s: float) -> None:
    """Let the calls of Blenders end within `grace_s`, then their processes; kill the remaining ones."""
    for blender in blenders:
        blender.terminate()
    end = time.monotonic() + grace_s + _AFTER_GRACE_S
    for blender in blenders:
        try:
            blender.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            log.warning("killing process %d, which does not end", blender.pid)
            blender.kill()
            blender.wait()


class Processes:
    """The children of a Blender; for one thread, except `alive`."""

    def __init__(self, command: Sequence[str], n: int, folder: Path) -> None:
        """`command` starts a child, which writes `<pid>.address` into `folder` once it answers."""
        self._command, self._n, self._folder = list(command), n, folder
        self._children: list[subprocess.Popen[bytes]] = []
        self._deaths: deque[float] = deque(maxlen=MOST_DEATHS)

    def alive(self) -> set[int]:
        """Process ids of the running children."""
        return {child.pid for child in list(self._children) if child.returncode is None}

    def start(self, shutdown: ShutdownSignal) -> int | None:
        """Start all children and wait until they answer; return the exit code of one that ended instead."""
        for _ in range(self._n):
            child = self._spawn()
            while not (self._folder / f"{child.pid}.address").exists() and not shutdown.is_set():
                code = child.poll()
                if code is not None:
                    return code if code > 0 else MachineError.exit_code
                shutdown.wait(_LOOK_EVERY_S)
        return None

    def watch(self, shutdown: ShutdownSignal) -> None:
        """Replace children that die, until `shutdown`; raises MachineError if too many do."""
        while not shutdown.wait(_LOOK_EVERY_S):
            for child in list(self._children):
                code = child.poll()
                if code is not None:
                    self._children.remove(child)
                    self._replace(child.pid, code)

    def stop(self, grace_s: float) -> None:
        """Let the calls of every child end within `grace_s`, then the children."""
        end_in_order(self._children, grace_s)
        self.kill()

    def kill(self) -> None:
        """Kill every child."""
        for child in self._children:
            child.kill()
        for child in self._children:
            child.wait()
            assert child.stdin is not None
            child.stdin.close()

    def _replace(self, pid: int, code: int) -> None:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        self._deaths.append(time.monotonic())
        if len(self._deaths) == MOST_DEATHS and self._deaths[-1] - self._deaths[0] < WITHIN_S:
            raise MachineError(
                f"{MOST_DEATHS} processes of this Blender died within {WITHIN_S:g} s, the last, {pid}, with "
                f"{how}. Look at their output above, or give them more memory; then start it again."
            )
        log.warning("process %d ended with %s; starting another", pid, how)
        self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C in a terminal reaches the parent, which ends the children in order.
        child = subprocess.Popen(
            [sys.executable, "-m", *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._children.append(child)
        return child
