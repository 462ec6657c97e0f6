"""Blocks of rows cut into steps, one `Batch` each: the same for a server's blocks and for those read here.

block   3 3 3 4 4 4 5 5 5    several small steps: a batch is its rows of the block, nothing is copied
blocks  7 7 7 7 | 7 7 7      one large step: its parts are joined when the last has come
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from blender.arrays import as_numpy
from blender.batch import Batch, Block
from blender.errors import BlenderFailure


class Rows(NamedTuple):
    """Rows of consecutive steps; every step before `next_offset` is complete with them.

    `begins` is False where they carry on the step that the rows before them ended in.
    """

    next_offset: int
    batch: pa.RecordBatch
    begins: bool


def batches(rows: Iterable[Rows], offset: int, stride: int = 1) -> Iterator[Batch]:
    """The steps `offset`, `offset + stride` and so on; raises BlenderFailure where another one comes."""
    parts: list[pa.RecordBatch] = []
    for next_offset, batch, begins in rows:
        if begins:
            parts.clear()  # of a step that was cut short and comes again
        steps = as_numpy(batch.column("offset"))
        starts = np.flatnonzero(steps[1:] != steps[:-1]) + 1
        block = Block(batch)
        for first, stop in zip([0, *starts.tolist()], [*starts.tolist(), len(steps)], strict=True):
            if steps[first] != offset:
                raise BlenderFailure(
                    f"Step {offset:,} was due and step {steps[first]:,} came. Use one version of Blender on "
                    "both sides."
                )
            if offset >= next_offset:
                parts.append(batch.slice(first, stop - first))
                continue
            if parts:
                whole = pa.concat_batches([*parts, batch.slice(0, stop)])
                parts.clear()
                yield Batch(offset, offset + stride, whole)
            else:
                yield Batch.of_block(offset, offset + stride, block, first, stop)
            offset += stride
