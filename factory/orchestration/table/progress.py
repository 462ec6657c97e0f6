"""Progress events of an asset's run.

    started -> written -> checked -> sealed [-> publishing, after each side table] -> published

or `reused` or `left out` after `started`, `waiting` before `written` while workers of a job work, and
`failed` after any of them. The command line draws its progress bars from these events; the Dagster UI draws
Dagster's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

Phase = Literal[
    "started",
    "waiting",
    "written",
    "checked",
    "sealed",
    "publishing",
    "published",
    "reused",
    "left out",
    "failed",
]


@dataclass(frozen=True)
class Progress:
    """An asset has reached a phase.

    `rows`, and for a source `rejected`, are the numbers of rows and rejected records; they are set once the
    asset is `published` or `reused`. For an asset `left out`, `rows` is the number that was too small.
    `reason` says why the table was written again, which changes a kept table ignores, or when a left-out
    table is made; `note` says what else the rows lack, such as all records behind a limit, or how far the
    workers are.
    """

    asset: str
    phase: Phase
    rows: int | None = None
    rejected: int | None = None
    reason: str = ""
    note: str = ""


Listener = Callable[[Progress], None]
_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send every progress event of this process to `listener` within the context."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def emit(
    asset: str,
    phase: Phase,
    rows: int | None = None,
    rejected: int | None = None,
    reason: str = "",
    note: str = "",
) -> None:
    """Notify the listeners that `asset` has reached `phase`."""
    for listener in _listeners:
        listener(Progress(asset, phase, rows, rejected, reason, note))
