"""Worker processes of this machine: started, restarted where they are killed, and ended with their run.

Their number is between `least` and `most` and follows the length of the queue: one process for every few
slices that nobody has. A process that was killed is replaced, and its slices are free at once, because its
parent knows that it has ended. One that is at an item for longer than its job allows is killed. One that ends
with an error ends the run with the same error. While a more pressing run has the machine, the processes stand
still, in the middle of an item too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from factory.errors import ConfigurationError, FactoryError, MachineError, error_from_text
from factory.lake.claims import CoresClaim
from factory.settings import Settings
from factory.synthesis.item_clock import ItemClock
from factory.synthesis.queue import Queue, Status
from factory.synthesis.suspension import Suspension
from factory.synthesis.worker import LEASED, TERM_S, new_name

_SLICES_A_WORKER = 4  # that are free, for each process beyond `least`
_LOOK_S = 0.2  # between two looks at the processes
_GRACE_S = 30.0  # for the items in progress when a run ends early
_IDLE_DEATHS = 3  # in a row, of processes that had not taken a slice yet


@dataclass
class _Process:
    """A worker process, and the read end of its report."""

    name: str
    popen: subprocess.Popen[bytes]
    report: int
    report_bytes: bytes = b""
    clock: ItemClock = field(default_factory=ItemClock)
    surplus: bool = False

    def read(self) -> bytes:
        """Return all that the process has reported."""
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self.report, 4096):
                self.report_bytes += part
        return self.report_bytes

    def kill(self) -> None:
        """Kill the process with all that its item has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the files that the process was given."""
        os.close(self.report)
        self.clock.close()


@dataclass
class ReplicaPool:
    """The processes that work on one queue for one run.

    Files of kinds are relative to `folder`. Raises ConfigurationError for less than one process.
    """

    settings: Settings
    queue: Queue
    least: int = 1
    most: int | None = None
    folder: Path = field(default_factory=Path)
    term_s: float = TERM_S
    _processes: list[_Process] = field(default_factory=list)
    _idle_deaths: int = 0

    def __post_init__(self) -> None:
        self._suspension = Suspension(self.queue.job.priority, self.term_s, self.queue.beat)
        most = self.least if self.most is None else self.most
        if not 1 <= self.least <= most:
            raise ConfigurationError(
                f"There are {self.least} to {most} replicas to start. Ask for at least one, and for "
                "no more at least than at most."
            )

    @property
    def running(self) -> int:
        """The processes that are there."""
        return len(self._processes)

    @property
    def holder(self) -> CoresClaim | None:
        """The claim of a more pressing run that the processes give way to."""
        return self._suspension.holder

    def run(self, on_progress: Callable[[Status], None] = lambda _: None, *, every_s: float = 1.0) -> None:
        """Work until every slice has a result; `on_progress` is called every few seconds, and at the end.

        Raises the error of a worker, MachineError if workers die before they begin, and what `on_progress`
        raises. No process is left in any case.
        """
        try:
            while True:
                status = self.queue.status()
                on_progress(status)
                if status.done == status.slices:
                    return
                self._look_for_claims()
                if self._suspension.holder is None:
                    self._start_missing(status)
                self._watch_for(every_s)
        finally:
            self.end()

    def end(self) -> None:
        """Let the processes finish their items; kill stopped ones, and after half a minute the rest."""
        for process in self._processes:
            if self._suspension.holder is None:
                process.popen.send_signal(signal.SIGTERM)
            else:
                process.kill()
        deadline = time.monotonic() + _GRACE_S
        for process in self._processes:
            try:
                process.popen.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
            if process.popen.wait():
                self.queue.bury(process.name)
            process.close()
        self._processes.clear()

    def _start_missing(self, status: Status) -> None:
        most = self.least if self.most is None else self.most
        target = min(most, max(self.least, status.free // _SLICES_A_WORKER))
        while self.running < target:
            self._start(surplus=self.running >= self.least)

    def _start(self, *, surplus: bool) -> None:
        name, clock = new_name(), ItemClock()
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        command = [sys.executable, "-m", "factory.synthesis", self.queue.job.dataset, self.queue.job.id]
        command += ["--folder", str(self.folder.resolve()), "--name", name, "--term", str(self.term_s)]
        command += ["--parent", str(os.getpid()), "--report", str(writer)]
        command += ["--items", str(clock.file.fileno())]
        popen = subprocess.Popen(
            [*command, *(["--leave-idle"] if surplus else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a kind may print without end
            stderr=subprocess.DEVNULL,
            pass_fds=[writer, clock.file.fileno()],
            process_group=0,  # stopped with all that its items start
            env=os.environ | self.settings.environment(),
        )
        os.close(writer)
        self._processes.append(_Process(name, popen, reader, clock=clock, surplus=surplus))

    def _watch_for(self, seconds: float) -> None:
        """Look after the processes until some seconds are over or one has ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._look_for_claims()
            self._look_at_items()
            dead = [process for process in self._processes if process.popen.poll() is not None]
            for process in dead:
                self._processes.remove(process)
                self._account(process)
            if dead:
                return
            time.sleep(_LOOK_S)

    def _look_for_claims(self) -> None:
        self._suspension.look([(process.name, process.popen.pid) for process in self._processes])

    def _look_at_items(self) -> None:
        for process in self._processes:
            is_stopped = self._suspension.holder is not None
            if process.clock.look(is_stopped=is_stopped) >= self.queue.job.item_seconds:
                process.kill()

    def _account(self, process: _Process) -> None:
        """Raise the error of a process that ended with one; make the slices of a killed one free."""
        report_bytes, code = process.read(), process.popen.returncode
        process.close()
        error_text = report_bytes.removeprefix(LEASED.encode()).decode(errors="replace")
        if code and error_text:
            raise error_from_text(error_text) or _unexpected(error_text)
        if code:
            self.queue.bury(process.name)
        if not code or report_bytes.startswith(LEASED.encode()):
            self._idle_deaths = 0
            return
        self._idle_deaths += 1
        if self._idle_deaths >= _IDLE_DEATHS:
            raise MachineError(
                f"{_IDLE_DEATHS} workers in a row ended before they began, the last with {_ending(code)}. "
                "See that the machine has memory for them; `factory work` with one replica may tell more."
            )


def _ending(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _unexpected(text: str) -> FactoryError:
    return MachineError(f"A worker ended with an error of its own program. {text}")


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def require_cores(replicas: int) -> None:
    """Raise ConfigurationError for more local processes than the machine has cores."""
    cores = usable_cores()
    if replicas > cores:
        raise ConfigurationError(
            f"{replicas:,} replicas are more than the {cores} cores of this machine. Ask for at most "
            f"{cores}, and start further ones on other machines: factory work."
        )
