"""The steps of a blend as global batches: from any producer, they equal the steps of `open_blend`.

    production = BlendProduction(open_blend("4f1c..."))         # or BlenderClient("10.0.0.5:50051").open(...)
    Producer("s3://bucket/run7", production).run()

`transform` makes other batches of the steps. Its results may be random, such as a model's: they are stored
here first, and every run reads the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from blender.batch import Batch
from blender.chunks import Chunking
from blender.errors import InvalidRequest
from blender.global_batches.format.slices import Slices
from blender.global_batches.json_values import Json
from blender.global_batches.namespace import Namespace
from blender.global_batches.producer import ProducedBatch, Production
from blender.global_batches.stored_rows import packed_slices, require_layout
from blender.spec.ranks import WHOLE_STEP, RankSlice
from blender.spec.step_range import StepRange
from blender.trainer.reader import BlendHandle


class BlendProduction(Production):
    """The steps of a blend; `transform` makes the slices of a complete step, with its rows on axis 0.

    `chunking` is the unit that the cp ranks of a mesh divide: rows, or each document.
    """

    def __init__(
        self,
        blend: BlendHandle,
        *,
        chunking: Chunking = "row",
        transform: Callable[[Batch], Slices] | None = None,
    ) -> None:
        self.blend, self._chunking, self._transform = blend, chunking, transform

    @property
    def source(self) -> Mapping[str, Json]:
        source: dict[str, Json] = {"blend": self.blend.id}
        if self._transform is None:
            return source | {"chunking": self._chunking}
        return source | {"transform": name_of(self._transform)}

    def require_fit(self, namespace: Namespace) -> None:
        if self._transform is not None:
            return
        require_layout(namespace)
        for piece in self.blend.describe().pieces:
            if piece.rows_per_step % namespace.dp:
                raise InvalidRequest(
                    f"A step of blend {self.blend.id} has {piece.rows_per_step:,} rows (from step "
                    f"{piece.offset:,} on), which the {namespace.dp} dp indexes of the namespace cannot "
                    "share evenly. Create a namespace for a dp that divides them, or blend by other weights."
                )

    def batches(self, steps: StepRange, namespace: Namespace) -> Iterator[ProducedBatch]:
        for step in self.blend.read(steps, WHOLE_STEP):
            origin: Json = {"blend": self.blend.id, "offset": step.offset}
            yield ProducedBatch(step.offset, self._slices(step, namespace), origin)

    def _slices(self, step: Batch, namespace: Namespace) -> Slices:
        if self._transform is not None:
            return self._transform(step)
        return packed_slices(parts_of(step, namespace.dp), namespace.mesh, self._chunking)


def parts_of(step: Batch, dp: int) -> list[pa.RecordBatch]:
    """The rows of each dp index."""
    rows, parts = step.arrow, (RankSlice(rank, dp).rows_of(len(step)) for rank in range(dp))
    return [rows.slice(part.start, len(part)) for part in parts]


def name_of(transform: Callable[..., object]) -> str:
    """The name on which producers of one transform agree."""
    kind = transform if hasattr(transform, "__qualname__") else type(transform)
    return f"{kind.__module__}.{kind.__qualname__}"
