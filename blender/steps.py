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
from blender.spec.step_range import StepRange


class StepRows(NamedTuple):
    """Rows of consecutive steps, which complete every step before `next_offset`.

    `begins` is False if they continue the last step of the previous rows.
    """

    next_offset: int
    batch: pa.RecordBatch
    begins: bool


def batches(rows: Iterable[StepRows], steps: StepRange) -> Iterator[Batch]:
    """The steps of a range, one after the other; raises BlenderFailure for rows of any other step."""
    offset, stride = steps.offset, steps.stride
    parts: list[pa.RecordBatch] = []
    for next_offset, batch, begins in rows:
        if begins:
            parts.clear()  # of an interrupted step, which is sent again
        offsets = as_numpy(batch.column("offset"))
        starts = np.flatnonzero(offsets[1:] != offsets[:-1]) + 1
        block = Block(batch)
        for first, stop in zip([0, *starts.tolist()], [*starts.tolist(), len(offsets)], strict=True):
            if offsets[first] != offset:
                raise BlenderFailure(
                    f"Expected step {offset:,}, got step {offsets[first]:,}. Use one version of Blender on "
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
