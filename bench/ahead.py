"""What a trainer that computes 50 ms a step waits for a server whose files are cold, reading ahead or not.

A step is 80 rows of 8 KiB of a shuffled 60/30/10 blend, 640 KiB, so that the trainer takes 13 MB/s.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from bench.harness import ROOT, Report, Row, at_most, table
from bench.stream_data import LAYOUTS, lake_of, written
from bench.stream_grpc import serving
from blender.client import AHEAD_BYTES, BlenderClient
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.proto.blender.v1 import blender_pb2_grpc as stubs
from blender.protocol.wire import from_ipc

CAVEATS = [
    "The trainer sleeps where a real one computes, so the server has the cores to itself.",
    "Files are taken out of the page cache before each run; the server is a new process, with nothing read.",
    "`no thread` reads the stream in the trainer's loop, with the protocol's generated code.",
]
ROWS, STEPS, COMPUTE_S, RUNS = 131_072, 120, 0.05, 3
MOST_WAIT_MS = 1.0
"""A fiftieth of a step's time."""


@dataclass(frozen=True)
class Waits:
    """The first wait of a reader, and the later ones, in ms; and a number that its rows decide."""

    first_ms: float
    later_ms: list[float]
    rows: int


def measure(progress: Console) -> Report:
    """Every way to read, in turn, three times."""
    home = written(ROWS, progress)
    report = Report(CAVEATS, f"{ROWS:,} rows of 2,048 int32 in {home}, {STEPS} steps from the front")
    blends = json.loads((home / "blends.json").read_text())
    made = table("Wait for a step, ms", "layout, reader", "first", "mean", "95 %", "longest")
    for layout in LAYOUTS:
        runs: dict[str, list[Waits]] = {}
        for run in range(RUNS):
            progress.print(f"reading {layout}, run {run + 1} of {RUNS}")
            for way in ("16 MiB ahead", "a block ahead", "no thread"):
                runs.setdefault(way, []).append(waits(home, layout, blends[layout], way))
        same = len({of.rows for found in runs.values() for of in found}) == 1
        report.check(f"every way gives the same rows of {layout}", same)
        for way, found in runs.items():
            mean = statistics.median(statistics.mean(one.later_ms) for one in found)
            first = statistics.median(one.first_ms for one in found)
            high = statistics.median(float(np.percentile(one.later_ms, 95)) for one in found)
            longest = statistics.median(max(one.later_ms) for one in found)
            made.add_row(f"{layout}, {way}", f"{first:.0f}", f"{mean:.2f}", f"{high:.2f}", f"{longest:.1f}")
            name = f"ahead.{layout}.{way.replace(' ', '_')}"
            if way == "16 MiB ahead":
                report.rows.append(at_most(f"{name}.mean", round(mean, 3), "ms", MOST_WAIT_MS))
            else:
                report.rows.append(Row(f"{name}.mean", round(mean, 3), "ms"))
            report.rows += [
                Row(f"{name}.first", round(first, 1), "ms"),
                Row(f"{name}.longest", round(longest, 2), "ms"),
            ]
    report.tables.append(made)
    return report


def waits(home: Path, layout: str, blend: str, way: str) -> Waits:
    """What a trainer waited for the steps of a blend, each after COMPUTE_S."""
    for path in home.glob(f"packed.*_{layout}.parquet"):
        _cool(path)
    environment = os.environ | {**lake_of(home).environment(), "PYTHONPATH": str(ROOT)}
    with (
        serving([sys.executable, "-m", "blender.serving.serve", "--port", "0"], environment) as (_, address),
        BlenderClient(address, ahead_bytes=AHEAD_BYTES if way == "16 MiB ahead" else 1) as client,
    ):
        client.describe(blend)
        reading = _streamed(client, blend) if way == "no thread" else _fetched(client, blend)
        found, rows = [], 0
        for _ in range(STEPS):
            began = time.perf_counter()
            step = next(reading)
            found.append((time.perf_counter() - began) * 1e3)
            rows += int(step.sum())
            time.sleep(COMPUTE_S)
    return Waits(found[0], found[1:], rows)


def _fetched(client: BlenderClient, blend: str) -> Iterator[np.ndarray]:
    for batch in client.fetch(blend, steps=STEPS):
        yield batch.tokens


def _streamed(client: BlenderClient, blend: str) -> Iterator[np.ndarray]:
    """The blocks of the stream, each of which is a step."""
    stub = stubs.BlendDataStub(client._connection.channel)
    for message in stub.Fetch(pb.FetchRequest(blend=blend, steps=STEPS)):
        assert message.next_offset == message.offset + 1
        tokens = from_ipc(message.payload).column("tokens")
        yield np.frombuffer(tokens.buffers()[2], "<i4")


def _cool(path: Path) -> None:
    """Take a file out of the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
