"""The time from opening a blend to its first rows, at the front or anywhere, and the cost of indexes.

Blends of 3, 30 and 300 tables and 1e6 to 1e9 rows are opened in processes of their own: with no page index on
disk, with one, and at steps far into the blend. Then an index of up to 1e8 pages is built, saved and opened.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.first_batch.data import SAME, STEP_ROWS, written
from bench.harness import Report, Row, at_most, table
from bench.peers import answer
from factory.settings import settings

ROWS = (10**6, 10**9)
SOURCES = (3, 30, 300)
FAR = (10**3, 10**6, 10**9)
"""Steps at which a blend is resumed; its sources are oversampled, so it never ends."""
FILE_PAGES = 100_000
LISTED = (10, 100, 1000)
"""How often a file of FILE_PAGES pages is listed: up to 1e8 pages."""
RUNS = 3
MOST_S, MOST_INDEX_S = 0.1, 10.0
READER = "bench.first_batch.reader"
CAVEATS = [
    "Files and indexes are in the page cache; processes have done their imports.",
    f"Rows are two bytes of tokens in pages of {SAME:,} rows, so that 1e9 rows fit on a disk.",
    "The tables of one blend share the bytes of their files (links); each has paths and indexes of its own.",
    "The index of 1e8 pages lists one file of 100,000 pages a thousand times; each listing is scanned again.",
    "200e9 tokens in plain rows of 2,048, one row per page, are 98e6 pages.",
]


def measure(progress: Console) -> Report:
    """Write missing tables, then open them."""
    report = Report(
        CAVEATS, f"{_power(ROWS[0])} to {_power(ROWS[-1])} rows; a step has {STEP_ROWS} rows of all sources"
    )
    columns = "rows | sources | pages | wall s | CPU s | with ordinals s | MB"
    indexes = table("Indexes rebuilt", columns)
    columns = " | ".join(["rows | sources | first", *map(_power, FAR)])
    batches = table("From opening to a step's rows, s: median (best) of 3", columns)
    for rows in ROWS:
        for sources in SOURCES:
            home = written(rows, sources, progress)
            progress.print(f"opening {sources} sources of {rows:,} rows")
            name = f"first_batch.{_power(rows)}.{sources}"
            _add_index(report, indexes, f"{name}.index", rows, sources, answer(READER, home, "index"))
            found = {step: [answer(READER, home, step) for _ in range(RUNS)] for step in (0, *FAR)}
            right = all(run["right"] and run["rows"] == STEP_ROWS for of in found.values() for run in of)
            report.check(f"{sources} sources of {rows:,} rows give the right rows at every step", right)
            taken = {step: [float(run["s"]) for run in of] for step, of in found.items()}
            shown = [f"{statistics.median(of):.3f} ({min(of):.3f})" for of in taken.values()]
            batches.add_row(_power(rows), f"{sources}", *shown)
            resumed = [second for step in FAR for second in taken[step]]
            report.rows += [
                at_most(f"{name}.first", statistics.median(taken[0]), "s", MOST_S),
                at_most(f"{name}.resume", statistics.median(resumed), "s", MOST_S),
            ]
    report.tables += [indexes, batches, _large(report, progress)]
    return report


def _add_index(
    report: Report, shown: Any, name: str, rows: int, sources: int, found: Mapping[str, Any]
) -> None:
    pages, n_bytes = int(found["pages"]), int(found["bytes"])
    seconds = (f"{found[name]:.2f}" for name in ("s", "cpu_s", "checked_s"))
    shown.add_row(_power(rows), f"{sources}", f"{pages:,}", *seconds, f"{n_bytes / 1e6:.2f}")
    report.rows += [
        at_most(f"{name}.wall", float(found["s"]), "s", MOST_INDEX_S),
        Row(f"{name}.cpu", float(found["cpu_s"]), "s"),
        Row(f"{name}.with_ordinals", float(found["checked_s"]), "s"),
        Row(f"{name}.bytes", n_bytes, "bytes"),
    ]


def _large(report: Report, progress: Console) -> Any:
    """Indexes of growing numbers of pages of one row."""
    home = settings().cache.resolve() / "bench" / "first_batch"
    path = uneven(home / f"uneven-{FILE_PAGES}.parquet", FILE_PAGES)
    columns = "pages | CPU s to build | wall s | bytes/page | first batch s"
    shown = table("Indexes of pages of one row", columns)
    for times in LISTED:
        pages = times * FILE_PAGES
        progress.print(f"building an index of {pages:,} pages")
        found = answer("bench.first_batch.index", path, times, home / "index")
        (home / "index").unlink()
        right = bool(found["same"]) and found["pages"] == pages
        report.check(f"an index of {pages:,} pages is read back as built", right)
        costs = (f"{found[name]:.2f}" for name in ("build_cpu_s", "build_s", "bytes_a_page"))
        shown.add_row(_power(pages), *costs, f"{found['first_batch_s']:.4f}")
        name, built = f"first_batch.index.{_power(pages)}", float(found["build_cpu_s"])
        report.rows += [
            at_most(f"{name}.build_cpu", built, "s", MOST_INDEX_S),
            at_most(f"{name}.build", float(found["build_s"]), "s", MOST_INDEX_S),
            Row(f"{name}.bytes_a_page", float(found["bytes_a_page"]), "bytes"),
            at_most(f"{name}.first", float(found["first_batch_s"]), "s", MOST_S),
        ]
    return shown


def uneven(path: Path, pages: int) -> Path:
    """A file of `pages` pages, one row of varying length each; written if missing."""
    if not path.exists():
        lengths = np.random.default_rng(5).integers(1, 9, pages)
        tokens = [bytes(length) for length in lengths.tolist()]
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            pa.table({"tokens": pa.array(tokens, pa.binary())}),
            path,
            use_dictionary=False,
            compression="none",
            data_page_size=1,
            write_batch_size=1,
            write_page_index=True,
        )
    return path


def _power(count: int) -> str:
    return f"1e{len(str(count)) - 1}"
