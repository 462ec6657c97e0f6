"""The tables that `bench first_batch` opens: a billion rows in little space.

    <rows>/parts/<n>.parquet              ordinals n * size .. (n + 1) * size - 1, of size = rows / 300
    <rows>/<sources>/<n>-<part>.parquet   links to them: the files of table `packed.s<n>`
    <rows>/<sources>/lake/                a lake of these tables, and a blend of them
    <rows>/<sources>/blend                its id

A row is an ordinal, delta-encoded, and two bytes of tokens that stay the same for 4,096 rows, run-length
encoded. Everything that an index needs exists (footers, offset indexes, row groups, ordinals), and every row
can be read. There are always 300 files, spread evenly. Written once below FACTORY_CACHE.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.lakes import add_packed, own_lake
from blender.catalog.blends import open_blends
from blender.records import Source
from factory.settings import settings

FILES = 300
STEP_ROWS = 300
SAME = 4096  # consecutive rows with the same tokens, and rows of a page
_ROW_GROUP = 1 << 18


def written(rows: int, sources: int, progress: Console) -> Path:
    """The folder of `rows` rows in `sources` tables, with a blend of them."""
    home = settings().cache.resolve() / "bench" / f"first_batch-{SAME}" / f"{rows}" / f"{sources}"
    if not (home / "blend").exists():
        progress.print(f"writing {rows:,} rows in {sources} sources into {home}")
        write(home, rows // FILES, sources)
    return home


def write(home: Path, file_rows: int, sources: int, files: int = FILES) -> None:
    """Write `files` files of `file_rows` rows, spread over the tables of a lake, and a blend of all."""
    lake = own_lake(home / "lake")
    lake.home.mkdir(parents=True, exist_ok=True)
    for source in range(sources):
        paths = [_linked(home, source, part, file_rows) for part in range(files // sources)]
        content = f"{source}-{file_rows}-{len(paths)}"
        add_packed(lake, f"s{source}", paths, content, token_bytes=2, length=1)
    named = [
        Source(table=f"packed.s{source}", weight=STEP_ROWS // sources, shuffle="row", oversample=True)
        for source in range(sources)
    ]
    blend = open_blends(lake).create(named, seed=1).id
    (home / "blend").write_text(blend)


def expected(ordinals: pa.Int64Array) -> list[bytes]:
    """The tokens of rows by ordinal."""
    return [value.tobytes() for value in (ordinals.to_numpy() // SAME).astype("<u2")]


def _linked(home: Path, source: int, part: int, rows: int) -> Path:
    """A file of a table: a link, so the tables share its bytes."""
    shared = home.parent / "parts" / f"{part}.parquet"
    if not shared.exists():
        shared.parent.mkdir(exist_ok=True)
        unfinished = shared.with_suffix(".part")
        _write_part(unfinished, part * rows, rows)
        unfinished.rename(shared)
    path = home / f"{source}-{part}.parquet"
    if not path.exists():
        os.link(shared, path)
    return path


def _write_part(path: Path, first: int, rows: int) -> None:
    ordinals = np.arange(first, first + rows)
    words = ordinals // SAME
    known = pa.array([word.tobytes() for word in np.unique(words).astype("<u2")], pa.binary())
    tokens = pa.DictionaryArray.from_arrays(pa.array((words - words[0]).astype(np.int32)), known)
    pq.write_table(
        pa.table({"ordinal": ordinals, "tokens": tokens}),
        path,
        row_group_size=_ROW_GROUP,
        max_rows_per_page=SAME,
        use_dictionary=["tokens"],
        column_encoding={"ordinal": "DELTA_BINARY_PACKED"},
        write_page_index=True,
        store_schema=False,
    )
