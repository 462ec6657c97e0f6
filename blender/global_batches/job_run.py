"""One training run for all ranks of a job: rank 0 opens and marks it, and every rank has the same outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from blender.errors import InvalidRequest
from blender.global_batches.held_steps import HeldSteps
from blender.global_batches.training_run import TrainingRun
from blender.trainer.launch import distributed_rank, launched_rank
from factory.errors import FactoryError, MachineError


class JobRun:
    """A `TrainingRun` in rank 0 of `torch.distributed`, or in this process if that is not initialized.

    Every rank calls every method, and each raises the error of rank 0.
    """

    def __init__(self, open_run: Callable[[], TrainingRun], *, is_launched: bool) -> None:
        self._run: TrainingRun | None = None
        if is_launched and distributed_rank() is None and launched_rank().ranks > 1:
            raise InvalidRequest(
                f"This is one of {launched_rank().ranks:,} processes of a job, and each would take the run "
                "over from the others. Call `torch.distributed.init_process_group` first."
            )

        def opening() -> HeldSteps:
            self._run = open_run()
            return self._run.held_steps

        self.held_steps: HeldSteps = self._shared(opening)
        """The steps that the run holds."""

    def apply(self, action: Callable[[TrainingRun], HeldSteps]) -> None:
        """Change the steps that the run holds."""
        self.held_steps = self._shared(lambda: action(self._opened()))

    def close(self) -> None:
        """Let go of everything."""
        self._shared(lambda: self._opened().close())

    def agree_on(self, step_of_rank: Callable[[], int]) -> int:
        """The step of every rank; raises the error of a rank in all, and InvalidRequest if they differ."""
        rank = distributed_rank()
        if rank is None:
            return step_of_rank()
        step, own = 0, None
        try:
            step = step_of_rank()
        except Exception as error:
            own = error
        outcomes: list[Any] = [None] * rank.ranks
        torch.distributed.all_gather_object(outcomes, (step, None if own is None else f"{own}"))
        if own is not None:
            raise own
        for number, (_, sentence) in enumerate(outcomes):
            if sentence is not None:
                raise MachineError(f"Rank {number} failed: {sentence}")
        steps = [of_rank for of_rank, _ in outcomes]
        if len(set(steps)) > 1:
            numbers = ", ".join(f"{step:,}" for step in sorted(set(steps)))
            raise InvalidRequest(
                f"The ranks are at different steps: {numbers}. Mark a checkpoint after the same step in all."
            )
        return step

    def _opened(self) -> TrainingRun:
        assert self._run is not None, "rank 0 alone calls it, which has opened the run"
        return self._run

    def _shared(self, action: Callable[[], Any]) -> Any:
        """The outcome of an action of rank 0, in every rank."""
        rank = distributed_rank()
        if rank is None:
            return action()
        outcome: list[Any] = [None, None]
        if rank.rank == 0:
            try:
                outcome[0] = action()
            except FactoryError as error:
                outcome[1] = error
            except Exception as error:  # the other ranks wait for an outcome
                failure = [None, MachineError(f"Rank 0 failed: {error}")]
                torch.distributed.broadcast_object_list(failure, src=0)
                raise
        torch.distributed.broadcast_object_list(outcome, src=0)
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]
