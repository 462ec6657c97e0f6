"""A shuffled 60/30/10 blend in batches of 8 x 2,048 tokens, read in the trainer's process by us and others.

1 GiB of rows; every reading has a process of its own, without workers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.harness import Report, Row, Runs, at_most, table
from bench.lakes import own_lake
from bench.page_cache import read_in_order, read_scattered
from bench.peers import GRAIN, HUGGING_FACE, TORCH, answer
from bench.stream import through_grpc
from bench.stream.data import SHUFFLES, written
from bench.stream.rows import BATCH, SOURCES, array, rows_file
from blender.costs.shuffle_score import shuffle_score

CAVEATS = [
    "Files are brought into the page cache in order before each timed run; for maps and `plain` also page by "
    "page in random order (scattered), which makes a map dearer.",
    "Tokens follow Zipf's law: zstd saves less than on text.",
    "`packed` is the layout that packing writes, 8 rows per page in zstd, read in windows of 1,024 pages; "
    "`plain` has one uncompressed row per page. Tokens have 4 bytes; no segments, because peers have none.",
    "Medians of three runs decide.",
    "CPU counts from the second batch on; Hugging Face fills its buffers before the first.",
    "mosaicml, Hugging Face streaming and Grain are timed on an eighth of the epoch.",
]
ROWS, RUNS, RANKS = 131_072, 3, 10
SCORED = 256  # consecutive rows of a source that are scored as a batch
OURS = ("packed", "plain")
PEERS = {
    "mosaicml": TORCH,
    "litdata": TORCH,
    "hf_streaming": HUGGING_FACE,
    "hf_map": HUGGING_FACE,
    "grain": GRAIN,
}
FORMATS = {"mosaicml": "mds", "litdata": "litdata", "hf_map": "arrow", "grain": "array_record"}
SLOW = ("mosaicml", "hf_streaming", "grain")
FILES = {
    "memmap": "rows-*.npy",
    "packed": "packed.*_packed.parquet",
    "plain": "packed.*_plain.parquet",
    "mosaicml": "rows-*.mds/**/*",
    "litdata": "rows-*.litdata/**/*",
    "hf_streaming": "packed.*_packed.parquet",
    "hf_map": "rows-*.arrow",
    "grain": "rows-*.array_record",
}
FIGURES = {
    "cpu": ("cpu_s_per_gib", "CPU s/GiB"),
    "rate": ("rows_per_s", "rows/s"),
    "latency_p50": ("p50_us", "us"),
    "latency_p99": ("p99_us", "us"),
    "anonymous": ("anonymous_mib", "MiB"),
    "first": ("first_s", "s"),
}
"""Rows: the reader's figure whose median is reported, and its unit."""
MOST_SCORE, MOST_OF_RANKS = 1.3, 1.1
MOST_OF_MEMMAP, MOST_OF_LITDATA, MOST_OF_MEMORY = 1.0, 0.5, 1.0

Figures = Mapping[str, Any]


def measure(progress: Console) -> Report:
    """Write missing rows, read whole epochs and check them, then time parts."""
    home = written(ROWS, progress)
    for name, form in FORMATS.items():
        PEERS[name].convert([rows_file(home, source) for source in SOURCES], form, progress)
    names = [*OURS, "memmap", *PEERS]
    report = Report(CAVEATS, f"{ROWS:,} rows of 2,048 int32 in {home}, as 60, 30 and 10 %")
    epochs = {name: _said(progress, home, name, "epoch") for name in names}
    whole = {name: _is_whole(home, name) for name in names}
    for name in (*OURS, "memmap"):
        report.check(f"an epoch of {name} holds every row of every source once", whole[name])
    resumed = {name: _said(progress, home, name, "resume") for name in names}
    runs = {name: Runs(tuple(_timed(progress, home, name) for _ in range(RUNS))) for name in names}
    by_page = {
        name: Runs(tuple(_timed(progress, home, name, read_scattered) for _ in range(RUNS)))
        for name in ("plain", "memmap")
    }
    for name in (*OURS, "memmap"):
        same = all(run["same"] for run in (resumed[name], *runs[name].runs))
        report.check(f"{name} gives the same rows when read again, and from the middle on", same)
    scores = {name: _score(home, name) for name in names}
    report.tables += [_costs(runs), _gives(epochs, resumed, runs, whole, scores)]
    _add(report, epochs, resumed, runs, scores)
    _add_scattered(report, by_page)
    _add_ranks(report, progress, home)
    for name in OURS:
        tables = [f"packed.s{source}_{name}" for source in SOURCES]
        through_grpc.add(report, own_lake(home / "lake"), tables, SHUFFLES[name], name, progress)
    return report


def _said(progress: Console, home: Path, name: str, *what: str) -> Figures:
    progress.print(f"{name}: {' '.join(what)}")
    python = PEERS[name].python(progress) if name in PEERS else sys.executable
    found: Figures = answer("bench.stream.reader", name, home, *what, python=python)
    return found


def _timed(
    progress: Console, home: Path, name: str, bring: Callable[[list[Path]], None] = read_in_order
) -> Figures:
    batches = ROWS // BATCH // (8 if name in SLOW else 1)
    bring([path for path in home.glob(FILES[name]) if path.is_file()])
    return _said(progress, home, name, "part", str(batches))


def _is_whole(home: Path, name: str) -> bool:
    """Whether the epoch contained every row of every source once."""
    order = np.load(home / f"{name}.order.npy")
    wanted = [(row, source) for source in SOURCES for row in range(len(array(home, source)))]
    found = order[np.lexsort((order[:, 0], order[:, 1]))]
    return np.array_equal(found, np.array(wanted, dtype=np.int32))


def _score(home: Path, name: str) -> float:
    """The shuffle score of each source's rows in their order, averaged by rows."""
    order = np.load(home / f"{name}.order.npy")
    found, weights = [], []
    for source in SOURCES:
        rows = order[order[:, 1] == source, 0]
        batches = rows[: len(rows) // SCORED * SCORED].reshape(-1, SCORED)
        found.append(shuffle_score(batches, len(array(home, source))))
        weights.append(len(rows))
    return float(np.average(found, weights=weights))


def _costs(runs: Mapping[str, Runs]) -> Table:
    made = table("Costs", "reader | CPU s/GiB | best | rows/s | batch p50 us | p99 us | anonymous MiB")
    for name, of in runs.items():
        median, best = of.median("cpu_s_per_gib"), of.best("cpu_s_per_gib")
        rest = (f"{of.median(name):,.0f}" for name in ("rows_per_s", "p50_us", "p99_us", "anonymous_mib"))
        made.add_row(name, f"{median:.2f}", f"{best:.2f}", *rest)
    return made


def _gives(
    epochs: Mapping[str, Figures],
    resumed: Mapping[str, Figures],
    runs: Mapping[str, Runs],
    whole: Mapping[str, bool],
    scores: Mapping[str, float],
) -> Table:
    columns = "reader | score | every row once | import s | first batch s | resume s | resumes exactly"
    made = table("Rows", columns)
    for name, of in runs.items():
        made.add_row(
            name,
            f"{scores[name]:.2f}",
            "yes" if whole[name] else f"no, {epochs[name]['rows']:,} rows",
            f"{of.median('import_s'):.2f}",
            f"{of.median('first_s'):.3f}",
            f"{resumed[name]['first_s']:.3f}",
            "yes" if resumed[name]["same"] else "no",
        )
    return made


def _add(
    report: Report,
    epochs: Mapping[str, Figures],
    resumed: Mapping[str, Figures],
    runs: Mapping[str, Runs],
    scores: Mapping[str, float],
) -> None:
    for name, of in runs.items():
        report.rows += [
            *(Row(f"stream.{name}.{it}", of.median(key), unit) for it, (key, unit) in FIGURES.items()),
            Row(f"stream.{name}.resume", float(resumed[name]["first_s"]), "s"),
            Row(f"stream.{name}.read", int(epochs[name]["bytes_read"]), "bytes"),
        ]
        score = f"stream.{name}.score", scores[name], "chi2/df"
        report.rows.append(at_most(*score, MOST_SCORE) if name in OURS else Row(*score))

    def ratio(ours: str, theirs: str, figure: str) -> float:
        return runs[ours].median(figure) / runs[theirs].median(figure)

    of_memmap = ratio("plain", "memmap", "cpu_s_per_gib")
    of_litdata = ratio("packed", "litdata", "cpu_s_per_gib")
    report.rows += [
        at_most("stream.packed.cpu_of_litdata", of_litdata, "ratio", MOST_OF_LITDATA),
        at_most("stream.plain.cpu_of_memmap", of_memmap, "ratio", MOST_OF_MEMMAP),
    ]
    for name in OURS:
        of_map, of_streaming = (ratio(name, hf, "anonymous_mib") for hf in ("hf_map", "hf_streaming"))
        report.rows += [
            at_most(f"stream.{name}.memory_of_hf_map", of_map, "ratio", MOST_OF_MEMORY),
            Row(f"stream.{name}.memory_of_hf_streaming", of_streaming, "ratio"),
        ]


def _add_scattered(report: Report, runs: Mapping[str, Runs]) -> None:
    """Add the costs where the files lie page by page in the page cache."""
    medians = {name: timings.median("cpu_s_per_gib") for name, timings in runs.items()}
    report.rows += [
        Row(f"stream.{name}.scattered.cpu", cpu_s, "CPU s/GiB") for name, cpu_s in medians.items()
    ]
    of_memmap = medians["plain"] / medians["memmap"]
    report.rows.append(at_most("stream.plain.scattered.cpu_of_memmap", of_memmap, "ratio", MOST_OF_MEMMAP))


def _add_ranks(report: Report, progress: Console, home: Path) -> None:
    """Add the bytes that ten ranks read: behind one cache, as in a server, and each with its own."""
    for name in OURS:
        found = _said(progress, home, name, "ranks", str(RANKS))
        together, alone = (found[name] / found["one"] for name in ("together", "alone"))
        report.rows += [
            at_most(f"stream.{name}.ranks_of_one_server", together, "ratio", MOST_OF_RANKS),
            Row(f"stream.{name}.ranks_alone", alone, "ratio"),
        ]
