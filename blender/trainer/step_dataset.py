"""A dataset over a sequence of steps for PyTorch: one meaning of a loop for every loader that reads it.

A loop begins at the state, which is the step after the last one taken. So a loop left and entered again
continues. Where workers of torch's DataLoader take the steps nobody knows the state,
and a second loop is refused until one is loaded.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Generic

from torch.utils.data import IterableDataset, get_worker_info

from blender.errors import EndOfData, InvalidRequest
from blender.spec.step_range import StepRange
from blender.spec.whole_number import whole_number
from blender.trainer.dataloader import (
    FetchedAhead,
    raising,
    require_direct_loop,
    require_whole_steps,
    starts_workers,
)
from blender.trainer.launch import LaunchedRank, require_rank
from blender.trainer.step_source import Share, StepSource
from blender.trainer.worker_loops import LARGEST_WORKERS, NEVER, StepsOfWorkers, WorkerLoops


def require_keywords(others: Mapping[str, Any], dataset: str) -> None:
    """Raise InvalidRequest for the earlier name of `tensors`, and TypeError for any other keyword."""
    if "transform" in others:
        raise InvalidRequest(
            f"`{dataset}` takes `tensors`, which an earlier version called `transform`: it makes the tensors "
            "of a step. Rename the argument; transforms change samples, in a loading spec or in front of "
            "durable batches."
        )
    if others:
        raise TypeError(f"{dataset}() got an unexpected keyword argument {next(iter(others))!r}")


class StepDataset(IterableDataset[Any], Generic[Share]):
    """Every step of a source from `offset` on, up to `stop` or to the end of data, through `tensors`.

    Each item is made from this reader's `share` of a step; `launch` is the rank that the share was made
    for, if the caller gave none. A `DataLoader(dataset, batch_size=None, num_workers=m)` yields the steps
    in the same order; one that joins steps raises JoinedSteps, and what Accelerate prepared
    PreparedByAccelerate. `len` is the number of steps from `offset` on, also after a loaded
    state. Raises EndOfData if the source ends before `stop`, and InvalidRequest for an `offset` or a
    `stop` that is not a whole number, and for a `stop` before `offset`.
    """

    def __init__(
        self,
        source: StepSource[Share],
        share: Share,
        *,
        offset: int = 0,
        stop: int | None = None,
        tensors: Callable[[Any], Any],
        launch: LaunchedRank | None = None,
    ) -> None:
        self.source = source
        self.share = share
        self.stop = None if stop is None else whole_number(stop, "stop")
        self.tensors = tensors
        self._first = self._offset = whole_number(offset, "offset")
        if self.stop is not None and self.stop < self._first:
            raise InvalidRequest(
                f"`stop` is {source.name_of(self.stop)} and `offset` {source.name_of(self._first)}, so there "
                "is no step to read. `stop` is the step after the last one, not a number of steps. Give at "
                "least `offset`."
            )
        self._launch = launch
        self._workers = WorkerLoops(self._first)
        self._loops = 0  # begun in this process and not ended
        self._latest = 0  # the number of the last one
        self._after_last = self._first  # in a worker: the step after the last one that it gave
        self._has_own_state = False  # in a worker, whose loop begins at its next step

    def __iter__(self) -> Iterator[Any]:
        caller = sys._getframe(1)
        if fails := self.failing_loop(caller):
            return fails
        require_whole_steps(caller)
        worker = get_worker_info()
        return self._items() if worker is None else self._items_of_worker(worker.id, worker.num_workers)

    def __len__(self) -> int:
        end = self.source.end() if self.stop is None else self.stop
        return max(0, end - self._first) // self.source.stride

    def __getitem__(self, index: Any) -> Any:
        raise TypeError(
            f"Steps are read in order, not by index. A dataset with `offset` begins at another step: "
            f"`next(iter({type(self).__name__}(..., offset=3)))` is step 3."
        )

    def __bool__(self) -> bool:
        return True  # `if dataset:` does not ask for a length that may be unknown

    def failing_loop(self, caller: FrameType | None) -> Iterator[Any] | None:
        """A loop that raises FetchedAhead at its first step, if it must; raises what else is wrong now."""
        try:
            self.require_loop(caller)
        except FetchedAhead as error:
            return raising(
                error
            )  # Lightning hides one that comes before the first step by an error of its own
        return None

    def require_loop(self, caller: FrameType | None) -> None:
        """Raise the error of a loop, begun in the frame `caller`, that would read other rows than its own."""
        require_direct_loop(caller)
        if self._launch is not None:
            require_rank(self._launch)

    def __getstate__(self) -> dict[str, Any]:
        caller = sys._getframe(1)
        if starts_workers(caller):
            self.require_loop(caller)
            workers = self._workers
        else:
            workers = self._workers.copy()  # a copy has workers of its own
        return self.__dict__ | {"_workers": workers, "_loops": 0}

    @contextmanager
    def loop(self) -> Iterator[Callable[[int], None]]:
        """A pass of this process over the steps: a function that notes the step after each one taken.

        The latest pass alone continues; an earlier one raises InvalidRequest at its next step. A pass that
        ends without a step warns.
        """
        self._workers.require_none()
        self._latest += 1
        self._loops += 1
        number, start = self._latest, self._offset

        def take(offset: int) -> None:
            self._workers.require_none()
            if number != self._latest:
                raise InvalidRequest(
                    f"Another loop over this dataset has begun, and is at {self._name}. Each step comes "
                    "once: go on with that loop, or give each loop a dataset of its own."
                )
            self._offset = offset
            self._workers.reach(offset)

        try:
            yield take
            if start == self._offset > self._first:
                warnings.warn(
                    f"This loop read no step: a loop begins where the last one ended, and {self._name} is "
                    "the end. For another epoch load the state of the first step, which `state_dict()` gives "
                    "before the first loop, or make a new dataset.",
                    stacklevel=3,
                )
        finally:
            self._loops -= 1

    def steps_from(self, first: int, stride: int = 1) -> Iterator[tuple[int, Any]]:
        """The item of every `stride`-th step from `first` on, with the offset of the step after it."""
        if self.stop is not None and first >= self.stop:
            return
        steps = None if self.stop is None else self.stop - first
        for step in self.source.read(StepRange(first, steps, stride * self.source.stride), self.share):
            yield self.source.offset_after(step), self.tensors(step)

    def steps_dealt(self, first: int, stride: int, start: int) -> Iterator[tuple[int, Any]]:
        """As `steps_from`, in one of `stride` workers of a loop that begins at offset `start`."""
        steps = self.steps_from(first, stride)
        try:
            step = next(steps, None)
        except EndOfData:
            if first == start or self.stop is not None:
                raise
            return  # the data end before the first step of this worker
        if step is not None:
            yield step
            yield from steps

    @property
    def next_step(self) -> int:
        """The step after the last one taken; in a worker of a DataLoader its own next one."""
        return self._offset

    def state_dict(self) -> dict[str, Any]:
        """The state of the source at the step after the last one taken.

        Raises StepsOfWorkers once workers of a DataLoader have taken some. In a worker it is the worker's
        own, which torchdata's StatefulDataLoader collects.
        """
        if get_worker_info() is not None:
            return {"state": self.source.state(self._after_last), "next_step": self._offset}
        self._workers.require_none()
        return self.source.state(self._offset)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of this source, or of one with the same steps before that state.

        Raises InvalidRequest for a state of any other source, for one behind `stop`, and while a loop of this
        process is under way: it has prefetched steps, and would continue with them. A loop of a
        DataLoader's workers would continue unnoticed, so leave it before.
        """
        if get_worker_info() is not None:
            self._after_last = self.source.offset_of(state["state"])
            self._offset, self._has_own_state = state["next_step"], True
            return
        offset = self.source.offset_of(state)
        if self._loops:
            raise InvalidRequest(
                f"An iteration is under way, at {self._name}, and would go on as before. "
                "Leave the loop or close its iterator, load the state, and begin a new iteration."
            )
        if self.stop is not None and offset > self.stop:
            raise InvalidRequest(
                f"The state is at {self.source.name_of(offset)}, and the dataset ends before "
                f"{self.source.name_of(self.stop)}. Give a later `stop`."
            )
        self._first, self._offset = min(self._first, offset), offset
        self._workers.start(offset)

    @property
    def _name(self) -> str:
        """The next step in a sentence."""
        return self.source.name_of(self._offset)

    def _items(self) -> Iterator[Any]:
        with self.loop() as take:
            for offset, batch in self.steps_from(self._offset):
                take(offset)
                yield batch

    def _items_of_worker(self, number: int, stride: int) -> Iterator[Any]:
        """As `_items`, where the process is a worker of a DataLoader, which alone knows its next step."""
        if number >= LARGEST_WORKERS:
            raise InvalidRequest(f"Steps are dealt to at most {LARGEST_WORKERS:,} workers. Give fewer.")
        start = self._workers.begin(number)
        if self._has_own_state:
            start = NEVER  # the loop goes on
        else:
            self._after_last = start or 0
            self._offset = self._after_last + number * self.source.stride
        self._has_own_state = False

        def items() -> Iterator[Any]:  # torch ends a worker whose iteration raises before its first item
            if start is None:
                raise StepsOfWorkers
            for offset, batch in self.steps_dealt(self._offset, stride, start):
                self._after_last, self._offset = offset, offset + (stride - 1) * self.source.stride
                yield batch

        return items()
