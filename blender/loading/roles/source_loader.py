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

from blender.loading.pictures.encoders import EncoderPlaces
from blender.loading.pictures.handover import PictureHandover
from blender.loading.plan import Plan
from blender.loading.roles.picture_loader import PictureLoader, Prepare
from blender.loading.roles.plan_programs import PlanProgram
from blender.loading.runtime.threads import Mailbox
from blender.opened.blend import Blend
from blender.spec.row_order import Origins
from factory.lake.schemas.images import IMAGES

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Taken:
    """Rows of a bucket from the sources of one loader, in the order of their microbatches."""

    numbers: Ints
    """The place of each row in the step; shape [n]."""
    rows: pa.RecordBatch


class SourceLoader:
    """Reads the rows of `sources`, numbers of a blend's sources; safe for many threads."""

    def __init__(
        self,
        blend: Blend,
        sources: Collection[int],
        planner: Mailbox,
        places: EncoderPlaces | None = None,
        prepare: Prepare | None = None,
        program: str = "",
    ) -> None:
        """With `places` of an encoder pictures are read, and made into patches where `prepare` is given.

        `program` is the spec's `loader_do_plan`.
        """
        self._blend, self._planner = blend, planner
        self._program = PlanProgram(program, "loader_do_plan")
        self._is_own = np.isin(np.arange(len(blend.sources)), list(sources))
        self._pictures = None
        self._schema = blend.schema
        if places is not None:
            self._pictures = PictureLoader(blend, self._is_own, places, prepare)
            self._schema = pa.schema([field for field in blend.schema if field.name != IMAGES])

    def take(self, offset: int, bucket: int) -> Taken:
        """The rows of a bucket that belong to these sources.

        Raises InvalidRequest and EndOfData for a step that cannot be planned, and the errors of reading.
        """
        plan: Plan = self._planner.result("plan", offset)
        step, numbers = plan.step, plan.rows_of_bucket(bucket)
        numbers = numbers[self._is_own[step.source[numbers]]]
        if not len(numbers):  # no source of this loader has a row in the bucket
            return Taken(numbers, pa.RecordBatch.from_pylist([], schema=self._schema))
        origins = Origins(step.source[numbers], step.epoch[numbers], step.ordinal[numbers])
        leaving = {} if self._pictures is None else {"without": IMAGES}
        rows = self._blend.read(origins, np.full(len(numbers), step.offset), **leaving)
        return Taken(numbers, self._program.run(plan, numbers, rows))

    def take_pictures(self, offset: int, bucket: int) -> PictureHandover:
        """The pictures of these sources in the rows of a bucket, and all that its ranks encode.

        Raises as `take` does, and InvalidRequest for a picture that does not decode and for a transform that
        fails.
        """
        assert self._pictures is not None
        return self._pictures.take(self._planner.result("plan", offset), bucket)
