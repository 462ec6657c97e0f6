"""Shared knowledge of steps between the workers of torch's DataLoader and the trainer's process.

A worker prefetches, so how many steps it has handed over says nothing of how many the trainer took. All
that is known is that a loop has begun.
"""

from __future__ import annotations

import torch

from blender.errors import InvalidRequest

LARGEST_WORKERS = 1024
NEVER = -1


class StepsOfWorkers(InvalidRequest):
    """Workers of a DataLoader have taken steps, and nobody knows how many of them the trainer has seen.

    Its sentence is constant, because torch recreates a worker's error with the traceback as its message.
    """

    def __init__(self, *_: object) -> None:
        super().__init__(
            "Workers of a DataLoader took steps of this dataset in an earlier loop, and they do not report "
            "how far that loop has come, so a second one would repeat or omit steps. Iterate over "
            "`BlendLoader(dataset, workers=...)`, which goes on where it was left, or load a state first."
        )


class WorkerLoops:
    """Where the loops of workers begin, and which workers have begun, in memory shared with them.

    A loop belongs to the last start before it. The start of a worker's first loop comes with its process,
    the start of a later one from the shared memory: so a worker that is late takes no start of another loop.
    """

    def __init__(self, step: int) -> None:
        self._step, self._number = step, 0
        self._start = torch.tensor([step, 0]).share_memory_()
        self._loops_begun = torch.full((LARGEST_WORKERS,), NEVER).share_memory_()
        self._n_loops = 0  # of this worker

    def start(self, step: int) -> None:
        """The next loop begins with `step`, independent of the steps that workers have taken."""
        self._step, self._number = step, self._number + 1
        self._start.copy_(torch.tensor([step, self._number]))

    def reach(self, step: int) -> None:
        """The next loop begins with `step`, up to which this process has read."""
        self._step = step
        self._start[0] = step

    def require_none(self) -> None:
        """Raise StepsOfWorkers if a worker has begun since the last start."""
        if (self._loops_begun == self._number).any():
            raise StepsOfWorkers

    def begin(self, worker: int) -> int | None:
        """The step at which a loop of a worker begins; None for a second loop from one start."""
        step, number = (self._step, self._number) if self._n_loops == 0 else self._start.tolist()
        self._n_loops += 1
        if self._loops_begun[worker] == number:
            return None
        self._loops_begun[worker] = max(number, int(self._loops_begun[worker]))
        return step

    def copy(self) -> WorkerLoops:
        """The same in memory of its own."""
        twin = WorkerLoops(self._step)
        if (self._loops_begun == self._number).any():
            twin._loops_begun.zero_()
        return twin
