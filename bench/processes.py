"""CPU seconds and peak memory of this process, the JVM and its Python workers, by span.

    with Meter() as meter:          # the first span is called `start`
        meter.begin("raw.web")      # ends that span and begins another
        ...
    meter.spans                     # name, wall seconds, CPU by kind, peak memory by kind

CPU is read at the borders of a span from the kernel's counts, which are in hundredths of a second. A worker
that lived between two readings is counted: the kernel adds a child's time to its parent's count of children
when the parent reaps it, so a reading is the time of every living process plus that of its reaped children.
Spark's daemon reaps its workers, however they end (`factory/spark/daemon.py`; PySpark's own daemon does not),
and the JVM reaps the daemon, so the JVM's reaped children count as workers. No control group is needed, which
many machines let only root write.

A thread samples memory, so a peak shorter than `SAMPLE_S` can be missed; its own CPU is left out of every
span. Forked workers share pages, which are divided among them (PSS; on macOS, which has no PSS, RSS counts
them several times). The JVM shares almost nothing and is counted by RSS: the PSS of its 2 GB takes the
kernel 15 ms per sample and holds up the JVM's memory calls meanwhile.

Left out: processes that detach themselves, and children whose parent ignores their end. The JVM must live to
the last border: once reaped, it would count as this process.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, fields
from types import TracebackType

import psutil

SAMPLE_S = 0.5
_TRIES = 20  # readings of the process tree until none ends under it


@dataclass(frozen=True)
class ByKind:
    """One quantity for three kinds of processes: this one, the JVM, and the JVM's Python workers."""

    driver: float = 0.0
    jvm: float = 0.0
    workers: float = 0.0

    @property
    def total(self) -> float:
        """The quantity over all processes."""
        return self.driver + self.jvm + self.workers

    def __add__(self, other: ByKind) -> ByKind:
        return ByKind(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def __sub__(self, other: ByKind) -> ByKind:
        return ByKind(*(getattr(self, field.name) - getattr(other, field.name) for field in fields(self)))


@dataclass
class Span:
    """The time between two borders; `peak` is the sample with the most memory, in bytes."""

    name: str
    wall_s: float = 0.0
    cpu_s: ByKind = ByKind()
    peak: ByKind = ByKind()

    @property
    def seconds(self) -> tuple[float, ...]:
        """Wall seconds, and CPU seconds in all and by kind."""
        cpu = self.cpu_s
        return self.wall_s, cpu.total, cpu.driver, cpu.jvm, cpu.workers

    def add(self, other: Span) -> None:
        """Add another span's seconds; keep the higher peak."""
        self.wall_s += other.wall_s
        self.cpu_s += other.cpu_s
        self.peak = max(self.peak, other.peak, key=lambda it: it.total)


class Meter:
    """Measures the process tree below this process while its block runs."""

    def __init__(self, sample_s: float = SAMPLE_S) -> None:
        self.spans: list[Span] = []
        self._sample_s = sample_s
        self.own_cpu_s = 0.0
        """CPU seconds of the sampling itself, which no span includes."""
        self._root = psutil.Process()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._sample, name="memory-sampler", daemon=True)

    def __enter__(self) -> Meter:
        self._wall_s, self._cpu_s = time.monotonic(), self._read()
        self.spans.append(Span("start"))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self._ended.set()
        self._thread.join()

    def begin(self, name: str) -> None:
        """End the running span and begin the one called `name`."""
        self._close()
        with self._lock:
            self.spans.append(Span(name))

    def _close(self) -> None:
        wall_s, cpu_s = time.monotonic(), self._read()
        self.spans[-1].wall_s = wall_s - self._wall_s
        self.spans[-1].cpu_s = cpu_s - self._cpu_s
        self._wall_s, self._cpu_s = wall_s, cpu_s

    def _read(self) -> ByKind:
        return cpu_seconds(self._root) - ByKind(driver=self.own_cpu_s)

    def _sample(self) -> None:
        while True:
            span = self.spans[-1]
            found = memory_bytes(self._root)
            with self._lock:
                of_one = span is self.spans[-1]  # else either span may own the sample, so it is taken again
                if of_one:
                    span.add(Span("sample", peak=found))
            self.own_cpu_s = time.thread_time()
            if self._ended.wait(self._sample_s if of_one else 0):
                return


def cpu_seconds(root: psutil.Process) -> ByKind:
    """CPU seconds, user and system, that `root` and its descendants have used so far."""
    for _ in range(_TRIES):
        used = ByKind()
        try:
            for process, kind in _tree(root):
                times = process.cpu_times()
                own, reaped = times.user + times.system, times.children_user + times.children_system
                if kind == "jvm":
                    used += ByKind(jvm=own, workers=reaped)
                else:
                    used += ByKind(**{kind: own + reaped})
        except psutil.NoSuchProcess:
            continue  # it ended after its parent was read, so its time is in neither: read all again
        return used
    raise RuntimeError(f"No reading of the process tree without an ending process in {_TRIES} tries.")


def memory_bytes(root: psutil.Process) -> ByKind:
    """Memory that `root` and its descendants hold now, shared pages divided among the sharers.

    A child that this process or the JVM is spawning has its parent's memory and command line until it runs
    its own program, so it is not counted. (A sample that caught one was 2.4 GB too high. Spark's workers,
    forked by their daemon, have memory of their own.)
    """
    held = ByKind(driver=_resident(root, "driver"))
    spawning = [root.cmdline()]
    for process, kind in _tree(root)[1:]:
        try:
            command = process.cmdline()
            if command in spawning:
                continue
            if kind == "jvm":
                spawning.append(command)
            held += ByKind(**{kind: _resident(process, kind)})
        except psutil.NoSuchProcess:
            continue  # an ended process holds no memory
    return held


def _resident(process: psutil.Process, kind: str) -> int:
    if kind == "jvm":
        return int(process.memory_info().rss)
    try:
        found = process.memory_full_info()
    except psutil.AccessDenied:  # the process is about to run another program
        return int(process.memory_info().rss)
    return int(getattr(found, "pss", found.rss))


def _tree(root: psutil.Process) -> list[tuple[psutil.Process, str]]:
    """`root` and its descendants with their kind, every process after its parent."""
    found, kinds = [(root, "driver")], {root.pid: "driver"}
    for process in root.children(recursive=True):
        try:
            above = kinds.get(process.ppid(), "driver")
            kind = "workers" if above != "driver" else "jvm" if process.name() == "java" else "driver"
        except psutil.NoSuchProcess:
            continue  # reaped since it was listed: its parent holds its time now
        kinds[process.pid] = kind
        found.append((process, kind))
    return found
