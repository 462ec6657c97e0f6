"""What an asset's run tells whoever watches.

    started -> written -> checked -> sealed [-> publishing, after each table beside the main one] -> published

or `reused` after `started`, and `failed` after any of them.

The command line listens to draw progress; in the Dagster UI nobody listens, since events are drawn there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

Phase = Literal["started", "written", "checked", "sealed", "publishing", "published", "reused", "failed"]


@dataclass(frozen=True)
class Progress:
    """One asset has reached a phase; `rows` is known once it is `published` or `reused`.

    So is `rejected`, the number of rejected records, of a source.
    """

    asset: str
    phase: Phase
    rows: int | None = None
    rejected: int | None = None


Listener = Callable[[Progress], None]
_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send every progress event of this process to `listener` while inside."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(asset: str, phase: Phase, rows: int | None = None, rejected: int | None = None) -> None:
    """Tell the listeners that `asset` has reached `phase`."""
    for listener in _listeners:
        listener(Progress(asset, phase, rows, rejected))
