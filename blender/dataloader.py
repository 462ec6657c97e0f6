"""torch's DataLoader as a dataset meets it: whether it joins steps, and what it makes of a worker's error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FrameType
from typing import TypeVar

from torch.utils.data import default_collate
from torch.utils.data._utils.fetch import _IterableDatasetFetcher

from blender.errors import InvalidRequest
from factory.errors import FactoryError, error_from_text

Item = TypeVar("Item")


class JoinedSteps(InvalidRequest):
    """A DataLoader would join whole steps into larger batches.

    Its sentence is constant, because torch makes a worker's error anew with the traceback as its message.
    """

    def __init__(self, *_: object) -> None:
        super().__init__(
            "This DataLoader joins steps into batches, and every step is a batch already. Give it "
            "`batch_size=None`, or use `BlendLoader(dataset)`; weights of sources set the rows of a step."
        )


def refuse_to_join(caller: FrameType | None) -> None:
    """Raise JoinedSteps if `caller`, which begins an iteration, is a DataLoader that joins items by default.

    torch tells a dataset nothing about its loader but by the frame of the call. A `collate_fn` of the user
    may join items.
    """
    if caller is None or caller.f_code is not _IterableDatasetFetcher.__init__.__code__:
        return  # `f_locals` of another function would keep its variables alive until it ends
    fetcher = caller.f_locals["self"]
    if fetcher.auto_collation and fetcher.collate_fn is default_collate:
        raise JoinedSteps


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
