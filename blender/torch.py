"""Steps of a blend as PyTorch tensors, in the order of the blend for any number of ranks and workers.

    blend = BlenderClient("127.0.0.1:50051").open("4f1c...")       # or open_blend("4f1c...")
    loader = BlendLoader(BlendDataset(blend), device="cuda")
    for batch in loader:
        train(batch["tokens"], batch["targets"], batch["position_ids"], batch["cu_seqlens"])
        checkpoint["data"] = loader.state_dict()                   # {"blend": "4f1c...", "offset": 1200}

Rank r of n takes the r-th share of the rows of every step; worker w of m takes every m-th step from the w-th
on. So there is one sequence of steps, and its only state is the number of steps taken. Any number of ranks
and workers can load that state, and so can an update of the blend made at that step or later.

A thread is cheaper than workers: torch spends a millisecond on every batch that crosses processes. Use
workers for a `transform` that needs more than one core.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from blender.call_context import current_context, use_context
from blender.dataloader import refuse_to_join, with_plain_errors
from blender.errors import CallCancelled, InvalidRequest
from blender.prefetch import Prefetcher
from blender.reader import BlendHandle
from blender.spec.ranks import RankSlice
from blender.spec.step_range import StepRange
from blender.spec.whole_number import whole_number
from blender.step_source import Share, Step, StepSource
from factory.errors import ConfigurationError

FIELDS = ("tokens", "targets", "position_ids", "cu_seqlens")


def tensors(step: Step, fields: Sequence[str] = FIELDS) -> dict[str, Any]:
    """Arrays of a step as tensors over the same memory, by the names of `Batch`, and its `offset`.

    Do not write into them: steps of one block share memory.
    """
    found: dict[str, Any] = {name: torch.from_dlpack(getattr(step, name)) for name in fields}
    return found | {"offset": step.offset}


def block_diagonal(document_ids: torch.Tensor) -> torch.Tensor:
    """The tokens each token attends to: those of its document up to itself; bool, shape [rows, 1, L, L].

    For `torch.nn.functional.scaled_dot_product_attention`. The mask takes L bytes per token: kernels that
    take `cu_seqlens`, or flex attention over `document_ids`, need none.
    """
    same = document_ids[:, None, :, None] == document_ids[:, None, None, :]
    return same.tril()


class StepDataset(IterableDataset[Any], Generic[Share]):
    """Every step of a source from `offset` on, up to `stop` or to the end of data, through `transform`.

    Each item is made from this reader's `share` of a step. A `DataLoader(dataset, batch_size=None,
    num_workers=m)` yields the steps in the same order; one that joins steps raises JoinedSteps. `len` is the
    number of steps that the next iteration yields. Raises EndOfData if the source ends before `stop`, and
    InvalidRequest for an `offset` or a `stop` that is not a whole number, and for a `stop` before `offset`.
    """

    def __init__(
        self,
        source: StepSource[Share],
        share: Share,
        *,
        offset: int = 0,
        stop: int | None = None,
        transform: Callable[[Any], Any] = tensors,
    ) -> None:
        self.source = source
        self.share = share
        self.stop = None if stop is None else whole_number(stop, "stop")
        self.transform = transform
        self._offset = whole_number(offset, "offset")
        if self.stop is not None and self.stop < self._offset:
            raise InvalidRequest(
                f"`stop` is {self.stop:,} and `offset` is {self._offset:,}, so there is no step to read. "
                "`stop` is the step after the last one, not a number of steps. Give at least `offset`."
            )
        self._dealt = torch.zeros((), dtype=torch.bool).share_memory_()  # shared with the workers
        self._n_iterations = 0  # of this process, begun and not ended

    def __iter__(self) -> Iterator[Any]:
        refuse_to_join(sys._getframe(1))
        return self._items()

    def __len__(self) -> int:
        end = self.source.end() if self.stop is None else self.stop
        return max(0, end - self._offset)

    def __bool__(self) -> bool:
        return True  # `if dataset:` does not ask for a length that may be unknown

    def _items(self) -> Iterator[Any]:
        if get_worker_info() is not None:
            self._dealt.fill_(True)
        with self.iterating():
            for offset, item in self.numbered():
                self._offset = offset
                yield item

    @contextmanager
    def iterating(self) -> Iterator[None]:
        """Count an iteration, which no loaded state reaches, until its end."""
        self._n_iterations += 1
        try:
            yield
        finally:
            self._n_iterations -= 1

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_n_iterations": 0}  # iterations stay behind when a dataset is copied

    def numbered(self) -> Iterator[tuple[int, Any]]:
        """Each item of this process, in a worker its share of the steps, with the step after it."""
        worker = get_worker_info()
        number, stride = (worker.id, worker.num_workers) if worker else (0, 1)
        first = self._offset + number
        if self.stop is not None and first >= self.stop:
            return
        steps = None if self.stop is None else self.stop - first
        for step in self.source.read(StepRange(first, steps, stride), self.share):
            yield step.offset + 1, self.transform(step)

    def state_dict(self) -> dict[str, Any]:
        """The state of the source at the step after the last one taken."""
        if self._dealt:
            raise InvalidRequest(
                "Workers of a DataLoader took the steps, and they do not report how far the loop has come. "
                "Iterate over a BlendLoader and save its state."
            )
        return self.source.state(self._offset)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of this source, or of one with the same steps before that state.

        Raises InvalidRequest for a state of any other source, and while an iteration is under way: it has
        prefetched steps, and would go on with them.
        """
        offset = self.source.offset_of(state)
        if self._n_iterations:
            raise InvalidRequest(
                f"An iteration is under way, at step {self._offset:,}, and would go on as before. "
                "Leave the loop or close its iterator, load the state, and begin a new iteration."
            )
        self.start_at(offset)

    def start_at(self, offset: int) -> None:
        """Begin the next iteration with step `offset`."""
        self._offset = offset
        self._dealt.fill_(False)


class BlendDataset(StepDataset[RankSlice]):
    """Every step of a blend from `offset` on, up to `stop` or to the end of data, through `transform`.

    `rank` and `ranks` default to those of `torch.distributed`, or of torchrun's environment. The state is
    `{"blend": id, "offset": n}`, n being the step after the last one taken; an update of the blend at that
    step or later can load it too.
    """

    def __init__(
        self,
        blend: BlendHandle,
        *,
        offset: int = 0,
        stop: int | None = None,
        rank: int | None = None,
        ranks: int | None = None,
        transform: Callable[[Any], Any] = tensors,
    ) -> None:
        if (rank is None) != (ranks is None):
            raise InvalidRequest("`rank` and `ranks` belong together. Give both or neither.")
        place = rank_of_ranks() if rank is None or ranks is None else (rank, ranks)
        super().__init__(blend, RankSlice(*place), offset=offset, stop=stop, transform=transform)
        self.blend = blend

    @property
    def rank(self) -> int:
        """The reader's number among `ranks`."""
        return self.share.rank

    @property
    def ranks(self) -> int:
        """The number of readers."""
        return self.share.ranks


class BlendLoader:
    """Items of a dataset, prefetched by a thread or by `workers` processes and moved to `device`.

    `prefetch` items are ready besides the one in use. For a GPU they are copied from pinned memory on a
    stream of their own. `context` is how workers start: `spawn`, `forkserver` or `fork`. `len` is that of the
    dataset.
    """

    def __init__(
        self,
        dataset: StepDataset[Any],
        *,
        workers: int = 0,
        prefetch: int = 2,
        device: torch.device | str | None = None,
        context: str = "spawn",
    ) -> None:
        self.dataset = dataset
        self._workers = workers
        self._prefetch = prefetch
        self._context = context
        self._device = None if device is None else torch.device(device)

    def state_dict(self) -> dict[str, Any]:
        """The state of the source at the step after the last one taken."""
        return self.dataset.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, as `StepDataset.load_state_dict` does."""
        self.dataset.load_state_dict(state)

    def __len__(self) -> int:
        return len(self.dataset)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        copies = _GpuCopies(self._device) if self._device and self._device.type == "cuda" else None
        call = current_context().child()  # interrupts a source that waits, when the loop ends

        def items() -> Iterator[tuple[int, Any]]:
            with use_context(call):
                for offset, item in self._items():
                    yield offset, copies.start(item) if copies else item

        def cancel() -> None:
            call.cancel(CallCancelled("The loop over the loader has ended."))

        ahead = Prefetcher(items(), self._prefetch, lambda _: 1, cancel)
        with self.dataset.iterating(), ahead as prefetched:
            for offset, item in prefetched:
                ready = copies.finish(item) if copies else self._moved(item)
                self.dataset.start_at(offset)
                yield ready

    def _items(self) -> Iterable[tuple[int, Any]]:
        if not self._workers:
            return self.dataset.numbered()
        loader: Iterable[tuple[int, Any]] = DataLoader(
            _Numbered(self.dataset),
            batch_size=None,
            num_workers=self._workers,
            prefetch_factor=self._prefetch,
            multiprocessing_context=self._context,
        )
        return with_plain_errors(loader)

    def _moved(self, item: Any) -> Any:
        return item if self._device is None else map_tensors(item, lambda one: one.to(self._device))


class _Numbered(IterableDataset[tuple[int, Any]]):
    """A dataset that yields each item with the step after it."""

    def __init__(self, dataset: StepDataset[Any]) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return self._dataset.numbered()


class _GpuCopies:
    """Copies to a GPU that overlap with its computation."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)

    def start(self, item: Any) -> tuple[Any, torch.cuda.Event]:
        """The item in the GPU's memory once the event has happened."""
        with torch.cuda.stream(self._stream):
            copied = map_tensors(item, lambda one: one.pin_memory().to(self._device, non_blocking=True))
            return copied, self._stream.record_event()

    def finish(self, copy: tuple[Any, torch.cuda.Event]) -> Any:
        """The item, safe to use on the current stream."""
        item, copied = copy
        current = torch.cuda.current_stream(self._device)
        current.wait_event(copied)

        def used(one: torch.Tensor) -> torch.Tensor:
            one.record_stream(current)  # otherwise the next copy may reuse its memory while it is read
            return one

        return map_tensors(item, used)


def map_tensors(item: Any, function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The item with `function` applied to every tensor in its dicts, lists and tuples."""
    if isinstance(item, torch.Tensor):
        return function(item)
    if isinstance(item, Mapping):
        return {name: map_tensors(value, function) for name, value in item.items()}
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*(map_tensors(part, function) for part in item))
    if isinstance(item, list | tuple):
        return type(item)(map_tensors(part, function) for part in item)
    return item


def rank_of_ranks() -> tuple[int, int]:
    """The rank of this process and the number of ranks, of `torch.distributed` or torchrun; else (0, 1)."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    names = ("RANK", "WORLD_SIZE")
    values = [os.environ.get(name) for name in names]
    if values == [None, None]:
        return 0, 1
    if not all(one is not None and one.isdecimal() for one in values):
        raise ConfigurationError(
            f"The environment has RANK {values[0]} and WORLD_SIZE {values[1]}. Start through torchrun, which "
            "sets both, or give `rank` and `ranks`."
        )
    return int(values[0] or 0), int(values[1] or 1)
