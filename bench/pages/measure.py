"""The cost of a random row of packed tokens, read page by page and by other readers.

Each reader reads 10,000 random rows of 1 GiB (131,072 rows of 2,048 tokens) in batches of 1, 64 and 1,024,
with the files in the page cache, in its two states (`bench.page_cache`), and out of it. Every run has a
process of its own.
"""

from __future__ import annotations

import mmap
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bench.harness import Report, Row, Runs, at_least, at_most, table
from bench.pages.data import LAYOUTS, ROW_BYTES, ROWS, save_index, written
from bench.peers import GRAIN, HUGGING_FACE, LANCE, TORCH, answer

CAVEATS = [
    "`packed` is the layout that packing writes, 8 rows per page in zstd; `plain` has one uncompressed row.",
    "Tokens are random, so zstd saves less here than on text, and takes longer.",
    "In the page cache: brought there in order. Scattered: page by page, as random reads leave them.",
    "Cold: files are dropped from the page cache before; caches of the disk or its host stay.",
    "pyarrow reads a row group of 1,000 rows for each row, so it reads few rows.",
    "Another process builds the page indexes before; they are mapped, and building them is not counted.",
    "litData and mosaicml's MDS have no call for many rows, so they read row by row.",
]
READER = "bench.pages.reader"
PEERS = {
    "hf": (HUGGING_FACE, "arrow"),
    "lance": (LANCE, "lance"),
    "array_record": (GRAIN, "array_record"),
    "mosaicml": (TORCH, "mds"),
    "litdata": (TORCH, "litdata"),
}
JUDGED = ("packed", "plain")  # `packed` is the layout that packing writes
OURS = (*JUDGED, "p8", "memmap", "pyarrow")
BATCHES = (1, 64, 1024)
N, RUNS = 10_000, 3
TENFOLD = 10
SLOW = {("pyarrow", 1): 10, ("pyarrow", 64): 128, ("pyarrow", 1024): 1024}
"""Rows for readers that would take minutes for 10,000."""
MOST_OF_MEMMAP, MOST_ANONYMOUS_MIB, MOST_OF_HF, LEAST_OF_DISK = 2.0, 60, 1.0, 0.6
DEPTH = 32  # concurrent reads of the disk


Cells = dict[tuple[str, int], Runs]  # by reader and rows per batch


def measure(progress: Console) -> Report:
    """Write missing files, check the rows, then read them."""
    home = written(progress)
    for layout in LAYOUTS:
        save_index(home, layout)
        save_index(home, layout, TENFOLD)
    for peer, form in PEERS.values():
        peer.convert([home / "rows.npy"], form, progress)
    readers = [*OURS, *PEERS]
    report = Report(CAVEATS, f"{ROWS:,} rows of 2,048 int32 in {home}, {N:,} read at random")
    warm = _cells(home, readers, "warm", progress)
    digests = {run["digest"] for cell in warm.values() for run in cell.runs}
    report.check("every reader gives the same rows", len(digests) == 1)
    _show(report, "In the page cache", warm, "cpu_us")
    _add_warm(report, warm)
    by_page = _cells(home, [*JUDGED, "memmap"], "scattered", progress)
    _show(report, "In the page cache, scattered", by_page, "cpu_us")
    _add_scattered(report, by_page)
    grown = {
        layout: float(_read(home, layout, (64,), 7, "warm", progress, TENFOLD)[0]["anonymous_mib"])
        for layout in JUDGED
    }
    _add_memory(report, warm, grown)
    cold = _cells(home, [reader for reader in readers if reader != "pyarrow"], "cold", progress)
    _show(report, "Out of the page cache", cold, "rows_per_s")
    _add_cold(report, cold)
    return report


def _cells(home: Path, readers: Sequence[str], state: str, progress: Console) -> Cells:
    found: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for run in range(RUNS):
        for reader in readers:
            progress.print(f"{state}, run {run + 1} of {RUNS}: {reader}")
            timed_disk = state == "cold" and reader in JUDGED
            before = _disk_rate(home / "rows.npy") if timed_disk else 0.0
            reads = _read(home, reader, BATCHES, 10 + run, state, progress)
            disk = (before + _disk_rate(home / "rows.npy")) / 2 if timed_disk else 0.0
            for batch, read in zip(BATCHES, reads, strict=True):
                found.setdefault((reader, batch), []).append({**read, "disk_rate": disk})
    return {key: Runs(tuple(runs)) for key, runs in found.items()}


def _read(
    home: Path,
    reader: str,
    batches: Sequence[int],
    seed: int,
    state: str,
    progress: Console,
    times: int = 1,
) -> list[Mapping[str, Any]]:
    python = PEERS[reader][0].python(progress) if reader in PEERS else sys.executable
    readings = ",".join(f"{batch}:{SLOW.get((reader, batch), N)}" for batch in batches)
    found: list[Mapping[str, Any]]
    found = answer(READER, reader, home, readings, seed, state, times, python=python)
    return found


def _disk_rate(path: Path, n: int = 16_000) -> float:
    """8 KiB reads a second past the page cache, DEPTH at a time."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    places = np.random.default_rng().integers(0, path.stat().st_size // ROW_BYTES, n) * ROW_BYTES
    parts = [places[number::DEPTH].tolist() for number in range(DEPTH)]

    def read(part: list[int]) -> None:
        buffer = mmap.mmap(-1, ROW_BYTES)  # aligned, as O_DIRECT requires
        for place in part:
            os.preadv(descriptor, [buffer], place)

    began = time.perf_counter()
    with ThreadPoolExecutor(DEPTH) as pool:
        list(pool.map(read, parts))
    taken = time.perf_counter() - began
    os.close(descriptor)
    return n / taken


def _show(report: Report, title: str, cells: Cells, first: str) -> None:
    what = "rows/s" if first == "rows_per_s" else "CPU us/row"
    columns = " | ".join(f"{what}\nbatch {batch:,}" for batch in BATCHES)
    made = table(title, f"reader | {columns} | CPU us/row\nbatch 64 | asked/used | disk/used | anonymous MiB")
    for reader in dict.fromkeys(reader for reader, _ in cells):
        at_64 = cells[reader, 64]
        made.add_row(
            reader,
            *(f"{cells[reader, batch].median(first):,.1f}" for batch in BATCHES),
            f"{at_64.median('cpu_us'):,.1f}",
            *(f"{at_64.median(read) / ROW_BYTES:,.2f}" for read in ("asked", "disk")),
            f"{at_64.median('anonymous_mib'):,.0f}",
        )
    report.tables.append(made)


def _add_warm(report: Report, cells: Cells) -> None:
    for (reader, batch), cell in cells.items():
        name = f"pages.{reader}.b{batch}.warm"
        report.rows.append(Row(f"{name}.cpu_best", cell.best("cpu_us"), "us/row"))
        report.rows.append(Row(f"{name}.cpu_median", cell.median("cpu_us"), "us/row"))
    for layout in JUDGED:
        name = f"pages.{layout}.b64.of_memmap"
        report.rows.append(at_most(name, _of_memmap(cells, layout), "ratio", MOST_OF_MEMMAP))
    used = cells["plain", 64].median("asked") / ROW_BYTES
    report.rows.append(at_most("pages.plain.b64.bytes_asked_per_byte_used", used, "ratio", 1.02))


def _add_scattered(report: Report, cells: Cells) -> None:
    for (reader, batch), cell in cells.items():
        name = f"pages.{reader}.b{batch}.scattered.cpu_median"
        report.rows.append(Row(name, cell.median("cpu_us"), "us/row"))
    for layout in JUDGED:
        name = f"pages.{layout}.b64.scattered.of_memmap"
        report.rows.append(at_most(name, _of_memmap(cells, layout), "ratio", MOST_OF_MEMMAP))


def _of_memmap(cells: Cells, layout: str) -> float:
    """The cost of a row in batches of 64, relative to numpy's memory map."""
    return cells[layout, 64].median("cpu_us") / cells["memmap", 64].median("cpu_us")


def _add_memory(report: Report, warm: Cells, grown: Mapping[str, float]) -> None:
    """Add the anonymous memory of our layouts; `grown` is their memory with `TENFOLD` rows."""
    of_hf = warm["hf", 64].median("anonymous_mib")
    for layout in JUDGED:
        held, name = warm[layout, 64].median("anonymous_mib"), f"pages.{layout}.anonymous"
        report.rows += [
            at_most(name, held, "MiB", MOST_ANONYMOUS_MIB),
            at_most(f"{name}_of_hf", held / of_hf, "ratio", MOST_OF_HF),
            at_most(f"{name}_at_tenfold", grown[layout] / held, "ratio", 1.1),
        ]


def _add_cold(report: Report, cells: Cells) -> None:
    report.rows.append(Row(f"pages.disk.depth_{DEPTH}", cells["plain", 64].median("disk_rate"), "reads/s"))
    for (reader, batch), cell in cells.items():
        report.rows.append(Row(f"pages.{reader}.b{batch}.cold.rate", cell.median("rows_per_s"), "rows/s"))
    for layout, batch in product(JUDGED, (64, 1024)):
        shares = [float(run["rows_per_s"]) / float(run["disk_rate"]) for run in cells[layout, batch].runs]
        share = statistics.median(shares)
        report.rows.append(at_least(f"pages.{layout}.b{batch}.cold.of_disk", share, "share", LEAST_OF_DISK))
