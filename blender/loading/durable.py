"""Planned steps as durable batches: a constructor's results are stored, and any run reads them again.

    Producer("s3://bucket/run7", PlannedProduction(open_blends(settings).open(spec.blend), spec)).run()

    for step in BatchReader("s3://bucket/run7", spec.mesh).read(StepRange(), rank):
        for microbatch in planned_step(step).microbatches: ...      # as `open_loading` gives them

A plan is a pure function of its spec and offset, and so is a loaded step. A `transform` need not be one,
here alone in loading: its result is stored, and never made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from blender.errors import InvalidRequest
from blender.global_batches.blend_production import name_of
from blender.global_batches.format.slices import Slices
from blender.global_batches.json_values import Json
from blender.global_batches.namespace import Namespace
from blender.global_batches.producer import ProducedBatch, Production
from blender.global_batches.rank_slice import GlobalBatchSlice
from blender.global_batches.stored_rows import packed_rows, packed_slices, require_layout
from blender.loading.loader import Loader
from blender.loading.spec import LoadingSpec
from blender.loading.step import LoadedStep
from blender.opened.blend import Blend
from blender.spec.step_range import StepRange


class PlannedProduction(Production):
    """The planned steps of a spec over its blend, made by a loader in this process.

    `transform` makes the slices of a step from the `LoadedStep` of each dp index; its rows are not cut for
    cp ranks. `close` ends the loader's threads. Raises InvalidRequest for a spec that cannot be planned.
    """

    def __init__(
        self,
        blend: Blend,
        spec: LoadingSpec,
        *,
        loaders: int = 1,
        transform: Callable[[list[LoadedStep]], Slices] | None = None,
    ) -> None:
        self._spec, self._transform = spec, transform
        as_is, size = (lambda rows: rows), (lambda rows: int(rows.nbytes))
        self._loader: Loader[pa.RecordBatch] = Loader(blend, spec, as_is, size, loaders=loaders)

    @property
    def source(self) -> Mapping[str, Json]:
        source: dict[str, Json] = {"blend": self._spec.blend, "spec": self._spec.id}
        return source if self._transform is None else source | {"transform": name_of(self._transform)}

    def require_fit(self, namespace: Namespace) -> None:
        namespace.require_mesh(self._spec.mesh)
        if self._transform is None:
            require_layout(namespace)
        for consumer in self._loader.first_plan.consumers:
            place = self._spec.mesh.coordinate(consumer.rank)
            if (consumer.bucket, consumer.piece) != (place.dp, place.cp):
                raise InvalidRequest(
                    f"Strategy `{self._spec.strategy}` lets rank {consumer.rank} read piece {consumer.piece} "
                    f"of bucket {consumer.bucket}, and durable batches have a bucket for each dp index, "
                    "divided by its cp ranks. Use a strategy that distributes to `DP`."
                )

    def batches(self, steps: StepRange, namespace: Namespace) -> Iterator[ProducedBatch]:
        for offset, rows in self._loader.whole_steps(steps):
            loaded = [LoadedStep(offset, part) for part in rows]
            origin: Json = {
                "blend": self._spec.blend,
                "offset": offset,
                "spec": self._spec.id,
                "plan": f"{loaded[0].plan:016x}",
            }
            if self._transform is None:
                slices = packed_slices(rows, namespace.mesh, self._spec.chunking)
            else:
                slices = self._transform(loaded)
            yield ProducedBatch(offset, slices, origin)

    def close(self) -> None:
        """End the loader's threads."""
        self._loader.close()


def planned_step(step: GlobalBatchSlice) -> LoadedStep:
    """The step that a `PlannedProduction` stored as a rank reads it.

    Inner stages of a pipeline get the tokens too: all ranks of a dp and cp index read the same bytes. Raises
    InvalidRequest on a mesh of more dp indexes, where one step would have the plans of several, and on one of
    fewer for pictures that ranks encode for each other, because the parts of a batch then come one by one.
    """
    if step.batches > 1:
        raise InvalidRequest(
            f"A step of this mesh is {step.batches} batches, each with a plan of its own. Read planned "
            "batches on the mesh of their spec or a smaller one, or as rows without `planned_tensors`."
        )
    step_of_rank = LoadedStep(step.offset, packed_rows(step).arrow)
    if step.substeps > 1 and step_of_rank.has_pictures and _encodes_for_others(step_of_rank):
        raise InvalidRequest(
            f"Step {step.offset:,} has pictures that ranks of its mesh encode for each other, and this mesh "
            "reads it in several parts. Read it on the mesh of its spec, or produce it by strategy `llm`."
        )
    return step_of_rank


def _encodes_for_others(step: LoadedStep) -> bool:
    """Whether a picture of the step's rows is not among its own pictures, or one of others is."""
    nodes = {int(node) for pictures in step.images for node in pictures.node}
    buckets = {int(bucket) for pictures in step.images for bucket in pictures.to["bucket"]}
    encoders = {int(node) for places in step.placeholders for node in places["node"]}
    return len(buckets) > 1 or not encoders <= nodes
