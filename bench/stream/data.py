"""The rows that `bench stream` reads: three sources of packed tokens, as arrays and as tables of a lake.

    rows-0.npy  rows-1.npy  rows-2.npy      60, 30 and 10 % of the rows, (rows, 2,048) int32
    lake/                                   packed.s<n>_<layout>: the same rows in Parquet
    blends.json                             the blend of each layout

A row's first two tokens are its number in the source and the source; they identify the rows that a reader
gives. The other tokens follow Zipf's law, as words do. Written once below FACTORY_CACHE.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bench.cache import cached
from bench.formats import write_parquet
from bench.lakes import TWO_COLUMNS, add_packed, own_lake
from bench.stream.rows import LENGTH, SHARES, SOURCES, STEP_ROWS, array, n_rows_of, rows_file
from blender.catalog.blends import open_blends
from blender.records import Source
from factory.lake.schemas.packing import PACKED

VOCABULARY = 32_000
SEED = 7
PAGE_ROWS = int(PACKED.properties["write.parquet.page-row-limit"])
LAYOUTS: dict[str, dict[str, object]] = {
    "packed": {"data_page_size": PAGE_ROWS * 4 * LENGTH, "compression": "zstd", "compression_level": 3},
    "plain": {"data_page_size": 4 * LENGTH, "compression": "none"},
}
"""The layout that packing writes, zstd at Iceberg's default level, and uncompressed pages of one row.

pyarrow ends a page once it has reached a size."""
SHUFFLES: dict[str, dict[str, Any]] = {
    "packed": {"shuffle": "page_window", "page_rows": PAGE_ROWS, "window_pages": 1024},
    "plain": {"shuffle": "row"},
}
_PART = 2_048  # rows drawn or written at a time
_ROW_GROUP = 16_384


def written(rows: int, progress: Console) -> Path:
    """The folder of `rows` rows in all, with arrays, tables and blends; written if missing."""

    def make(home: Path) -> None:
        progress.print(f"writing {rows * LENGTH * 4 / 2**30:.2f} GiB of rows, twice in Parquet, into {home}")
        write(home, rows)

    return cached(f"stream/{rows}x{LENGTH}-{'-'.join(LAYOUTS)}", make)


def write(home: Path, rows: int) -> None:
    """Write arrays, tables and blends of `rows` rows."""
    for source in SOURCES:
        _draw(home, source, n_rows_of(source, rows))
    blends = {layout: _blend(home, layout) for layout in LAYOUTS}
    (home / "blends.json").write_text(json.dumps(blends))


def _draw(home: Path, source: int, n_rows: int) -> None:
    path = rows_file(home, source)
    rows = np.lib.format.open_memmap(path, "w+", np.int32, (n_rows, LENGTH))
    random = np.random.default_rng(source)
    chances = 1 / np.arange(1, VOCABULARY + 1)
    words = np.searchsorted(np.cumsum(chances / chances.sum()), np.arange(1 << 16) / (1 << 16)).astype(
        np.int32
    )
    for begin in range(0, n_rows, _PART):
        part = rows[begin : begin + _PART]
        part[:] = words[random.integers(0, 1 << 16, part.shape, dtype=np.uint16)]
    rows[:, 0] = np.arange(n_rows)
    rows[:, 1] = source
    rows.flush()


def _blend(home: Path, layout: str) -> str:
    """Write the tables of a layout; return the id of their blend."""
    lake = own_lake(home / "lake")
    for source in SOURCES:
        name = f"s{source}_{layout}"
        path = home / f"packed.{name}.parquet"
        options = {"write_batch_size": 1, **LAYOUTS[layout]}
        write_parquet(path, array(home, source), TWO_COLUMNS, _ROW_GROUP, **options)
        content = f"{source}-{layout}-{path.stat().st_size}"
        add_packed(lake, name, [path], content, token_bytes=4, length=LENGTH)
    return open_blends(lake).create(_sources(layout), SEED).id


def _sources(layout: str) -> list[Source]:
    return [
        Source(table=f"packed.s{source}_{layout}", weight=STEP_ROWS * share // 100, **SHUFFLES[layout])
        for source, share in enumerate(SHARES)
    ]
