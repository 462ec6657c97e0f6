"""What a reader or a writer reads before its first batch: the newest checkpoint and the versions after it.

The log has one batch a version, of four lanes in turn. The real routines grow it in memory; what they leave
there at each length is put into a folder, so the bench reads the layout that a user gets.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console

from bench.batches.objects import Calls, CountedFolder, Memory
from bench.harness import Report, Row, table
from blender.global_batches.log import checkpoints, log, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.log import StoredBatch
from blender.global_batches.log.state import Descriptor, LogState
from blender.global_batches.store.namespace_store import NamespaceStore

# Just after a checkpoint, and just before the next one, when a start reads most versions.
VERSIONS = (10, 1_000, 1_099, 100_000, 100_099)
LANES = 4
ROUNDS = 5
DATA = f"`start`: logs of {VERSIONS[0]} to {VERSIONS[-1]:,} versions, one batch each, of {LANES} lanes"
CAVEATS = (
    "`start`: the folder is in the page cache, and the process has done its imports. A folder syncs the "
    "folders of the names that are read. On a bucket, a start takes the round trips one after the other.",
    f"`start`: medians of {ROUNDS} starts. The batches themselves are not stored: a start reads none.",
)
UNITS = {"requests": "requests", "round_trips": "round trips", "n_bytes": "bytes", "s": "s", "cpu_s": "s"}


@dataclass(frozen=True)
class Start:
    """What a start came to."""

    state: LogState
    calls: Calls
    s: float
    cpu_s: float


def measure(progress: Console) -> Report:
    """Grow the log, and start at each length."""
    report = Report(CAVEATS, DATA)
    columns = "versions | requests | round trips | KB read | wall ms | CPU ms | names left | KB left"
    shown = table("From nothing to the newest state, on a folder", columns)
    progress.print(f"growing a log of {VERSIONS[-1]:,} versions in memory")
    for state, objects in grown(VERSIONS, Client):
        with tempfile.TemporaryDirectory() as folder:
            write(objects, Path(folder))
            starts = [start(Path(folder), Client()) for _ in range(ROUNDS)]
        versions = f"{state.version:,}"
        is_right = all(equal(run.state, state) for run in starts)
        report.check(f"{versions} versions: each start finds the state that the log was left in", is_right)
        calls = starts[0].calls
        s, cpu_s = median(run.s for run in starts), median(run.cpu_s for run in starts)
        left = sum(map(len, objects.values()))
        shown.add_row(
            versions,
            f"{calls.requests:,}",
            f"{calls.round_trips:,}",
            f"{calls.n_bytes / 1e3:,.1f}",
            f"{1e3 * s:,.1f}",
            f"{1e3 * cpu_s:,.1f}",
            f"{len(objects):,}",
            f"{left / 1e3:,.0f}",
        )
        figures = vars(calls) | {"s": round(s, 5), "cpu_s": round(cpu_s, 5)}
        report.rows += [
            Row(f"batches.start.{state.version}.{key}", figures[key], unit) for key, unit in UNITS.items()
        ]
    report.tables.append(shown)
    return report


def grown(
    versions: Sequence[int], client_of: Callable[[], Client]
) -> Iterator[tuple[LogState, dict[str, bytes]]]:
    """The state of a log and the objects of its namespace, at each of the `versions`, which ascend."""
    memory = Memory()
    store = NamespaceStore("memory:", memory, 0.0)
    client, state = client_of(), LogState()
    claims = []
    for lane in range(LANES):
        claim, state = store.run(log.take(client, f"rollouts-{lane}", f"host:{lane}:5f0c1a2b"))
        assert claim is not None
        claims.append(claim)
    for version in versions:
        while state.version < version:
            claim = claims[state.version % LANES]
            sequence = state.lane(claim.lane).sequence
            made = StoredBatch(sequence, {"prompt": 256 * sequence}, _descriptor(claim.lane, sequence))
            state = store.run(log.attempt(client, claim, state, [made]))
            state = store.run(checkpoints.maintain(client, state))
        yield state, memory.objects


def write(objects: dict[str, bytes], folder: Path) -> None:
    """Put objects into a folder, as its store finds them."""
    for name, body in objects.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)


def start(folder: Path, client: Client) -> Start:
    """Load the newest state of the log in a folder, and look whether a version is missing."""
    objects = CountedFolder(folder)
    store = NamespaceStore(f"{folder}", objects, 0.0)
    began, cpu_began = time.perf_counter(), time.process_time()
    state = store.run(log.load(client))
    store.run(log.require_whole(client, state))
    s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    return Start(state, objects.calls, s, cpu_s)


def equal(state: LogState, other: LogState) -> bool:
    """Whether two states say the same, wherever their descriptors lie: a tail or its segments."""
    return all(getattr(state, key) == getattr(other, key) for key in ("version", "steps", "content", "lanes"))


def _descriptor(lane: str, sequence: int) -> Descriptor:
    """A batch of 3.2 MiB in 32 slices."""
    name = names.batch(lane, 1, sequence, os.urandom(4).hex())
    return Descriptor(0, name, 3_280_000, 3_276_800, 1_200, os.urandom(16))
