"""This project's readers of the blend for `bench stream`, and numpy's memory map with a permutation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.formats import Tokens, matrix, read_counters
from bench.stream.rows import BATCH, LENGTH, SOURCES, STEP_ROWS, Reader, Stream, array, counted

if TYPE_CHECKING:
    from blender.opened.blend import Blend

MEMORY_BYTES = 200 << 20  # three windows of 64 MiB; a page is dropped once all its rows are taken
SEED = 11


def direct(layout: str) -> Callable[[Path, Any], Stream]:
    """The blend of a layout, read in this process; the state is the number of batches read."""

    def opened(home: Path, state: Any) -> Stream:
        done = [state or 0]
        return Stream(_direct(home, layout, done), lambda: done[0])

    return opened


def _direct(home: Path, layout: str, done: list[int]) -> Iterator[Tokens]:
    from blender.spec.step_range import StepRange
    from blender.trainer.local import BLOCK_BYTES

    blend = opened_blend(home, layout)
    per_step = STEP_ROWS // BATCH
    skipped = done[0] % per_step * BATCH
    begin = done[0] // per_step
    for block in blend.fetch(StepRange(begin, (blend.steps or 0) - begin), block_bytes=BLOCK_BYTES):
        rows = matrix(block.batch.column("tokens").buffers()[2], LENGTH)
        for row in range(skipped, len(rows), BATCH):
            done[0] += 1
            yield rows[row : row + BATCH]
        skipped = 0


def ranks(home: Path, layout: str, n_ranks: int) -> dict[str, int]:
    """Bytes read for an epoch: by one reader, by ranks that share a cache, by ranks that share nothing."""

    from blender.spec.ranks import RankSlice
    from blender.spec.step_range import StepRange

    def read(*shares: tuple[Blend, int, int]) -> int:
        before = read_counters()["rchar"]
        for _ in zip(
            *(it.fetch(StepRange(0, it.steps), RankSlice(rank, of)) for it, rank, of in shares), strict=True
        ):
            pass
        return read_counters()["rchar"] - before

    shared = opened_blend(home, layout)
    return {
        "one": read((opened_blend(home, layout), 0, 1)),
        "together": read(*((shared, rank, n_ranks) for rank in range(n_ranks))),
        "alone": sum(read((opened_blend(home, layout), rank, n_ranks)) for rank in range(n_ranks)),
    }


def opened_blend(home: Path, layout: str) -> Blend:
    """The blend of a layout, with a cache of its own."""
    from bench.lakes import own_lake
    from blender.catalog.blends import open_blends

    blends = json.loads((home / "blends.json").read_text())
    return open_blends(own_lake(home / "lake"), MEMORY_BYTES).open(blends[layout])


def memmap(home: Path, state: Any) -> Stream:
    """numpy: a permutation of all rows of all sources, looked up in memory maps."""
    sources = [array(home, source) for source in SOURCES]
    ends = np.cumsum([len(rows) for rows in sources])
    order = np.random.default_rng(SEED).permutation(ends[-1])

    def read(part: slice) -> Tokens:
        wanted = order[part]
        which = np.searchsorted(ends, wanted, side="right")
        batch = np.empty((len(wanted), LENGTH), np.int32)
        for source, rows in enumerate(sources):
            chosen = which == source
            batch[chosen] = rows[wanted[chosen] - (ends[source] - len(rows))]
        return batch

    return counted(len(order), state, read)


_BLENDER = ("blender.catalog.blends", "bench.lakes")
READERS = {
    "memmap": Reader((), memmap),
    "packed": Reader(_BLENDER, direct("packed")),
    "plain": Reader(_BLENDER, direct("plain")),
}
