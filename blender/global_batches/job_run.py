"""One training run for all ranks of a job: rank 0 opens and marks it, and every rank has the same outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from blender.errors import InvalidRequest
from blender.global_batches.held_steps import HeldSteps
from blender.global_batches.training_run import TrainingRun
from blender.trainer.launch import distributed_rank, launched_rank
from factory.errors import FactoryError


class JobRun:
    """A `TrainingRun` in rank 0 of `torch.distributed`, or in this process if that is not initialized.

    Every rank calls every method, and each raises the error of rank 0.
    """

    def __init__(self, open_run: Callable[[], TrainingRun]) -> None:
        self._run: TrainingRun | None = None
        if distributed_rank() is None and launched_rank().ranks > 1:
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

    def require_agreement(self, step: int) -> None:
        """Raise InvalidRequest in all ranks if they are at different steps."""
        rank = distributed_rank()
        if rank is None:
            return
        steps: list[Any] = [None] * rank.ranks
        torch.distributed.all_gather_object(steps, step)
        if len(set(steps)) > 1:
            numbers = ", ".join(f"{step:,}" for step in sorted(set(steps)))
            raise InvalidRequest(
                f"The ranks are at different steps: {numbers}. Mark a checkpoint after the same step in all."
            )

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
        torch.distributed.broadcast_object_list(outcome, src=0)
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]
