"""Durable batches as PyTorch tensors: for each rank its slice of every step, in order.

    loader = BlendLoader(BatchDataset(BatchReader("s3://bucket/run7", mesh)), device="cuda")
    for batch in loader:
        train(batch["tokens"], batch["rewards"])        # the columns that the producers gave
        checkpoint["data"] = loader.state_dict()        # {"namespace": "0c5e...", "step": 812, ...}

Any run with the same dp and cp can load that state. A run that has read all steps waits for the next one,
until the producers have finished.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from blender.errors import InvalidRequest
from blender.global_batches.rank_slice import GlobalBatchSlice
from blender.global_batches.reader import BatchReader
from blender.global_batches.stored_rows import is_packed_rows, packed_rows
from blender.trainer.launch import launched_rank
from blender.trainer.step_dataset import StepDataset
from blender.trainer.torch import FIELDS


def slice_tensors(step: GlobalBatchSlice) -> dict[str, Any]:
    """All columns of a step as tensors over the same memory, and its `offset`.

    Do not write into them: they are views of the bytes that were read.
    """
    columns: dict[str, Any] = {name: torch.from_dlpack(array) for name, array in step.arrays.items()}
    return columns | {"offset": step.offset}


def step_tensors(step: GlobalBatchSlice) -> dict[str, Any]:
    """What `BlendDataset` gives of packed rows, and all columns of other batches."""
    if not is_packed_rows(step):
        return slice_tensors(step)
    rows = packed_rows(step)
    return {name: torch.from_dlpack(getattr(rows, name)) for name in FIELDS} | {"offset": step.offset}


class BatchDataset(StepDataset[int]):
    """Every step of a namespace from `offset` on, up to `stop` or to the end of data, through `transform`.

    `rank` defaults to the rank in `torch.distributed`, else the launcher's; the number of ranks must equal
    the mesh's. Waits for steps that are not committed yet. A loop over a loader with
    workers that is left during such a wait keeps its worker until the next step, or until the process ends.
    """

    def __init__(
        self,
        reader: BatchReader,
        *,
        offset: int = 0,
        stop: int | None = None,
        rank: int | None = None,
        transform: Callable[[Any], Any] = step_tensors,
    ) -> None:
        launch = None
        if rank is None:
            launch = launched_rank()
            rank, ranks = launch
            if ranks != reader.mesh.ranks:
                raise InvalidRequest(
                    f"This run has {ranks} ranks, and the mesh {reader.mesh} has {reader.mesh.ranks}. Start "
                    "as many, give `rank`, or open the reader with the run's mesh."
                )
        reader.mesh.coordinate(rank)  # refuses one outside it
        super().__init__(reader, rank, offset=offset, stop=stop, transform=transform, launch=launch)
        self.reader = reader

    @property
    def rank(self) -> int:
        """The reader's rank in the mesh."""
        return self.share
