"""The rows of some sources, read for a bucket of a step.

    loader = SourceLoader(blend, sources=[0, 2], planner=planner)
    loader.take(offset=1_000, bucket=0)         # Taken(numbers=array([3, 17, ...]), rows=RecordBatch)

Decoded pages wait in the bounded cache of the blend's readers for other rows of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.loading.plan import Plan
from blender.loading.runtime.threads import Mailbox
from blender.opened.blend import Blend
from blender.spec.row_order import Origins

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Taken:
    """Rows of a bucket from the sources of one loader, in the order of their microbatches."""

    numbers: Ints
    """The place of each row in the step; shape [n]."""
    rows: pa.RecordBatch


class SourceLoader:
    """Reads the rows of `sources`, numbers of a blend's sources; safe for many threads."""

    def __init__(self, blend: Blend, sources: Collection[int], planner: Mailbox) -> None:
        self._blend, self._planner = blend, planner
        self._is_own = np.isin(np.arange(len(blend.sources)), list(sources))

    def take(self, offset: int, bucket: int) -> Taken:
        """The rows of a bucket that belong to these sources.

        Raises InvalidRequest and EndOfData for a step that cannot be planned, and the errors of reading.
        """
        plan: Plan = self._planner.result("plan", offset)
        step, numbers = plan.step, plan.rows_of_bucket(bucket)
        numbers = numbers[self._is_own[step.source[numbers]]]
        if not len(numbers):  # no source of this loader has a row in the bucket
            return Taken(numbers, pa.RecordBatch.from_pylist([], schema=self._blend.schema))
        origins = Origins(step.source[numbers], step.epoch[numbers], step.ordinal[numbers])
        return Taken(numbers, self._blend.read(origins, np.full(len(numbers), step.offset)))
