"""Planned steps as PyTorch tensors: for each rank its microbatches, in order.

    loader = BlendLoader(LoadingDataset(loading), device="cuda")
    for step in loader:
        for microbatch in step["microbatches"]:
            train(microbatch["tokens"], microbatch["targets"], microbatch["position_ids"])
        checkpoint["data"] = loader.state_dict()        # {"blend": "4f1c...", "offset": 1200}

The state is the blend's, so a run may go on by `BlendDataset`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from blender.errors import InvalidRequest
from blender.launch import launched_rank
from blender.loading.handle import LoadingHandle
from blender.loading.step import LoadedStep
from blender.step_dataset import StepDataset
from blender.torch import FIELDS

NEED_TOKENS = ("tokens", "targets")


def step_tensors(step: LoadedStep, fields: Sequence[str] = FIELDS) -> dict[str, Any]:
    """The arrays of each microbatch as tensors over the same memory, and the `offset` of the step.

    A pipeline stage between the first and the last gets neither tokens nor targets. Do not write into them.
    """
    kept = [name for name in fields if step.has_tokens or name not in NEED_TOKENS]
    microbatches = [
        {name: torch.from_dlpack(getattr(microbatch, name)) for name in kept}
        for microbatch in step.microbatches
    ]
    return {"offset": step.offset, "microbatches": microbatches}


class LoadingDataset(StepDataset[int]):
    """Every planned step from `offset` on, up to `stop` or to the end of data, through `transform`.

    `rank` defaults to that of `torch.distributed`, else of the launcher, whose number of ranks must
    be that of the mesh. The state is that of `BlendDataset`: either loads the other's, on any mesh.
    """

    def __init__(
        self,
        loading: LoadingHandle,
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
            if ranks != loading.mesh.ranks:
                raise InvalidRequest(
                    f"This run has {ranks} ranks, and the mesh of spec {loading.spec} has "
                    f"{loading.mesh.ranks}. Start as many, give `rank`, or make a spec with the run's mesh."
                )
        loading.mesh.coordinate(rank)  # refuses one outside it
        super().__init__(loading, rank, offset=offset, stop=stop, transform=transform, launch=launch)
        self.loading = loading

    @property
    def rank(self) -> int:
        """The reader's rank in the mesh."""
        return self.share
