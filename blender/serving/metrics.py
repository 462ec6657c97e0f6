"""Counters and gauges of a Blender for Prometheus, on a port of their own.

    samples(calls)                every number of this process
    SampleFile(file, calls)       writes them to a file each second, for a Blender of several processes
    summed_samples(folder, alive) their sum over such files, including those of processes that ended
    serve_metrics(...)            answers scrapes with the result of one of the two

Calls only add to plain sums (`blender.rows.counts`), which costs .4 us; a counter of `prometheus_client`'s
multiprocess mode costs 2 to 3 us, and a block adds four for each of its sources. That mode also admits no
collector of existing sums, and every reader would import the library. Other threads therefore serve the sums.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from blender.rows.counts import COUNTS
from blender.serving.calls import CallLimiter
from blender.serving.scrapes import ScrapeServer
from blender.serving.service import ENDED, SENT
from blender.serving.waiting_room import WAITS_ENDED
from factory.atomic_file import write_atomically
from factory.errors import MachineError

REPORT_EVERY_S = 1.0


@dataclass(frozen=True)
class MetricFamily:
    """A metric: a counter, to whose name Prometheus adds `_total`, or a gauge."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    gauge: bool = False


FAMILIES = (
    MetricFamily("blender_calls", "Calls ended, by method and gRPC status.", ("method", "status")),
    MetricFamily("blender_waits_ended", "Calls cancelled while they waited on their client.", ("method",)),
    MetricFamily("blender_blocks", "Messages of rows sent."),
    MetricFamily("blender_rows", "Rows sent."),
    MetricFamily("blender_bytes", "Bytes of rows sent."),
    MetricFamily("blender_reads", "Ranges of bytes read from data files.", ("table",)),
    MetricFamily("blender_pages", "Parquet pages decoded.", ("table",)),
    MetricFamily("blender_read_bytes", "Bytes read from data files.", ("table",)),
    MetricFamily("blender_read_rows", "Rows taken from pages.", ("table",)),
    MetricFamily("blender_wait_seconds", "Time that fetches waited for rows.", ("table",)),
    MetricFamily("blender_open_calls", "Calls under way, including streams.", gauge=True),
    MetricFamily("blender_call_slots", "Calls that may be under way at once.", gauge=True),
    MetricFamily("blender_processes", "Processes that answer calls.", gauge=True),
)
_GAUGES = {family.name for family in FAMILIES if family.gauge}

Samples = dict[tuple[str, tuple[str, ...]], float]


def samples(calls: CallLimiter) -> Samples:
    """Every sample of this process, by metric and label values."""
    found: Samples = {
        ("blender_open_calls", ()): len(calls),
        ("blender_call_slots", ()): calls.limits.calls,
        ("blender_processes", ()): 1,
    }
    found |= {("blender_calls", key): value for key, value in ENDED.sums().items()}
    found |= {("blender_waits_ended", (method,)): value for (_, method), value in WAITS_ENDED.sums().items()}
    for (what, _), value in SENT.sums().items():
        found[f"blender_{what}", ()] = found.get((f"blender_{what}", ()), 0) + value
    found |= {(f"blender_{name}", (table,)): value for (name, table), value in COUNTS.sums().items()}
    return found


def summed_samples(folder: Path, alive: Callable[[], Collection[int]]) -> Samples:
    """The sum of the sample files in `folder`; for gauges, only those of processes that are `alive`."""
    running = alive()
    total: Samples = {}
    for file in folder.glob("*.samples"):
        for name, labels, value in json.loads(file.read_text()):
            if name not in _GAUGES or int(file.stem) in running:
                key = (name, tuple(labels))
                total[key] = total.get(key, 0.0) + value
    return total


class SampleFile:
    """Writes the samples of this process to a file, from a thread, until `close`."""

    def __init__(self, file: Path, calls: CallLimiter) -> None:
        self._file, self._calls = file, calls
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="blender-samples", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the samples a last time."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            closing = self._closed.wait(REPORT_EVERY_S)
            found = [[name, labels, value] for (name, labels), value in samples(self._calls).items()]
            write_atomically(self._file, json.dumps(found))
            if closing:
                return


class _Scraped(Collector):
    def __init__(self, families: Sequence[MetricFamily], read: Callable[[], Samples]) -> None:
        self._families, self._read = families, read

    def collect(self) -> Iterator[Metric]:
        found = self._read()
        for family in self._families:
            kind = GaugeMetricFamily if family.gauge else CounterMetricFamily
            metric = kind(family.name, family.help, labels=family.labels)
            for labels, value in _of(family.name, found):
                metric.add_metric(labels, value)
            yield metric

    def describe(self) -> Iterable[Metric]:
        return ()  # otherwise the registry would collect once to learn the names


def _of(family: str, found: Samples) -> list[tuple[tuple[str, ...], float]]:
    return sorted((labels, value) for (name, labels), value in found.items() if name == family)


def serve_metrics(
    host: str, port: int, read: Callable[[], Samples], families: Sequence[MetricFamily] = FAMILIES
) -> ScrapeServer:
    """Answer scrapes of `http://host:port/metrics` in a thread, until the server's `shutdown`.

    Raises MachineError if the port cannot be bound.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Scraped(families, read))
    try:
        server = ScrapeServer(host, port, make_wsgi_app(registry))
    except OSError as error:
        raise MachineError(
            f"Port {port} of {host} cannot be bound for metrics ({(error.strerror or str(error)).lower()}). "
            "Stop the process that holds it, or choose another --metrics-port or --metrics-host."
        ) from error
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
