"""Counters and gauges of a Blender for Prometheus, on a port of their own.

    samples(calls)                every number of this process
    SampleFile(file, calls)       writes them to a file each second, for a Blender of several processes
    summed_samples(folder, alive) their sum over such files, also of processes that ended
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
from itertools import accumulate
from pathlib import Path

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from blender.rows.counts import COUNTS
from blender.serving.calls import CallLimiter
from blender.serving.latency import ANSWERS, BOUNDS_S, SUM
from blender.serving.scrapes import ScrapeServer
from blender.serving.service import ENDED, SENT
from blender.serving.waiting_room import WAITS_ENDED
from factory.atomic_file import write_atomically
from factory.errors import MachineError

REPORT_EVERY_S = 1.0

Samples = dict[tuple[str, tuple[str, ...]], float]
"""Values by the name of the metric and the values of its labels."""


@dataclass(frozen=True)
class MetricFamily:
    """A metric: a counter (Prometheus adds `_total` to its name) or a gauge."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    gauge: bool = False

    def metric(self, by_labels: Samples) -> Metric:
        """The metric with its samples."""
        kind = GaugeMetricFamily if self.gauge else CounterMetricFamily
        metric = kind(self.name, self.help, labels=self.labels)
        for labels, number in sorted(
            (key[1], each) for key, each in by_labels.items() if key[0] == self.name
        ):
            metric.add_metric(labels, number)
        return metric


@dataclass(frozen=True)
class Histogram:
    """A histogram over `bounds`; its samples have one label more, the number of the bucket or `SUM`."""

    name: str
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]

    def metric(self, by_labels: Samples) -> Metric:
        """The metric with its buckets, each with the samples of those before it, as Prometheus has them."""
        metric = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        uppers = [*map(floatToGoString, self.bounds), "+Inf"]
        for labels in sorted({key[1][:-1] for key in by_labels if key[0] == self.name}):
            counts = [
                by_labels.get((self.name, (*labels, str(bucket))), 0.0) for bucket in range(len(uppers))
            ]
            buckets = list(zip(uppers, accumulate(counts), strict=True))
            metric.add_metric(labels, buckets, by_labels.get((self.name, (*labels, SUM)), 0.0))
        return metric


FAMILIES: tuple[MetricFamily | Histogram, ...] = (
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
    Histogram(
        "blender_answer_seconds",
        "How long clients waited for an answer, or for the next message of a stream.",
        ("method",),
        BOUNDS_S,
    ),
    MetricFamily("blender_open_calls", "Calls under way, including streams.", gauge=True),
    MetricFamily("blender_call_slots", "Calls that may be under way at once.", gauge=True),
    MetricFamily("blender_processes", "Processes that answer calls.", gauge=True),
)
_GAUGES = {family.name for family in FAMILIES if isinstance(family, MetricFamily) and family.gauge}


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
    for (bucket, method), number in ANSWERS.sums().items():
        found["blender_answer_seconds", (method, bucket)] = number
    found |= {(f"blender_{name}", (table,)): value for (name, table), value in COUNTS.sums().items()}
    return found


def summed_samples(folder: Path, alive: Callable[[], Collection[int]]) -> Samples:
    """The sum of the sample files in `folder`; for gauges, only of processes that are `alive`."""
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
    def __init__(self, families: Sequence[MetricFamily | Histogram], read: Callable[[], Samples]) -> None:
        self._families, self._read = families, read

    def collect(self) -> Iterator[Metric]:
        found = self._read()
        yield from (family.metric(found) for family in self._families)

    def describe(self) -> Iterable[Metric]:
        return ()  # otherwise the registry would collect once to learn the names


def serve_metrics(
    host: str,
    port: int,
    read: Callable[[], Samples],
    families: Sequence[MetricFamily | Histogram] = FAMILIES,
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
