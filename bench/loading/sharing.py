"""What one copy for the ranks that share it saves: eight ranks of a bucket behind a constructor, and alone.

Eight processes that train on the same rows, because they divide the model or the context, read steps of 64
rows. Through a constructor, each row is read and each message made once. Without one, each rank fetches the
rows from Blender by itself, and throws away what it does not need.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.harness import Report, Row, at_most, table
from bench.lakes import own_lake
from bench.loading import text
from bench.loading.processes import Server, ranks, served, unique_mib
from bench.loading.tables import LENGTH
from blender.arrays import as_numpy, binary_integers
from blender.catalog.blends import open_blends
from blender.chunks import Chunk, is_cut

RANKS = 8
STEP_ROWS = 64  # 1 MiB
STEP_S = 0.02
WINDOW_STEPS = 128
WARM, STEPS, CHECKED = 32, 2 * WINDOW_STEPS, 4
SOURCE_ROWS = 3 * WINDOW_STEPS * STEP_ROWS
ROUNDS = 3
MOST_CPU, MOST_WAIT_MS = 0.25, 2.0
Figures = Mapping[str, float]
DATA = f"`sharing`: {SOURCE_ROWS:,} rows of {LENGTH:,} drawn tokens of 2 bytes, pages of 8 rows in zstd"
CAVEATS = (
    f"`sharing`: {RANKS} ranks and their server on this machine, files in the page cache, trainers that "
    f"sleep {1e3 * STEP_S:.0f} ms a step; defaults of servers and clients. Medians of {ROUNDS} runs, each of "
    "two windows of the shuffle, as many pages as rows of them fill.",
    "`sharing`: MiB of processes are their unique set size with all streams open. Of the server's CPU, gRPC "
    "takes 4.6 ms for eight constant messages of 1 MiB, and decoding the rows 4 ms, on two shared cores.",
)
COLUMNS = (
    "ranks | rows read | pages | MiB read | sent | server MiB | ranks MiB | server CPU ms | rank CPU ms | "
    "wait p50 ms | p99"
)


@dataclass(frozen=True)
class Way:
    """How eight ranks get their rows; without a mesh, each from Blender by itself."""

    name: str
    mesh: str = ""
    broadcast: str = "none"
    readers: int = RANKS
    """Ranks that read; the trainer broadcasts to the others."""

    @property
    def label(self) -> str:
        """The name of its figures."""
        return self.name.replace(", ", ".").replace(" ", "")


ALONE = Way("alone")
TENSOR = Way("tp 8", "tp=8")
SHARED = (
    TENSOR,
    Way("cp 8", "cp=8"),
    Way("pp 4", "pp=4,tp=2"),
    Way("tp 8, broadcast", "tp=8", "tp", 1),
)
WAYS = (ALONE, *SHARED)
UNITS = {
    "rows": ("rows", 0),
    "pages": ("pages", 1),
    "read_mib": ("MiB", 2),
    "sent_mib": ("MiB", 2),
    "server_mib": ("MiB", 0),
    "ranks_mib": ("MiB", 0),
    "server_ms": ("ms", 2),
    "rank_ms": ("ms", 2),
    "p50_ms": ("ms", 2),
    "p99_ms": ("ms", 1),
}
"""The unit of each figure, and its digits in the table."""


def measure(progress: Console) -> Report:
    """Check what the ranks get, then time them."""
    report = Report(CAVEATS, DATA)
    home = text.written([STEP_ROWS], SOURCE_ROWS, progress)
    figures: dict[str, list[Figures]] = {way.name: [] for way in WAYS}
    for number in range(ROUNDS):
        for way in WAYS:
            progress.print(f"reading as ranks of a bucket, {way.name}, run {number + 1} of {ROUNDS}")
            with server_of(home, way) as server:
                if number == 0:
                    check(report, home, way, server)
                figures[way.name].append(cost(home, way, server))
    medians = {way: median_figures(figures[way.name]) for way in WAYS}
    shown = table(f"{RANKS} ranks of a bucket, a step of 1 MiB", COLUMNS)
    for way, figure in medians.items():
        shown.add_row(way.name, *(f"{figure[key]:,.{digits}f}" for key, (_, digits) in UNITS.items()))
        label = f"loading.sharing.{way.label}"
        report.rows += [
            Row(f"{label}.{key}", round(figure[key], 3), unit) for key, (unit, _) in UNITS.items()
        ]
        if way is not ALONE:
            runs = zip(figures[way.name], figures[ALONE.name], strict=True)
            share = round(median(shared["server_ms"] / alone["server_ms"] for shared, alone in runs), 4)
            name = f"{label}.server_of_alone"
            report.rows += [
                at_most(name, share, "ratio", MOST_CPU) if way is TENSOR else Row(name, share, "ratio"),
                at_most(f"{label}.wait", round(figure["p50_ms"], 3), "ms", MOST_WAIT_MS),
            ]
    report.tables.append(shown)
    return report


def median_figures(runs: Sequence[Figures]) -> Figures:
    """The median of each figure over runs."""
    return {name: median(run[name] for run in runs) for name in runs[0]}


def server_of(home: Path, way: Way) -> Any:
    """The server of a way, as a context."""
    lake = own_lake(home / "lake")
    if not way.mesh:
        return served(lake, "blender.serving")
    spec = ["--mesh", way.mesh, "--broadcast", way.broadcast]
    return served(lake, "blender.loading", text.blend_id(home), *spec)


def check(report: Report, home: Path, way: Way, server: Server, steps: int = CHECKED) -> None:
    """Check the rows of all ranks against the table as pyarrow reads it; raises WrongAnswer."""
    before = server.counts()
    with tempfile.TemporaryDirectory() as folder:
        kept = [f"{folder}/{rank}" for rank in range(way.readers)]
        readings = [
            _reading(home, way, server, rank) | {"warm": steps, "steps": 0, "kept": kept[rank], "end": steps}
            for rank in range(way.readers)
        ]
        with ranks(own_lake(home / "lake"), readings):
            rows = server.counts()["blender_read_rows"] - before["blender_read_rows"]
        batches = [_batches(path) for path in kept]
    blend, stored = open_blends(own_lake(home / "lake")).open(text.blend_id(home)), text.stored_tokens(home)
    wanted = [np.sort(as_numpy(blend.step(step).column("ordinal"))) for step in range(steps)]
    right = all(
        right_step([batches[rank][step] for rank in range(way.readers)], wanted[step], stored)
        for step in range(steps)
    )
    report.check(f"{way.name}: the ranks get the tokens of the table for the rows of the blend", right)
    if way.mesh:
        most = (steps + 1) * len(wanted[0])  # the constructor prepares a step ahead
        once = steps * len(wanted[0]) <= rows <= most
        report.check(f"{way.name}: the constructor read each row once", once)


def right_step(received: Sequence[pa.RecordBatch], wanted: np.ndarray, stored: np.ndarray) -> bool:
    """Whether what the ranks of a bucket received is the rows of ordinals `wanted` of the table.

    Ranks with tokens must have whole rows, or together the pieces of whole rows; the others their lengths.
    """
    ordinals = as_numpy(received[0].column("ordinal"))
    if not np.array_equal(np.sort(ordinals), wanted):
        return False
    if any(not np.array_equal(as_numpy(rows.column("ordinal")), ordinals) for rows in received):
        return False
    expected = stored[ordinals]
    pieces = np.full(expected.shape, -1, dtype=np.int64)
    with_tokens = [rows for rows in received if "tokens" in rows.schema.names]
    for rows in received:
        if not is_cut(rows):
            whole = binary_integers(rows.column("tokens"), 2).reshape(expected.shape)
            if not np.array_equal(whole, expected):
                return False
            continue
        chunk = Chunk(rows)
        if not (chunk.n_tokens == expected.shape[1]).all():
            return False
        if "tokens" in rows.schema.names:
            np.put_along_axis(pieces, chunk.places.astype(np.int64), chunk.tokens.astype(np.int64), axis=1)
    in_pieces = any(is_cut(rows) for rows in with_tokens)
    return bool(with_tokens) and (not in_pieces or np.array_equal(pieces, expected))


def cost(home: Path, way: Way, server: Server, warm: int = WARM, steps: int = STEPS) -> Figures:
    """What a timed step costs: counts and CPU milliseconds a step, MiB at the end, waits of all ranks."""
    readings = [
        _reading(home, way, server, rank) | {"warm": warm, "steps": steps, "step_s": STEP_S}
        for rank in range(way.readers)
    ]
    with ranks(own_lake(home / "lake"), readings) as started:
        counts, cpu_s = server.counts(), server.cpu_s
        costs = started.read()
        used_s, after = server.cpu_s - cpu_s, server.counts()
        resident = {"server_mib": unique_mib([server.pid]), "ranks_mib": unique_mib(started.pids)}
    grown = {name: (after[name] - counts.get(name, 0)) / steps for name in after}
    waits_ms = np.concatenate([rank["waits_ms"] for rank in costs])
    return {
        "rows": grown["blender_read_rows"],
        "pages": grown["blender_pages"],
        "read_mib": grown["blender_read_bytes"] / 2**20,
        "sent_mib": grown["blender_bytes"] / 2**20,
        **resident,
        "server_ms": 1e3 * used_s / steps,
        "rank_ms": 1e3 * sum(rank["cpu_s"] for rank in costs) / way.readers / steps,
        "p50_ms": float(np.quantile(waits_ms, 0.5)),
        "p99_ms": float(np.quantile(waits_ms, 0.99)),
    }


def _reading(home: Path, way: Way, server: Server, rank: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"address": server.address, "step_s": 0.0}
    if way.mesh:
        return fields | {"reader": "constructor", "rank": rank}
    return fields | {"reader": "blender", "blend": text.blend_id(home)}


def _batches(path: str) -> list[pa.RecordBatch]:
    with pa.OSFile(path) as source, pa.ipc.open_stream(source) as reader:
        return list(reader)
