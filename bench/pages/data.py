"""The rows that `bench pages` reads: 1 GiB of packed tokens, in every reader's own files.

Written once below FACTORY_CACHE. Tokens are random, so files compress worse than real text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.cache import cached
from bench.formats import write_parquet
from blender.pages import get_idx_matrix
from factory.lake.schemas.packing import PACKED

ROWS, LENGTH = 131_072, 2_048
ROW_BYTES = 4 * LENGTH
VOCABULARY = 32_000
_PART = 4_096  # rows drawn at a time

_PACKED_ROWS = int(PACKED.properties["write.parquet.page-row-limit"])
LAYOUTS: dict[str, dict[str, Any]] = {
    "packed": {
        "write_batch_size": _PACKED_ROWS,
        "compression": "zstd",
        "compression_level": 3,
        "row_group": 16_384,
    },
    "plain": {"write_batch_size": 1, "compression": "none", "row_group": 16_384},
    "p8": {"write_batch_size": 8, "compression": "none", "row_group": 1_000},
}
"""The layout that packing writes, zstd at Iceberg's default level, and uncompressed pages of 1 and 8 rows.

pyarrow writes a page whenever a batch has at least a byte."""
SCHEMA = pa.schema([pa.field("tokens", pa.binary(), nullable=False)])


def written(progress: Console) -> Path:
    """The folder with `rows.npy` and a Parquet file per layout; written if missing."""

    def make(home: Path) -> None:
        progress.print(f"writing 1 GiB of rows and {len(LAYOUTS)} Parquet files into {home}")
        write(home, ROWS)

    return cached(f"pages/{ROWS}x{LENGTH}-{'-'.join(LAYOUTS)}", make)


def write(home: Path, n_rows: int) -> None:
    """Write `n_rows` rows in every layout of ours."""
    rows = np.lib.format.open_memmap(home / "rows.npy", "w+", np.int32, (n_rows, LENGTH))
    random = np.random.default_rng(0)
    for begin in range(0, n_rows, _PART):
        part = rows[begin : begin + _PART]
        part[:] = random.integers(0, VOCABULARY, part.shape, dtype=np.int32)
    rows.flush()
    for name, options in LAYOUTS.items():
        path = home / f"{name}.parquet"
        write_parquet(path, rows, SCHEMA, write_statistics=False, data_page_size=1, **options)


def index_of(home: Path, layout: str, times: int = 1) -> Path:
    """The index that `save_index` saves."""
    return home / f"{layout}.x{times}.pages"  # repeated in `reader`: a peer cannot import this module


def save_index(home: Path, layout: str, times: int = 1) -> None:
    """Save the page index of a layout's file, listed `times` times, for readers to map."""
    get_idx_matrix([home / f"{layout}.parquet"] * times, "tokens").save(index_of(home, layout, times))
