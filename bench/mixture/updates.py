"""The cost of ten thousand consecutive updates of a blend: the last thousand against the first.

A client and a Blender in this process talk over gRPC. Each update changes the weights of the one before,
STEPS steps later, as mixing by loss does. The lake's own store gets a config, its pins and a hold for each
update, and a history block for every 128th. Then a fresh Blender opens the last blend.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.first_batch.data import write
from bench.harness import Report, Row, at_most, table
from bench.lakes import own_lake
from blender.catalog.blends import open_blends
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.spec.mixture import Mixture
from blender.trainer.client import BlenderClient

UPDATES, TOLD, PART, STEPS = 10_000, 1_000, 100, 100
"""Updates in all, at each end, per timed part; and steps between two updates."""
SOURCES, ROWS = 3, 4_096
MOST_GROWTH = 1.5


@dataclass(frozen=True)
class Updating:
    """ms per update, part by part, and ms to open the last blend afresh."""

    wall_ms: list[float]
    cpu_ms: list[float]
    open_ms: float


def measure(report: Report) -> None:
    """Add the table and the rows of updates to the report."""
    with tempfile.TemporaryDirectory(prefix="bench-mixture-") as folder:
        found = updated(report, Path(folder), UPDATES, PART)
    shown = table(f"{UPDATES:,} consecutive updates, ms each", "updates | wall | CPU | CPU, best 100")
    n, best = TOLD // PART, []
    for name, of in (("first", slice(None, n)), ("last", slice(-n, None))):
        wall, cpu = statistics.mean(found.wall_ms[of]), statistics.mean(found.cpu_ms[of])
        best.append(min(found.cpu_ms[of]))
        shown.add_row(f"the {name} {TOLD:,}", f"{wall:.2f}", f"{cpu:.2f}", f"{best[-1]:.2f}")
        report.rows += [
            Row(f"mixture.updates.{name}.wall", round(wall, 3), "ms"),
            Row(f"mixture.updates.{name}.cpu", round(cpu, 3), "ms"),
            Row(f"mixture.updates.{name}.cpu_best", round(best[-1], 3), "ms"),
        ]
    report.tables.append(shown)
    report.rows += [
        at_most("mixture.updates.last_by_first", round(best[1] / best[0], 3), "ratio", MOST_GROWTH),
        Row("mixture.updates.cpu", round(sum(found.cpu_ms) * PART / 1e3, 2), "s"),
        Row("mixture.updates.open", round(found.open_ms, 1), "ms"),
    ]


def updated(report: Report, home: Path, updates: int, part: int) -> Updating:
    """Update a blend of a new lake; check that the last update holds every change."""
    write(home, ROWS, SOURCES, files=SOURCES)
    blends = open_blends(own_lake(home / "lake"))
    blend = (home / "blend").read_text()
    names = [source.name for source in blends.get(blend).config.sources]
    wall_ms, cpu_ms = [], []
    with BlenderServer(blend_services(blends)) as server, BlenderClient(server.address) as client:
        for first in range(1, updates + 1, part):
            wall, cpu = time.perf_counter(), time.process_time()
            for number in range(first, first + part):
                weights = dict(zip(names, _weights(number), strict=True))
                blend = client.update(blend, number * STEPS, weights).id
            wall_ms.append((time.perf_counter() - wall) / part * 1e3)
            cpu_ms.append((time.process_time() - cpu) / part * 1e3)
    fresh = open_blends(own_lake(home / "lake"))
    began = time.perf_counter()
    mixture = fresh.open(blend).order.mixture
    open_ms = (time.perf_counter() - began) * 1e3
    check(report, mixture, updates)
    return Updating(wall_ms, cpu_ms, open_ms)


def check(report: Report, mixture: Mixture, updates: int) -> None:
    """Check that the last blend holds every change. Raises WrongAnswer."""
    planned = [(number * STEPS, _weights(number)) for number in range(1, updates + 1)]
    kept = [(start, piece.weights) for start, piece in mixture.pieces(1)]
    report.check(f"the last of {updates:,} updates holds every change", kept == planned)
    numbers = np.linspace(1, updates, 50).astype(np.int64).tolist()
    steps = [number * STEPS + STEPS // 2 for number in numbers]
    firsts = [mixture.first_row(it) for step in steps for it in (step, step + 1)]
    counts = mixture.counts(np.array(firsts))
    due = np.array([_weights(number) for number in numbers])
    report.check(
        "a step has the rows of the update before it", bool((counts[1::2] - counts[::2] == due).all())
    )


def _weights(number: int) -> tuple[int, ...]:
    """Rows per step from an update on; consecutive updates differ."""
    return tuple(1 + (number * (source + 1)) % 97 for source in range(SOURCES))
