"""What a Blender has done and is doing, for Prometheus, on a port of its own.

    numbers(calls)          every number of this process
    Reporter(file, calls)   writes them into a file each second, for a Blender of several processes
    reported(folder, alive) their sum over such files, those of processes that ended included
    serve_numbers(...)      answers scrapes with what one of the two gives

Answering a call only adds to plain sums (`blender.rows.counts`); Prometheus is looked after by other threads.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from blender.rows.counts import BYTES, COUNTS, PAGES, READS, WAIT_S
from blender.serving.calls import CallLimiter
from blender.serving.rooms import WAITS_ENDED
from blender.serving.scrapes import ScrapeServer
from blender.serving.service import ENDED, SENT
from factory.atomic_file import write_atomically
from factory.errors import MachineError

REPORT_EVERY_S = 1.0


@dataclass(frozen=True)
class Family:
    """A metric: a counter, whose name Prometheus ends in `_total`, or a gauge."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    gauge: bool = False


FAMILIES = (
    Family("blender_calls", "Calls ended, by method and gRPC status.", ("method", "status")),
    Family("blender_waits_ended", "Calls ended because their client kept them waiting.", ("method",)),
    Family("blender_blocks", "Messages of rows sent."),
    Family("blender_rows", "Rows sent."),
    Family("blender_bytes", "Bytes of rows sent."),
    Family("blender_reads", "Ranges of bytes read from data files.", ("table",)),
    Family("blender_pages", "Parquet pages decoded.", ("table",)),
    Family("blender_read_bytes", "Bytes read from data files.", ("table",)),
    Family("blender_wait_seconds", "Time in which fetches waited for rows.", ("table",)),
    Family("blender_open_calls", "Calls under way, streams included.", gauge=True),
    Family("blender_call_slots", "Calls there is room for at once.", gauge=True),
    Family("blender_processes", "Processes that answer.", gauge=True),
)
_OF_READING = {
    READS: "blender_reads",
    PAGES: "blender_pages",
    BYTES: "blender_read_bytes",
    WAIT_S: "blender_wait_seconds",
}
_GAUGES = {family.name for family in FAMILIES if family.gauge}

Numbers = dict[tuple[str, tuple[str, ...]], float]


def numbers(calls: CallLimiter) -> Numbers:
    """Every number of this process, by metric and values of its labels."""
    found: Numbers = {
        ("blender_open_calls", ()): len(calls),
        ("blender_call_slots", ()): calls.limits.calls,
        ("blender_processes", ()): 1,
    }
    found |= {("blender_calls", key): value for key, value in ENDED.sums().items()}
    found |= {("blender_waits_ended", (method,)): value for (_, method), value in WAITS_ENDED.sums().items()}
    found |= {(f"blender_{what}", ()): value for (what, _), value in SENT.sums().items()}
    found |= {(_OF_READING[name], (table,)): value for (name, table), value in COUNTS.sums().items()}
    return found


def reported(folder: Path, alive: Callable[[], Collection[int]]) -> Numbers:
    """The sum of what processes have reported in `folder`; of gauges, only over those that are `alive`."""
    running = alive()
    total: Numbers = {}
    for file in folder.glob("*.numbers"):
        for name, labels, value in json.loads(file.read_text()):
            if name not in _GAUGES or int(file.stem) in running:
                key = (name, tuple(labels))
                total[key] = total.get(key, 0.0) + value
    return total


class Reporter:
    """Keeps the numbers of this process in a file, from the start of a thread to `close`."""

    def __init__(self, file: Path, calls: CallLimiter) -> None:
        self._file, self._calls = file, calls
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="numbers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the numbers a last time."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            closing = self._closed.wait(REPORT_EVERY_S)
            found = [[name, labels, value] for (name, labels), value in numbers(self._calls).items()]
            write_atomically(self._file, json.dumps(found))
            if closing:
                return


class _Scraped(Collector):
    def __init__(self, read: Callable[[], Numbers]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        found = self._read()
        for family in FAMILIES:
            kind = GaugeMetricFamily if family.gauge else CounterMetricFamily
            metric = kind(family.name, family.help, labels=family.labels)
            for labels, value in _of(family.name, found):
                metric.add_metric(labels, value)
            yield metric

    def describe(self) -> Iterable[Metric]:
        return ()  # else the registry collects once to learn the names


def _of(family: str, found: Numbers) -> list[tuple[tuple[str, ...], float]]:
    return sorted((labels, value) for (name, labels), value in found.items() if name == family)


def serve_numbers(host: str, port: int, read: Callable[[], Numbers]) -> ScrapeServer:
    """Answer scrapes of `http://host:port/metrics` in a thread, until `shutdown` of what is returned.

    Raises MachineError for a port that cannot be bound.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Scraped(read))
    try:
        server = ScrapeServer(host, port, make_wsgi_app(registry))
    except OSError as error:
        raise MachineError(
            f"Port {port} of {host} cannot be bound for metrics ({(error.strerror or str(error)).lower()}). "
            "Stop the process that has it, or choose another --metrics-port or --metrics-host."
        ) from error
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
