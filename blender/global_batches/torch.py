"""Durable batches as PyTorch tensors: for each rank its slice of every step, in order.

    loader = BlendLoader(BatchDataset(BatchReader("s3://bucket/run7", mesh)), device="cuda")
    for batch in loader:
        train(batch["tokens"], batch["rewards"])        # the columns that the producers gave
        checkpoint["data"] = loader.state_dict()        # {"namespace": "0c5e...", "step": 812, ...}

Any run can load that state, also on a mesh of another dp (`BatchReader`): in the midst of a batch, which is
several steps of fewer ranks, one of the same dp. A run that has read all steps waits for the next one, until
the producers have finished.

A named run keeps the batches to which it may go back, and lets `reclaim` delete the others:

    dataset = BatchDataset(reader, run="a", every=10)   # opens it for all ranks of the job
    dataset.held_steps.checkpoints                            # {"ckpt-110": 110, "ckpt-120": 120}
    dataset.load_state_dict(torch.load("ckpt-120")["data"])
    ...
    dataset.checkpointed("ckpt-130", keep=2)            # by all ranks, after the checkpoint is written
    dataset.roll_back("ckpt-120")                       # its next loop begins there
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import torch
from torch.utils.data import get_worker_info

from blender.errors import InvalidRequest
from blender.global_batches.held_steps import HeldSteps
from blender.global_batches.job_run import JobRun
from blender.global_batches.mesh_steps import MeshSteps
from blender.global_batches.rank_slice import GlobalBatchSlice
from blender.global_batches.reader import BatchReader
from blender.global_batches.stored_rows import is_packed_rows, packed_rows
from blender.global_batches.training_run import OLDEST
from blender.spec.whole_number import whole_number
from blender.trainer.launch import launched_rank
from blender.trainer.step_dataset import StepDataset, require_keywords
from blender.trainer.torch import FIELDS


def slice_tensors(step: GlobalBatchSlice) -> dict[str, Any]:
    """All columns of a step as tensors over the same memory, and its `offset`.

    Where a batch is several steps of the mesh, its `substep` too. Do not write into the tensors: they are
    views of the bytes that were read.
    """
    columns: dict[str, Any] = {name: torch.from_dlpack(array) for name, array in step.arrays.items()}
    return columns | _numbers(step)


def step_tensors(step: GlobalBatchSlice) -> dict[str, Any]:
    """What `BlendDataset` gives of packed rows, and all columns of other batches."""
    if not is_packed_rows(step):
        return slice_tensors(step)
    rows = packed_rows(step)
    return {name: torch.from_dlpack(getattr(rows, name)) for name in FIELDS} | _numbers(step)


def _numbers(step: GlobalBatchSlice) -> dict[str, int]:
    return {"offset": step.offset} | ({"substep": step.substep} if step.substeps > 1 else {})


class BatchDataset(StepDataset[int]):
    """Every step of a namespace from batch `offset` on, up to `stop` or to the end of data, by `tensors`.

    With a `run` it holds the batches to which that run may go back (`TrainingRun`); a new one begins at
    `offset`, which may be "oldest", the oldest batch that is kept; `every` says how many steps are between
    two checkpoints, and `keep` how many are live. `rank` defaults to the rank in `torch.distributed`, else
    the launcher's; the number of ranks must equal the mesh's. Waits for steps that are not committed yet. A
    loop over a loader with workers that is left during such a wait keeps its worker until the next step, or
    until the process ends.
    """

    def __init__(
        self,
        reader: BatchReader,
        *,
        offset: int | Literal["oldest"] = 0,
        stop: int | None = None,
        rank: int | None = None,
        run: str | None = None,
        every: int | None = None,
        keep: int = 2,
        tensors: Callable[[Any], Any] = step_tensors,
        **others: Any,
    ) -> None:
        require_keywords(others, "BatchDataset")
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
        if run is None and (every is not None or offset == OLDEST):
            raise InvalidRequest("`every` and the oldest offset belong to a run. Name it: `run=`.")
        self._run = None
        if run is not None:
            open_run = partial(reader.open_run, run, start=offset, every=every, keep=keep)
            self._run = JobRun(open_run, is_launched=launch is not None)
        steps = MeshSteps(reader, run)
        first = self.held_steps.first_step if offset == OLDEST else whole_number(offset, "offset")
        last = None if stop is None else whole_number(stop, "stop")
        super().__init__(
            steps,
            rank,
            offset=steps.offset(first),
            stop=None if last is None else steps.offset(last),
            tensors=tensors,
            launch=launch,
        )
        self.reader = reader

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_run": None}  # workers and copies read, and mark nothing

    @property
    def held_steps(self) -> HeldSteps:
        """The steps that the run holds. Raises InvalidRequest for a dataset without a run."""
        return self._own_run().held_steps

    def checkpointed(self, name: str, keep: int | None = None, *, step: int | None = None) -> None:
        """Hold the steps after the last one taken for a checkpoint, and drop all but the last `keep`.

        By default as many as the dataset was made with.

        Where workers of a DataLoader take the steps, give the `step` after the last one that was trained on.

        A run marks whole batches, so that any mesh may go on there: InvalidRequest at another substep.
        In a job of `torch.distributed` every rank calls it: rank 0 marks, and all ranks return or raise.
        Call it once the checkpoint is written, and the files of the dropped ones are deleted. Raises RunTaken
        if another process has opened the run, or somebody has closed it.
        """
        run = self._own_run()

        def step_of_rank() -> int:
            if step is not None:
                return whole_number(step, "step")
            state = self.state_dict()
            if state["substep"]:
                raise InvalidRequest(
                    f"Checkpoint `{name}` is in the midst of batch {state['step']:,}, at its substep "
                    f"{state['substep']} of {self.reader.remap.substeps}. Mark one after a whole batch."
                )
            return int(state["step"])

        after = run.agree_on(step_of_rank)
        run.apply(lambda own: own.checkpoint(name, after, keep))

    def roll_back(self, name: str) -> None:
        """Begin the next loop at a live checkpoint, and drop the later ones; by all ranks.

        Raises CheckpointDropped for a checkpoint that the run does not hold, RunTaken, and, as
        `load_state_dict` does, InvalidRequest while a loop is under way.
        """
        run = self._own_run()
        load = super().load_state_dict

        def step_of_rank() -> int:
            step = run.held_steps.step_of(name)
            load(self.reader.state(step))
            return step

        run.agree_on(step_of_rank)
        run.apply(lambda own: own.rolled_back(name))

    def state_dict(self) -> dict[str, Any]:
        """As `StepDataset.state_dict`; raises InvalidRequest in a worker of a reader that accumulates.

        A worker knows its own steps alone, and cannot tell that another one is within a batch.
        """
        if get_worker_info() is not None and self.reader.accumulates:
            raise InvalidRequest(
                "A state of workers would go on within a batch, whose first gradients no checkpoint holds. "
                "Read with `BlendLoader`, or with a StatefulDataLoader without workers."
            )
        return super().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As `StepDataset.load_state_dict`; raises CheckpointDropped for a step that its run dropped.

        Where several batches are a step, raises InvalidRequest if some would be left over before `stop`.
        """
        if self._run is not None and get_worker_info() is None:
            step = state.get("step") if isinstance(state, Mapping) else None
            if isinstance(step, int):  # a step that was dropped may be gone
                self._run.held_steps.require(step, state.get("run"))
        if get_worker_info() is None:
            self.reader.remap.require_whole_steps(self.source.offset_of(state), self.stop)
        else:
            self._require_same_dp(state["state"])
        super().load_state_dict(state)

    def _require_same_dp(self, state: Mapping[str, Any]) -> None:
        """Raise InvalidRequest for the state of a worker that counts the steps of another mesh."""
        dp = state.get("dp", self.reader.namespace.dp)
        if dp != self.reader.mesh.dp:
            raise InvalidRequest(
                f"The state of workers counts steps of dp={dp}, and this mesh has dp={self.reader.mesh.dp}. "
                "Load the state of a `BlendLoader`, or of a StatefulDataLoader without workers."
            )

    def close_run(self) -> None:
        """Let go of all batches that the run holds; by all ranks, once the training is over."""
        self._own_run().close()

    def _own_run(self) -> JobRun:
        if self._run is None:
            raise InvalidRequest("This dataset has no run that holds batches. Name one: `run=`.")
        return self._run

    @property
    def rank(self) -> int:
        """The reader's rank in the mesh."""
        return self.share
