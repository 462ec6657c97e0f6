"""The shape of the rows of `bench stream`, and the interface of its readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.formats import Tokens, mapped

LENGTH, BATCH = 2_048, 8  # tokens per row, rows per batch
SHARES = (60, 30, 10)  # percent of the rows, by source
SOURCES = range(len(SHARES))
STEP_ROWS = 80  # rows per step of ours: ten ranks of 8


@dataclass(frozen=True)
class Stream:
    """Batches, and the state from which to resume after the last one."""

    batches: Iterator[Tokens]
    state: Callable[[], Any]


@dataclass(frozen=True)
class Reader:
    """`imports` are timed apart; `opened` opens a folder's rows at the front or at a state."""

    imports: tuple[str, ...]
    opened: Callable[[Path, Any], Stream]


def rows_file(home: Path, source: int) -> Path:
    """The array of a source."""
    return home / f"rows-{source}.npy"


def array(home: Path, source: int) -> Tokens:
    """The rows of a source, mapped."""
    return mapped(rows_file(home, source))


def n_rows_of(source: int, rows: int) -> int:
    """Rows of a source if there are `rows` in all: whole steps of them."""
    return rows // STEP_ROWS * STEP_ROWS * SHARES[source] // 100


def total(home: Path) -> int:
    """Rows of all sources."""
    return sum(len(array(home, source)) for source in SOURCES)
