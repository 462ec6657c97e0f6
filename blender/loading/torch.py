"""Planned steps as PyTorch tensors: for each rank its microbatches, in order.

    loader = BlendLoader(LoadingDataset(loading), device="cuda")
    for step in loader:
        for microbatch in step["microbatches"]:
            train(microbatch["tokens"], microbatch["targets"], microbatch["position_ids"])
        checkpoint["data"] = loader.state_dict()        # {"blend": "4f1c...", "offset": 1200}

The state is the blend's, so a run may go on by `BlendDataset`. `require_same_plan(step)` in the loop compares
the plans of all ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from blender.errors import InvalidRequest, PlanChanged
from blender.loading.handle import LoadingHandle
from blender.loading.pictures.loaded import LoadedPictures
from blender.loading.step import LoadedStep
from blender.trainer.launch import launched_rank
from blender.trainer.step_dataset import StepDataset, require_keywords
from blender.trainer.torch import FIELDS

NEED_TOKENS = ("tokens", "targets")


def step_tensors(step: LoadedStep, fields: Sequence[str] = FIELDS) -> dict[str, Any]:
    """The arrays of each microbatch as tensors over the same memory, and the step's `offset` and `plan`.

    `require_same_plan` compares the plans of all ranks. A pipeline stage between the first and the last gets
    neither tokens nor targets. With pictures there is a list `images`, a dictionary for each microbatch of
    the encoder, and a microbatch has `placeholders` and `image_mask`. Do not write into them.
    """
    kept = [name for name in fields if step.has_tokens or name not in NEED_TOKENS]
    microbatches = [
        {name: torch.from_dlpack(getattr(microbatch, name)) for name in kept}
        for microbatch in step.microbatches
    ]
    tensors = {"offset": step.offset, "plan": step.plan, "microbatches": microbatches}
    if not step.has_pictures:
        return tensors
    for microbatch, rows, places in zip(microbatches, step.microbatches, step.placeholders, strict=True):
        microbatch["placeholders"] = {name: torch.from_dlpack(array) for name, array in places.items()}
        if step.has_tokens:
            microbatch["image_mask"] = torch.from_dlpack(rows.image_mask)
    return tensors | {"images": [_picture_tensors(pictures) for pictures in step.images]}


def pixels(images: Mapping[str, Any], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The patches of a microbatch as normalized colors, on their device; shape [n, patch * patch * 3].

    Patches come as bytes, so that a fourth of the memory goes to the device.
    """
    patches = images["patches"]
    colors = patches.to(dtype).reshape(len(patches), patches.shape[1] // 3, 3) / 255
    mean, std = (images[name].to(dtype) for name in ("mean", "std"))
    return ((colors - mean) / std).reshape(patches.shape)


def _picture_tensors(pictures: LoadedPictures) -> dict[str, torch.Tensor]:
    names = ("patches", "grid", "cu_patches", "node")
    return {
        **{name: torch.from_dlpack(getattr(pictures, name)) for name in names},
        **{f"to_{name}": torch.from_dlpack(numbers) for name, numbers in pictures.to.items()},
        "mean": torch.tensor(pictures.facts.mean),
        "std": torch.tensor(pictures.facts.std),
    }


def require_same_plan(step: Mapping[str, Any]) -> None:
    """Raise PlanChanged on every rank of `torch.distributed` unless all have this step under one plan.

    A collective of 24 bytes a rank. Ranks of different plans read some rows twice and others never, which no
    rank sees by itself.
    """
    device = torch.device("cuda" if torch.distributed.get_backend() == "nccl" else "cpu")
    high, low = divmod(int(step["plan"]), 1 << 32)
    own = torch.tensor([step["offset"], high, low], dtype=torch.int64, device=device)
    ranks = [torch.empty_like(own) for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_gather(ranks, own)
    offset, plan = _step_and_plan(ranks[0])
    for rank, other in enumerate(ranks):
        other_offset, other_plan = _step_and_plan(other)
        if (other_offset, other_plan) != (offset, plan):
            raise PlanChanged(
                f"Rank 0 reads step {offset:,} under plan {plan:016x}, and rank {rank} reads step "
                f"{other_offset:,} under plan {other_plan:016x}. Start all ranks from one state, and use one "
                "version of the strategy on all constructors."
            )


def _step_and_plan(numbers: torch.Tensor) -> tuple[int, int]:
    offset, high, low = numbers.tolist()
    return offset, high << 32 | low


class LoadingDataset(StepDataset[int]):
    """Every planned step from `offset` on, up to `stop` or to the end of data, through `tensors`.

    `rank` defaults to the rank in `torch.distributed`, else the launcher's; the number of ranks must equal
    the mesh's. `BlendDataset` has the same state: either loads the other's, on any mesh.
    """

    def __init__(
        self,
        loading: LoadingHandle,
        *,
        offset: int = 0,
        stop: int | None = None,
        rank: int | None = None,
        tensors: Callable[[Any], Any] = step_tensors,
        **others: Any,
    ) -> None:
        require_keywords(others, "LoadingDataset")
        launch = None
        if rank is None:
            launch = launched_rank()
            rank, ranks = launch
            if ranks != loading.mesh.ranks:
                raise InvalidRequest(
                    f"This run has {ranks} ranks, and the mesh of spec {loading.spec} has "
                    f"{loading.mesh.ranks}. Start as many, give `rank`, or make a spec with the run's mesh."
                )
        loading.mesh.coordinate(rank)  # refuses a rank that the mesh lacks
        super().__init__(loading, rank, offset=offset, stop=stop, tensors=tensors, launch=launch)
        self.loading = loading

    @property
    def rank(self) -> int:
        """The reader's rank in the mesh."""
        return self.share
