"""CPU seconds of a test process and of everything that it started, orphans included.

A process that ended adds its seconds to the parent that waits for it. A JVM outlives the Python that started
it, so nobody waits for it. The clock recognizes such orphans by the mark that all processes of a test process
inherit (`tests.reaper`), and reads their seconds a few times a second while they end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import reaper

PERIOD_S = 0.3
_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    started: int  # in ticks since the machine's start; with the number it names a process
    cpu_s: float  # of itself, and of the children that it waited for

    @classmethod
    def read(cls, pid: int) -> _Process | None:
        """The process with this number, None if there is none any more."""
        try:
            fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        return cls(pid, int(fields[1]), int(fields[19]), sum(map(int, fields[11:15])) / _TICKS)


class CpuClock:
    """The CPU seconds of this process and its descendants since its start."""

    def __init__(self) -> None:
        self._mark = f"{reaper.MARK}={os.environ.get(reaper.MARK)}".encode()
        self._marked: dict[tuple[int, int], bool] = {}
        self._orphans: dict[tuple[int, int], float] = {}
        self._lock = threading.Lock()

    def read(self) -> float:
        """Read the clock."""
        with self._lock:
            pids = [int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdigit()]
            processes = {process.pid: process for pid in pids if (process := _Process.read(pid))}
            families = {pid: self._family(process, processes) for pid, process in processes.items()}
            of_family = 0.0
            for pid, process in processes.items():
                if families[pid] and (families.get(process.parent) or pid == os.getpid()):
                    of_family += process.cpu_s
                elif families[pid]:  # kept once it ends
                    self._orphans[pid, process.started] = process.cpu_s
            return of_family + sum(self._orphans.values())

    @contextmanager
    def running(self) -> Iterator[None]:
        """Read the clock now and then, so that no orphan ends unseen."""
        ending = threading.Event()

        def watch() -> None:
            while not ending.wait(PERIOD_S):
                self.read()

        thread = threading.Thread(target=watch, name="cpu-clock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def _family(self, process: _Process, processes: Mapping[int, _Process]) -> bool:
        """Whether this process is the test process, or something that it started."""
        ancestors = [process]
        while (parent := processes.get(ancestors[-1].parent)) is not None:
            ancestors.append(parent)
        # Descent comes first: between fork and exec a child still has the environment of the test process.
        return any(ancestor.pid == os.getpid() for ancestor in ancestors) or any(
            map(self._is_marked, ancestors)
        )

    def _is_marked(self, process: _Process) -> bool:
        key = process.pid, process.started
        if key not in self._marked:
            try:
                environment = (_PROC / str(process.pid) / "environ").read_bytes()
            except OSError:  # of another user, or ended
                environment = b""
            self._marked[key] = self._mark in environment.split(b"\0")
        return self._marked[key]
