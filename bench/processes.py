"""CPU seconds and peak memory of this process, the JVM and its Python workers, span by span.

    with Meter() as meter:          # the first span is called `start`
        meter.begin("raw.web")      # from here on another span runs
        ...
    meter.spans                     # name, wall seconds, CPU by kind, peak memory by kind

CPU is read at the borders of a span, from the kernel's own counts, which are in hundredths of a second. A
worker that lived between two readings is not lost: the kernel adds a child's time to its parent's count of
children when the parent reaps it, so a reading is what every living process used plus what its reaped
children did. Spark's daemon reaps its workers and the JVM reaps the daemon; what the JVM has reaped
therefore counts as workers.

Memory is sampled in a thread, so a peak shorter than `SAMPLE_S` can be missed; the CPU that takes is left
out of every span. Pages that forked workers share are divided among them (PSS; where the system has none,
as on macOS, RSS counts them several times). The JVM shares next to nothing and is counted by RSS: to find
the PSS of its 2 GB takes the kernel 15 ms a sample, holding up its memory calls meanwhile.

Left out: processes that detach themselves, and children of a parent that ignores their end. The JVM must
live to the last border: once reaped, it would count as this process.
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
    """One quantity of the three kinds of processes: this one, the JVM, and the JVM's Python workers."""

    driver: float = 0.0
    jvm: float = 0.0
    workers: float = 0.0

    @property
    def total(self) -> float:
        """The quantity over all processes."""
        return self.driver + self.jvm + self.workers

    def __add__(self, other: ByKind) -> ByKind:
        return ByKind(*(getattr(self, it.name) + getattr(other, it.name) for it in fields(self)))

    def __sub__(self, other: ByKind) -> ByKind:
        return ByKind(*(getattr(self, it.name) - getattr(other, it.name) for it in fields(self)))


@dataclass
class Span:
    """What happened between two borders; `peak` is the sample with the most memory, in bytes."""

    name: str
    wall_s: float = 0.0
    cpu_s: ByKind = ByKind()
    peak: ByKind = ByKind()

    def add(self, other: Span) -> None:
        """Take in another span: seconds add up, of the peaks the higher one stays."""
        self.wall_s += other.wall_s
        self.cpu_s += other.cpu_s
        self.peak = max(self.peak, other.peak, key=lambda it: it.total)


class Meter:
    """Measures the process tree below this process while its block runs."""

    def __init__(self, sample_s: float = SAMPLE_S) -> None:
        self.spans: list[Span] = []
        self._sample_s = sample_s
        self.own_cpu_s = 0.0
        """CPU seconds the sampling itself took; no span holds them."""
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
                of_one = span is self.spans[-1]  # else it may be the memory of either, and is taken again
                if of_one:
                    span.add(Span("sample", peak=found))
            self.own_cpu_s = time.thread_time()
            if self._ended.wait(self._sample_s if of_one else 0):
                return


def cpu_seconds(root: psutil.Process) -> ByKind:
    """CPU seconds, user and system, that `root` and all below it have used so far."""
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
            continue  # it ended after its parent was read: its time is in neither, so read all again
        return used
    raise RuntimeError(f"No reading of the process tree without an ending process in {_TRIES} tries.")


def memory_bytes(root: psutil.Process) -> ByKind:
    """Memory that `root` and all below it hold now, shared pages divided among those who share them.

    A child that this process or the JVM is spawning lives in its parent's memory until it becomes another
    program, and has its parent's command line until then; it is not counted. (A sample that met one was
    2.4 GB too high. Spark's workers, forked by their daemon, have memory of their own.)
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
            continue  # what has ended holds no memory
    return held


def _resident(process: psutil.Process, kind: str) -> int:
    if kind == "jvm":
        return int(process.memory_info().rss)
    try:
        found = process.memory_full_info()
    except psutil.AccessDenied:  # of a process that is just becoming another program
        return int(process.memory_info().rss)
    return int(getattr(found, "pss", found.rss))


def _tree(root: psutil.Process) -> list[tuple[psutil.Process, str]]:
    """`root` and all below it with their kind, every process after its parent."""
    found, kinds = [(root, "driver")], {root.pid: "driver"}
    for process in root.children(recursive=True):
        try:
            above = kinds.get(process.ppid(), "driver")
            kind = "workers" if above != "driver" else "jvm" if process.name() == "java" else "driver"
        except psutil.NoSuchProcess:
            continue  # reaped since it was listed: its time is its parent's now
        kinds[process.pid] = kind
        found.append((process, kind))
    return found
