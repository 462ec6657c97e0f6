"""The memory of ranks that each open 306 sources, and of ranks behind a constructor that opens them once.

Each rank holds all sources open with pyarrow, or in two workers of torch's `DataLoader`, or opens the blend
by itself; or one constructor does, and ranks receive steps. All processes are counted, after they have read
some steps. MegaScale-Data, Figures 4, 12 and 17b, reports 13.5 times less memory for its loader.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.harness import Report, Row, table
from bench.lakes import own_lake
from bench.loading import text
from bench.loading.processes import ranks, served, unique_mib
from bench.loading.sources import BATCH_ROWS, WORKERS
from bench.loading.tables import LENGTH, SOURCES

SOURCE_ROWS = 64  # 1 MiB
WEIGHTS = tuple(1 + number % 3 for number in range(SOURCES))
RANKS = (1, 2, 4)
WARM, STEPS = 2, 40
MOST_RANKS, MOST_WORKERS = 16, 8
MOST_MIB = 6 << 10  # of this machine; more is extrapolated
PAPER_RATIO = 13.5
ENCODINGS = ("plain", "dictionary")
DATA = f"`memory`: {SOURCES} tables of {SOURCE_ROWS} rows of {LENGTH:,} drawn tokens, plain and by dictionary"
CAVEATS = (
    f"`memory`: unique set size of all processes after {WARM + STEPS} steps of {sum(WEIGHTS)} rows, with the "
    "defaults of Blender and its clients: a page cache of 512 MiB a process that reads.",
    f"`memory`: tables are small and pyarrow holds batches of {BATCH_ROWS} rows, which favors pyarrow and "
    "torch: pyarrow holds a column chunk of each file, here 1 MiB, in large tables 128 MiB.",
    "`memory`: torch forks its workers. What they share with their rank, its imports, counts nowhere. "
    f"{MOST_RANKS} ranks with {MOST_WORKERS} workers each are extrapolated from the mean rank and worker of "
    f"the most ranks that took less than {MOST_MIB >> 10} GiB, and so are totals above that.",
)


@dataclass(frozen=True)
class Way:
    """How ranks get the rows of the sources."""

    name: str
    reader: str
    workers: int = 0
    """Processes of each rank besides itself, in this bench."""
    served: bool = False


PYARROW = Way("pyarrow", "pyarrow")
TORCH = Way("torch workers", "torch_workers", workers=WORKERS)
BLEND = Way("open_blend", "open_blend")
CONSTRUCTOR = Way("constructor", "constructor", served=True)
WAYS = (PYARROW, TORCH, BLEND, CONSTRUCTOR)


@dataclass(frozen=True)
class Memory:
    """Unique MiB of the constructor, and of the mean rank and worker."""

    server: float
    rank: float
    worker: float

    def of(self, n_ranks: int, workers: int) -> float:
        """The MiB of so many ranks, each with `workers`."""
        return self.server + n_ranks * (self.rank + workers * self.worker)


def measure(progress: Console) -> Report:
    """Check the rows that the ranks read, and read the memory of all processes."""
    report = Report(CAVEATS, DATA)
    columns = "sources | way | " + " | ".join(f"{n} ranks" for n in RANKS) + " | a rank | a worker | server"
    shown = table("Unique MiB of all processes", columns)
    far = table(
        f"{MOST_RANKS} ranks x {MOST_WORKERS} workers, extrapolated",
        f"sources | way | processes | GiB | over constructor | above {PAPER_RATIO} from",
    )
    for encoding in ENCODINGS:
        home = text.written(list(WEIGHTS), SOURCE_ROWS, progress, dictionary=encoding == "dictionary")
        known = digests(home)
        found: dict[Way, Memory] = {}
        for way in WAYS:
            totals: list[float] = []
            for n_ranks in RANKS:
                if totals and totals[-1] * n_ranks / RANKS[len(totals) - 1] > MOST_MIB:
                    totals.append(found[way].of(n_ranks, way.workers))
                    continue
                progress.print(f"opening {SOURCES} {encoding} sources, {way.name}, {n_ranks} ranks")
                found[way] = read(report, home, way, n_ranks, known, encoding)
                totals.append(found[way].of(n_ranks, way.workers))
            parts = (found[way].rank, found[way].worker, found[way].server)
            shown.add_row(encoding, way.name, *(f"{mib:,.0f}" if mib else "" for mib in (*totals, *parts)))
            label = f"loading.memory.{encoding}.{way.reader}"
            report.rows += [
                Row(f"{label}.{n}", round(mib, 1), "MiB") for n, mib in zip(RANKS, totals, strict=True)
            ]
        for way in WAYS:
            report.rows += _far_rows(far, encoding, way, found)
    report.tables += [shown, far]
    return report


def read(
    report: Report,
    home: Path,
    way: Way,
    n_ranks: int,
    known: Mapping[str, int],
    encoding: str,
    warm: int = WARM,
    steps: int = STEPS,
    weights: Sequence[int] = WEIGHTS,
) -> Memory:
    """Check the first steps of ranks, and return their memory after all; raises WrongAnswer."""
    lake = own_lake(home / "lake")
    with tempfile.TemporaryDirectory() as folder, server_of(home, way, n_ranks) as (pid, address):
        kept = [f"{folder}/{rank}.npy" for rank in range(n_ranks)]
        readings: list[Mapping[str, Any]] = [
            {
                "reader": way.reader,
                "warm": warm,
                "steps": steps,
                "step_s": 0.0,
                "kept": kept[rank],
                "address": address,
                "blend": text.blend_id(home),
                "rank": rank,
                "ranks": n_ranks,
                "files": [str(text.table_file(home, number)) for number in range(len(weights))],
                "weights": list(weights),
            }
            for rank in range(n_ranks)
        ]
        with ranks(lake, readings) as started:
            started.read()
            workers = started.workers
            memory = Memory(
                unique_mib([pid]) if pid else 0.0,
                unique_mib(started.pids) / n_ranks,
                unique_mib(workers) / len(workers) if way.workers else 0.0,
            )
        rows = [rows_of(path, warm) for path in kept]
    expected = Counter(dict(enumerate(weights)))
    right = all(
        Counter(known.get(digest, -1) for of_rank in rows for digest in of_rank[step]) == expected
        for step in range(warm)
    )
    what = f"{encoding}, {way.name}, {n_ranks} ranks"
    report.check(f"{what}: steps have the rows of all sources, as they are stored", right)
    return memory


@contextmanager
def server_of(home: Path, way: Way, n_ranks: int) -> Iterator[tuple[int, str]]:
    """The process and the address of a constructor, if the way has one."""
    if not way.served:
        yield 0, ""
        return
    arguments = (text.blend_id(home), "--mesh", f"dp={n_ranks}")
    with served(own_lake(home / "lake"), "blender.loading", *arguments) as server:
        yield server.pid, server.address


def digests(home: Path, sources: int = SOURCES) -> dict[str, int]:
    """The source of each stored row, by the hash of its tokens."""
    return {_digest(row): number for number in range(sources) for row in text.stored_tokens(home, number)}


def rows_of(path: str, steps: int) -> list[list[str]]:
    """The hashes of the rows of the steps that a rank has kept."""
    if _is_array(path):
        return [[_digest(row) for row in step] for step in np.load(path)]
    with pa.OSFile(path) as source, pa.ipc.open_stream(source) as reader:
        batches = [batch.column("tokens").to_pylist() for batch in reader]
    return [[_digest(row) for row in batch] for batch in batches[:steps]]


def passes_at(way: Memory, constructor: Memory, workers: int, ratio: float = PAPER_RATIO) -> int | None:
    """The least number of ranks whose memory is more than `ratio` times that behind a constructor.

    None if no number is enough.
    """
    grows = way.of(1, workers) - way.server - ratio * constructor.rank
    if grows <= 0:
        return None
    return floor((ratio * constructor.server - way.server) / grows) + 1


def _far_rows(far: Any, encoding: str, way: Way, found: Mapping[Way, Memory]) -> list[Row]:
    workers = MOST_WORKERS if way.workers else 0
    total = found[way].of(MOST_RANKS, workers)
    processes = MOST_RANKS * (1 + workers) + bool(way.served)
    ratio = total / found[CONSTRUCTOR].of(MOST_RANKS, 0)
    least = None if way.served else passes_at(found[way], found[CONSTRUCTOR], workers)
    passed = "" if way.served else "no number of ranks" if least is None else f"{least} ranks"
    far.add_row(encoding, way.name, f"{processes}", f"{total / 1024:.1f}", f"{ratio:.1f}x", passed)
    label = f"loading.memory.{encoding}.{way.reader}.extrapolated"
    return [Row(label, round(total / 1024, 2), "GiB"), Row(f"{label}.ratio", round(ratio, 2), "ratio")]


def _digest(row: Any) -> str:
    return blake2b(memoryview(row).cast("B"), digest_size=8).hexdigest()


def _is_array(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(6) == b"\x93NUMPY"
