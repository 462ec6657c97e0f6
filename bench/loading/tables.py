"""The tables that `bench loading` plans: packed text of many sources, and blends of them by rows a step.

    packed.s<n>.parquet     rows of full length: documents of drawn lengths, one after the other
    lake/                   their tables and the blends

A plan reads the lengths of documents and no token, so all tokens are zero, stored once a file. A row's
documents are cut as packing cuts them. Written once below FACTORY_CACHE.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console

from bench.cache import cached
from bench.lakes import add_packed, own_lake
from blender.catalog.blends import open_blends
from blender.opened.blend import Blend
from blender.records import Source
from factory.lake.schemas.packing import PACKED

Ints = npt.NDArray[np.int64]

SOURCES = 306
LENGTH = 8_192
PAGE_ROWS = int(PACKED.properties["write.parquet.page-row-limit"])
EPOCH_STEPS = 4  # of the largest step
MEAN_LOG, MEAN_SPREAD, SIGMA_LOG = 6.3, 0.8, 1.2
"""Lengths are lognormal; the mean of their logarithms is normal over the sources."""
_SEED = 0


def written(sizes: Sequence[int], progress: Console) -> Path:
    """The folder of the tables and of a blend for each size of a step; written if missing."""

    def make(home: Path) -> None:
        progress.print(f"writing {max(sizes) * EPOCH_STEPS:,} packed rows in {SOURCES} tables into {home}")
        write(home, sizes, SOURCES)

    return cached(f"loading/{SOURCES}x{LENGTH}-{'-'.join(map(str, sizes))}", make)


def write(home: Path, sizes: Sequence[int], sources: int) -> None:
    """Write tables whose rows last `EPOCH_STEPS` of the largest steps, and blends of steps of all sizes."""
    lake = own_lake(home / "lake")
    lake.home.mkdir(parents=True)
    for number, weight in enumerate(weights(max(sizes), sources)):
        path = home / f"packed.s{number}.parquet"
        _write_rows(path, number, EPOCH_STEPS * weight)
        content = f"{number}-{weight}-{path.stat().st_size}"
        add_packed(lake, f"s{number}", [path], content, token_bytes=2, length=LENGTH, schema=PACKED.columns)
    blends = open_blends(lake)
    ids = {size: blends.create(_sources(weights(size, sources)), _SEED).id for size in sizes}
    (home / "blends.json").write_text(json.dumps(ids))


def blend_of(home: Path, size: int) -> Blend:
    """The blend whose steps have `size` rows, opened."""
    ids = json.loads((home / "blends.json").read_text())
    return open_blends(own_lake(home / "lake")).open(ids[str(size)])


def weights(size: int, sources: int) -> list[int]:
    """Rows of each source in a step of `size`, at least one: shares drawn by a flat Dirichlet law."""
    shares = np.random.default_rng(_SEED).dirichlet(np.ones(sources))
    rows = 1 + (shares * (size - sources)).astype(np.int64)
    rows[rows.argmax()] += size - rows.sum()
    return [int(count) for count in rows]


def _sources(rows: Sequence[int]) -> list[Source]:
    return [
        Source(table=f"packed.s{number}", weight=weight, shuffle="row", oversample=True)
        for number, weight in enumerate(rows)
    ]


def _write_rows(path: Path, number: int, n_rows: int) -> None:
    zeros = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(n_rows, dtype=np.int32)), pa.array([bytes(2 * LENGTH)], pa.binary())
    )
    write_rows(path, number, zeros, use_dictionary=["tokens"])


def write_rows(path: Path, number: int, tokens: pa.Array, **options: Any) -> None:
    """Write rows of `tokens`, of the documents of source `number`, in pages and columns as packing does."""
    n_rows = len(tokens)
    ends = _document_ends(number, n_rows * LENGTH)
    cuts = np.union1d(ends, np.arange(0, n_rows * LENGTH + 1, LENGTH))
    starts, lengths = cuts[:-1], np.diff(cuts)
    document = np.searchsorted(ends, starts, side="right")
    begins = np.concatenate([[0], ends])[document]
    names = pc.binary_join_element_wise(f"s{number}", pa.array(document).cast(pa.string()), "-")
    schema = PACKED.columns
    segments = schema.field("segments").type
    pieces = pa.StructArray.from_arrays(
        [names, pa.array(starts - begins), pa.array(lengths)], fields=list(segments.value_type)
    )
    offsets = pa.array(np.searchsorted(starts, LENGTH * np.arange(n_rows + 1)).astype(np.int32))
    columns = {
        "ordinal": np.arange(n_rows),
        "tokens": tokens,
        "n_tokens": np.full(n_rows, LENGTH),
        "segments": pa.ListArray.from_arrays(offsets, pieces, type=segments),
        "append": np.zeros(n_rows, dtype=np.int64),
        "shard": np.zeros(n_rows, dtype=np.int64),
        "chunk": np.zeros(n_rows, dtype=np.int64),
        "partition": pa.nulls(n_rows, pa.string()),
    }
    position = schema.get_field_index("tokens")
    stored = schema.set(position, pa.field("tokens", tokens.type, nullable=False))
    pq.write_table(
        pa.table(columns, schema=stored),
        path,
        compression="zstd",
        max_rows_per_page=PAGE_ROWS,
        write_page_index=True,
        store_schema=False,
        **options,
    )


def _document_ends(number: int, n_tokens: int) -> Ints:
    """Where the documents of a source end, up to its last token."""
    random = np.random.default_rng([_SEED, number])
    mean = random.normal(MEAN_LOG, MEAN_SPREAD)
    ends = np.empty(0, dtype=np.int64)
    while not len(ends) or ends[-1] < n_tokens:
        lengths = np.maximum(1, random.lognormal(mean, SIGMA_LOG, 1 + n_tokens // 1_000)).astype(np.int64)
        ends = np.concatenate([ends, np.cumsum(lengths) + (ends[-1] if len(ends) else 0)])
    return ends[ends < n_tokens]
