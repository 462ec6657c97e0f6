"""The tables that the deliveries of `bench loading` read: packed rows whose tokens are drawn by Zipf's law.

    packed.s<n>.parquet     rows of 8,192 tokens of 2 bytes, in zstd pages of 8 rows
    lake/                   their tables and the blend of all
    blend                   its id

Tokens are stored plain, as packing writes them, or by a dictionary, as pyarrow does unless told otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.cache import cached
from bench.lakes import add_packed, own_lake
from bench.loading.tables import LENGTH, PAGE_ROWS, Ints, write_rows
from blender.arrays import as_binary
from blender.catalog.blends import open_blends
from blender.loading.cost_index import CostIndex
from blender.records import Source
from factory.lake.schemas.packing import PACKED

VOCABULARY = 32_000
SHUFFLE: dict[str, Any] = {"shuffle": "page_window", "page_rows": PAGE_ROWS, "window_pages": 1_024}
"""The shuffle that docs/shuffles.md recommends for compressed pages; a window is 128 MiB of tokens."""
_SEED = 3
_ROW_GROUP = 8_192


def written(weights: list[int], source_rows: int, progress: Console, *, dictionary: bool = False) -> Path:
    """The folder of tables of `source_rows` rows, and of a blend of `weights` rows a step."""
    encoding = "dictionary" if dictionary else "plain"

    def make(home: Path) -> None:
        size = len(weights) * source_rows * LENGTH * 2 / 2**20
        progress.print(f"writing {size:,.0f} MiB of tokens in {len(weights)} tables into {home}")
        write(home, weights, source_rows, dictionary=dictionary)

    name = f"{len(weights)}x{source_rows}x{LENGTH}-{sum(weights)}-{encoding}"
    return cached(f"loading/text-{name}", make)


def write(home: Path, weights: list[int], source_rows: int, *, dictionary: bool = False) -> None:
    """Write a table for each of `weights`, and a blend of as many rows a step of each."""
    lake = own_lake(home / "lake")
    lake.home.mkdir(parents=True)
    for number in range(len(weights)):
        path = table_file(home, number)
        tokens = drawn_tokens(number, source_rows)
        n = len(tokens)
        column = as_binary(tokens.reshape(-1), np.arange(n + 1) * LENGTH)
        by_dictionary = {"use_dictionary": ["tokens"], "dictionary_pagesize_limit": n * LENGTH * 3}
        plain = {"use_dictionary": False, "write_batch_size": PAGE_ROWS, "data_page_size": 1 << 24}
        options: dict[str, Any] = by_dictionary if dictionary else plain
        write_rows(path, number, column, row_group_size=_ROW_GROUP, compression_level=3, **options)
        content = f"{number}-{source_rows}-{dictionary}-{path.stat().st_size}"
        add_packed(lake, f"s{number}", [path], content, token_bytes=2, length=LENGTH, schema=PACKED.columns)
    sources = [
        Source(table=f"packed.s{number}", weight=weight, oversample=True, **SHUFFLE)
        for number, weight in enumerate(weights)
    ]
    blends = open_blends(lake)
    blend = blends.open(blends.create(sources, _SEED).id)
    for source in blend.sources:
        CostIndex(source.reader)  # writes the lengths of the rows, by which plans are made
    (home / "blend").write_text(blend.id)


def blend_id(home: Path) -> str:
    """The id of the blend of all tables."""
    return (home / "blend").read_text()


def table_file(home: Path, number: int) -> Path:
    """The file of a source."""
    return home / f"packed.s{number}.parquet"


def stored_tokens(home: Path, number: int = 0) -> np.ndarray:
    """The rows of a source as pyarrow reads them; uint16, shape [rows, LENGTH]."""
    column = pq.read_table(table_file(home, number), columns=["tokens"]).column("tokens")
    return np.concatenate([_matrix(chunk) for chunk in column.chunks])


def drawn_tokens(number: int, n_rows: int) -> np.ndarray:
    """Rows of tokens; uint16, shape [n_rows, LENGTH]."""
    chances = 1 / np.arange(1, VOCABULARY + 1)
    words: Ints = np.searchsorted(np.cumsum(chances / chances.sum()), np.arange(1 << 16) / (1 << 16))
    random = np.random.default_rng([_SEED, number])
    return words.astype(np.uint16)[random.integers(0, 1 << 16, (n_rows, LENGTH), dtype=np.uint16)]


def _matrix(column: pa.BinaryArray) -> np.ndarray:
    flat = np.frombuffer(column.buffers()[2], np.uint16, len(column) * LENGTH, column.offset * LENGTH * 2)
    return flat.reshape(-1, LENGTH)
