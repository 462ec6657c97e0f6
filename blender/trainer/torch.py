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
workers for `tensors` that need more than one core.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy.random  # noqa: F401  # torch's workers import it, which may fail in one that was forked by a thread
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from blender.call_context import current_context, use_context
from blender.errors import CallCancelled, InvalidRequest
from blender.spec.ranks import RankSlice
from blender.trainer.dataloader import require_direct_loop, with_plain_errors
from blender.trainer.launch import launched_rank
from blender.trainer.prefetch import Prefetcher
from blender.trainer.reader import BlendHandle
from blender.trainer.step_dataset import StepDataset, require_keywords
from blender.trainer.step_source import Step

FIELDS = ("tokens", "targets", "position_ids", "cu_seqlens")


def tensors(step: Step, fields: Sequence[str] = FIELDS) -> dict[str, Any]:
    """Arrays of a step as tensors over the same memory, by the names of `Batch`, and its `offset`.

    Do not write into them: steps of one block share memory.
    """
    found: dict[str, Any] = {name: torch.from_dlpack(getattr(step, name)) for name in fields}
    return found | {"offset": step.offset}


def block_diagonal(document_ids: torch.Tensor) -> torch.Tensor:
    """The tokens each token attends to: of its document, up to itself; bool, shape [rows, 1, L, L].

    For `torch.nn.functional.scaled_dot_product_attention`. The mask takes L bytes per token: kernels that
    take `cu_seqlens`, or flex attention over `document_ids`, need none.
    """
    same = document_ids[:, None, :, None] == document_ids[:, None, None, :]
    return same.tril()


class BlendDataset(StepDataset[RankSlice]):
    """Every step of a blend from `offset` on, up to `stop` or to the end of data, through `tensors`.

    `rank` and `ranks` default to the values of `torch.distributed`, else of the launcher (`launch`).
    The state is `{"blend": id, "offset": n}`, n being the step after the last one taken; an update of the
    blend at that step or later can load it too.
    """

    def __init__(
        self,
        blend: BlendHandle,
        *,
        offset: int = 0,
        stop: int | None = None,
        rank: int | None = None,
        ranks: int | None = None,
        tensors: Callable[[Any], Any] = tensors,
        **others: Any,
    ) -> None:
        require_keywords(others, "BlendDataset")
        if (rank is None) != (ranks is None):
            raise InvalidRequest("`rank` and `ranks` belong together. Give both or neither.")
        launch = None
        if rank is None or ranks is None:
            launch = launched_rank()
            rank, ranks = launch
        share = RankSlice(rank, ranks)
        super().__init__(blend, share, offset=offset, stop=stop, tensors=tensors, launch=launch)
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

    `prefetch` items are ready in addition to the one in use. For a GPU they are copied from pinned memory on
    a stream of their own. `context` is how workers start: `spawn`, `forkserver` or `fork`. `len` is the
    dataset's. A loop begins where the last one was left; the latest loop alone continues.
    """

    drop_last = False  # with `batch_size` what frameworks ask a DataLoader

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

    @property
    def batch_size(self) -> None:
        """None, as of a DataLoader over whole steps.

        Raises PreparedByAccelerate where Accelerate asks, to read the steps again and skip some of them.
        """
        require_direct_loop(sys._getframe(1))

    def __len__(self) -> int:
        return len(self.dataset)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return self.dataset.failing_loop(sys._getframe(1)) or self._loop()

    def _loop(self) -> Iterator[Any]:
        copies = _GpuCopies(self._device) if self._device and self._device.type == "cuda" else None
        call = current_context().child()  # interrupts a source that waits, when the loop ends

        def items() -> Iterator[tuple[int, Any]]:
            with use_context(call):
                for offset, item in numbered:
                    yield offset, copies.start(item) if copies else item

        def cancel() -> None:
            call.cancel(CallCancelled("The loop over the loader has ended."))

        with self.dataset.loop() as take:
            numbered = self._numbered(self.dataset.next_step)
            with Prefetcher(items(), self._prefetch, lambda _: 1, cancel) as prefetched:
                for offset, item in prefetched:
                    ready = copies.finish(item) if copies else self._moved(item)
                    take(offset)
                    yield ready

    def _numbered(self, first: int) -> Iterable[tuple[int, Any]]:
        """The items from step `first` on, each with the step after it."""
        if not self._workers:
            return self.dataset.steps_from(first)
        loader: Iterable[tuple[int, Any]] = DataLoader(
            _Numbered(self.dataset, first),
            batch_size=None,
            num_workers=self._workers,
            prefetch_factor=self._prefetch,
            multiprocessing_context=self._context,
        )
        return with_plain_errors(loader)

    def _moved(self, item: Any) -> Any:
        return item if self._device is None else map_tensors(item, lambda one: one.to(self._device))


class _Numbered(IterableDataset[tuple[int, Any]]):
    """The items of a dataset from step `first` on, each with the step after it, dealt to workers."""

    def __init__(self, dataset: StepDataset[Any], first: int) -> None:
        self._dataset = dataset
        self._first = first

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        worker = get_worker_info()
        assert worker is not None
        first = self._first + worker.id * self._dataset.source.stride
        return self._dataset.steps_dealt(first, worker.num_workers, self._first)


class _GpuCopies:
    """Copies to a GPU that overlap with its computation."""

    def __init__(self, device: torch.device) -> None:
        # Not asked earlier, because asking before workers are forked may harm them.
        if not torch.cuda.is_available():
            raise InvalidRequest(
                f"`device` is `{device}`, and PyTorch sees no GPU here. Install a build of PyTorch for the "
                "driver of your GPU, or leave `device` out."
            )
        self._device = device
        self._stream = torch.cuda.Stream(device)

    def start(self, item: Any) -> tuple[Any, torch.cuda.Event]:
        """The item in the GPU's memory once the event has happened."""
        with torch.cuda.stream(self._stream):
            twin = map_tensors(item, lambda one: one.pin_memory().to(self._device, non_blocking=True))
            return twin, self._stream.record_event()

    def finish(self, copy: tuple[Any, torch.cuda.Event]) -> Any:
        """The item, safe to use on the current stream."""
        item, twin = copy
        current = torch.cuda.current_stream(self._device)
        current.wait_event(twin)

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
