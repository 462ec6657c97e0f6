"""The surroundings of a dataset of steps: torch's DataLoader and the frameworks that wrap it.

They tell a dataset nothing about themselves but by the frames of the call that begins a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, TypeVar

from torch.utils.data import ChainDataset, default_collate
from torch.utils.data._utils.fetch import _IterableDatasetFetcher

from blender.errors import InvalidRequest
from factory.errors import FactoryError, error_from_text

Item = TypeVar("Item")

_FETCHER = (_IterableDatasetFetcher.__init__.__code__, _IterableDatasetFetcher.fetch.__code__)
LIGHTNING_FETCHERS = ("lightning.pytorch.loops.fetchers", "pytorch_lightning.loops.fetchers")
DATALOADERS = ("torch.utils.data.dataloader", "torchdata.stateful_dataloader.stateful_dataloader")
WORKERS_STARTS = (
    "_MultiProcessingDataLoaderIter.__init__",
    "_StatefulMultiProcessingDataLoaderIter.__init__",
)


class JoinedSteps(InvalidRequest):
    """A DataLoader would join whole steps into larger batches.

    Its sentence is constant, because torch recreates a worker's error with the traceback as its message.
    """

    def __init__(self, *_: object) -> None:
        super().__init__(
            "This DataLoader joins steps into batches, and every step is a batch already. Give it "
            "`batch_size=None`, or use `BlendLoader(dataset)`; weights of sources set the rows of a step."
        )


class PreparedByAccelerate(InvalidRequest):
    """Accelerate would give each rank rows of another one, or a state that is one step ahead of the loop.

    On several ranks it reads on rank 0 and sends the parts of its rows to all, or gives each rank some of its
    steps; on one it takes each step before the loop asks for it. Its sentence is constant for the reason of
    JoinedSteps.
    """

    def __init__(self, *_: object) -> None:
        super().__init__(
            "Accelerate would read these steps for other ranks as well, or one step ahead of the state. "
            "Iterate over `BlendLoader(dataset, device=accelerator.device)`, which `prepare` leaves "
            "alone; in a Trainer return it from `get_train_dataloader`, with `ignore_data_skip=True`."
        )


class FetchedAhead(InvalidRequest):
    """Lightning would take a step more than it trains on, so that a saved state omits it.

    It does so where a loader has no length, to tell the last batch. The sentence is constant for the reason
    of JoinedSteps.
    """

    def __init__(self, *_: object) -> None:
        super().__init__(
            "Lightning takes one step ahead from a loader without a length, and a checkpoint would skip "
            "that step. Give the dataset a `stop`, the step after the last one to read."
        )


def require_whole_steps(caller: FrameType | None) -> None:
    """Raise JoinedSteps if a DataLoader that joins items by default begins a loop in the frame `caller`.

    A `collate_fn` of the user may join items.
    """
    while caller is not None and caller.f_code is ChainDataset.__iter__.__code__:
        caller = caller.f_back
    if caller is None or caller.f_code not in _FETCHER:
        return  # `f_locals` of another function would keep its variables alive until it ends
    fetcher = caller.f_locals["self"]
    if fetcher.auto_collation and fetcher.collate_fn is default_collate:
        raise JoinedSteps


def require_direct_loop(caller: FrameType | None) -> None:
    """Raise PreparedByAccelerate or FetchedAhead if `caller` or a frame behind it is such a wrapper's."""
    for frame in _frames(caller):
        module = frame.f_globals.get("__name__")
        if module == "accelerate.data_loader":
            raise PreparedByAccelerate
        if module in LIGHTNING_FETCHERS and frame.f_code.co_qualname == "_PrefetchDataFetcher.__iter__":
            loaders = frame.f_locals["self"].combined_loader.flattened
            if not all(map(_has_length, loaders)):
                raise FetchedAhead
            return


def starts_workers(caller: FrameType | None) -> bool:
    """Whether `caller` or a frame behind it is a DataLoader's, of torch or torchdata, that starts workers."""
    return any(
        frame.f_code.co_qualname in WORKERS_STARTS and frame.f_globals.get("__name__") in DATALOADERS
        for frame in _frames(caller)
    )


def raising(error: Exception) -> Iterator[Any]:
    """An iterator that raises the error at its first step."""
    raise error
    yield


def with_plain_errors(items: Iterable[Item]) -> Iterator[Item]:
    """The items of a DataLoader; its workers' deliberate errors have their sentences again."""
    try:
        yield from items
    except FactoryError as error:
        text = str(error).strip().splitlines()
        plain = error_from_text(text[-1]) if len(text) > 1 else None  # the traceback ends with the sentence
        if plain is None:
            raise
        raise plain from None


def _frames(caller: FrameType | None) -> Iterator[FrameType]:
    """The frame and those behind it, innermost first."""
    while caller is not None:
        yield caller
        caller = caller.f_back


def _has_length(loader: Any) -> bool:
    try:
        len(loader)
    except (TypeError, NotImplementedError):  # as Lightning itself decides
        return False
    return True
