"""Stored planned steps as PyTorch tensors.

reader = BatchReader("s3://bucket/run7", spec.mesh)
for step in BlendLoader(BatchDataset(reader, tensors=planned_tensors)):
    for microbatch in step["microbatches"]: ...             # as `LoadingDataset` gives them
"""

from __future__ import annotations

from typing import Any

from blender.global_batches.rank_slice import GlobalBatchSlice
from blender.loading.durable import planned_step
from blender.loading.torch import step_tensors


def planned_tensors(step: GlobalBatchSlice) -> dict[str, Any]:
    """The microbatches of a step that a `PlannedProduction` stored: the `tensors` of a `BatchDataset`.

    With its `substep`, where a batch is several steps of the mesh.
    """
    tensors = step_tensors(planned_step(step))
    return tensors | ({"substep": step.substep} if step.substeps > 1 else {})
