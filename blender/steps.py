"""Blocks of rows, from a server or read here, cut into steps with one `Batch` each.

block   3 3 3 4 4 4 5 5 5    several small steps: a batch is a view of the block, without a copy
blocks  7 7 7 7 | 7 7 7      one large step: its parts are joined after the last one
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
    """Rows of consecutive steps, which complete every step before `next_offset`.

    `begins` is False if they continue the last step of the previous rows.
    """

    next_offset: int
    batch: pa.RecordBatch
    begins: bool


def batches(rows: Iterable[Rows], offset: int, stride: int = 1) -> Iterator[Batch]:
    """The steps `offset`, `offset + stride` and so on; raises BlenderFailure for any other step."""
    parts: list[pa.RecordBatch] = []
    for next_offset, batch, begins in rows:
        if begins:
            parts.clear()  # of an interrupted step, which is sent again
        steps = as_numpy(batch.column("offset"))
        starts = np.flatnonzero(steps[1:] != steps[:-1]) + 1
        block = Block(batch)
        for first, stop in zip([0, *starts.tolist()], [*starts.tolist(), len(steps)], strict=True):
            if steps[first] != offset:
                raise BlenderFailure(
                    f"Expected step {offset:,}, got step {steps[first]:,}. Use one version of Blender on "
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
