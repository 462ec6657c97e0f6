"""What rows a page and a codec cost packed tokens: bytes, writing, reading single rows and whole windows.

The same rows are written in every layout, as 2 and as 4 bytes a token, and read through a blend.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.harness import Report, Row, WrongAnswer, at_most, table
from bench.layout_data import LENGTH, ROWS, TABLE, Layout, publish, repeated, tokens, write_table
from blender.catalog.blends import open_blends
from blender.spec.config import BlendSource, blend_source
from factory.lake.files.layout import PAGE_ROWS
from factory.lake.schemas import PACKED
from factory.settings import Settings, settings

CAVEATS = [
    "Files are in the page cache: from a disk or a store the bytes read cost more than the CPU does.",
    "pyarrow writes the files; Spark's writer makes the same pages and takes longer.",
    "Tokens are of source code in a vocabulary of 16,384; other text and larger vocabularies shrink less.",
]
ROWS_A_PAGE, CODECS, WIDTHS = (1, 4, 8, 16, 64), ("none", "snappy", "zstd"), (2, 4)
LONGER, LONGER_CODECS, LONGER_WIDTH = 4, ("none", "zstd"), 2
"""Rows that many times as long, of the same text, are measured in fewer layouts."""
WINDOW_ROWS = 4_096  # of LENGTH tokens; of longer ones as many bytes
STEP_ROWS = 64
SINGLE_STEPS, RUNS = 16, 3
MEMORY_BYTES = 4 * WINDOW_ROWS * LENGTH * 4
MOST_OF_CHEAPEST, AS_FEW_BYTES = 1.5, 1.05
PACKING_ROWS, PACKING_CODEC = int(PACKED.properties[PAGE_ROWS]), "zstd"


@dataclass(frozen=True)
class Reading:
    """What a blend cost."""

    cpu_us: float
    """A row."""
    read: float
    """Bytes read by byte used."""


@dataclass(frozen=True)
class Cost:
    """What a layout costs."""

    file_bytes: float
    """A token."""
    write_us: float
    """CPU a row."""
    single: tuple[Reading, ...]
    window: tuple[Reading, ...]


def measure(progress: Console) -> Report:
    """Write, check and read every layout, one after another."""
    report = Report(CAVEATS, f"{ROWS:,} rows of {LENGTH:,} tokens of Python's standard library")
    rows = repeated(tokens(progress), ROWS)
    costs: dict[Layout, Cost] = {}
    for width in WIDTHS:
        wide = rows.astype(f"<u{width}")
        for codec in CODECS:
            for page_rows in ROWS_A_PAGE:
                layout = Layout(width, page_rows, codec)
                progress.print(f"measuring {layout.name}")
                costs[layout] = cost(wide, layout)
    long_rows = rows.reshape(-1, LONGER * LENGTH).astype(f"<u{LONGER_WIDTH}")
    longer = {}
    for codec in LONGER_CODECS:
        for page_rows in ROWS_A_PAGE:
            layout = Layout(LONGER_WIDTH, page_rows, codec, LONGER * LENGTH)
            progress.print(f"measuring {layout.name}")
            longer[layout] = cost(long_rows, layout)
    report.check(f"{len(costs) + len(longer)} layouts give the rows that were written", True)
    for width in WIDTHS:
        _show(report, width, {layout: it for layout, it in costs.items() if layout.token_bytes == width})
    _show(report, LONGER_WIDTH, longer)
    for layout, it in (costs | longer).items():
        _add(report, layout, it)
    for width in WIDTHS:
        _add_aim(report, width, {layout: it for layout, it in costs.items() if layout.token_bytes == width})
    return report


def cost(rows: np.ndarray, layout: Layout) -> Cost:
    """Write `rows`, check what blends of them give, and time it; raises WrongAnswer."""
    parent = settings().cache.resolve() / "bench" / "layout"
    parent.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(dir=parent))
    try:
        lake = Settings(home=home, cache=settings().cache)
        began = time.process_time()
        path = write_table(lake, rows, layout)
        write_us = (time.process_time() - began) * 1e6 / len(rows)
        publish(lake, path, layout)
        window_rows = WINDOW_ROWS * LENGTH // layout.length
        single = blend_source(table=TABLE, weight=STEP_ROWS, shuffle="row")
        window = blend_source(
            table=TABLE,
            weight=STEP_ROWS,
            shuffle="page_window",
            page_rows=layout.page_rows,
            window_pages=window_rows // layout.page_rows,
        )
        return Cost(
            path.stat().st_size / rows.size,
            write_us,
            tuple(_readings(lake, single, rows, SINGLE_STEPS)),
            tuple(_readings(lake, window, rows, 2 * window_rows // STEP_ROWS)),
        )
    finally:
        shutil.rmtree(home)


def _readings(lake: Settings, source: BlendSource, rows: np.ndarray, n_steps: int) -> Iterator[Reading]:
    """Three, each by a Blender with nothing in memory, after one whose rows are compared."""
    for run in range(-1, RUNS):
        blends = open_blends(lake, MEMORY_BYTES)
        blend = blends.open(blends.create([source], seed=run + 1).id)
        steps = min(n_steps, blend.steps or 0)
        index = blend.sources[0].reader.column("tokens").groups[0].index
        before, began = index.read_so_far[1], time.process_time()
        for block in blend.fetch(0, steps, block_bytes=STEP_ROWS * rows[0].nbytes):
            if run < 0:
                _check(block.batch.column("ordinal").to_numpy(), block.batch.column("tokens"), rows)
        n_rows = steps * STEP_ROWS
        cpu_us = (time.process_time() - began) * 1e6 / n_rows
        if run >= 0:
            yield Reading(cpu_us, (index.read_so_far[1] - before) / (n_rows * rows[0].nbytes))


def _check(ordinals: np.ndarray, given: pa.Array, rows: np.ndarray) -> None:
    found = np.frombuffer(given.buffers()[2], rows.dtype).reshape(-1, rows.shape[1])
    if not np.array_equal(found, rows[ordinals]):
        raise WrongAnswer("A blend gave other rows than were written. Mend the reader first.")


def _best(readings: tuple[Reading, ...]) -> float:
    return min(reading.cpu_us for reading in readings)


def _median(readings: tuple[Reading, ...]) -> float:
    return statistics.median(reading.cpu_us for reading in readings)


def _show(report: Report, width: int, costs: dict[Layout, Cost]) -> None:
    (length,) = {layout.length for layout in costs}
    title = f"{width} bytes a token, CPU in us a row of {length * width:,} bytes"
    columns = ("bytes/token", "write", "single", "read/used", "window", "read/used")
    made = table(title, "rows a page, codec", *columns)
    for layout, it in costs.items():
        made.add_row(
            f"{layout.page_rows}, {layout.codec}",
            f"{it.file_bytes:.2f}",
            f"{it.write_us:.1f}",
            f"{_median(it.single):.1f}",
            f"{it.single[0].read:.2f}",
            f"{_median(it.window):.1f}",
            f"{it.window[0].read:.2f}",
        )
    report.tables.append(made)


def _add(report: Report, layout: Layout, it: Cost) -> None:
    name = f"layout.{layout.name}"
    report.rows += [
        Row(f"{name}.file", it.file_bytes, "bytes/token"),
        Row(f"{name}.write_cpu", it.write_us, "us/row"),
    ]
    for how, readings in (("single", it.single), ("window", it.window)):
        report.rows += [
            Row(f"{name}.{how}.cpu_best", _best(readings), "us/row"),
            Row(f"{name}.{how}.cpu_median", _median(readings), "us/row"),
            Row(f"{name}.{how}.read_by_used", readings[0].read, "ratio"),
        ]


def _add_aim(report: Report, width: int, costs: dict[Layout, Cost]) -> None:
    """What packing writes beside the layout of about the fewest bytes whose windows are cheapest."""
    fewest = min(it.file_bytes for it in costs.values())
    cheapest = min(_best(it.window) for it in costs.values() if it.file_bytes <= AS_FEW_BYTES * fewest)
    chosen = costs[Layout(width, PACKING_ROWS, PACKING_CODEC)]
    name = f"layout.packing.w{width}"
    report.rows += [
        at_most(f"{name}.window_of_cheapest", _best(chosen.window) / cheapest, "ratio", MOST_OF_CHEAPEST),
        at_most(f"{name}.file_of_fewest", chosen.file_bytes / fewest, "ratio", AS_FEW_BYTES),
    ]
