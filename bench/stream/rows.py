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
    """`imports` are timed separately; `opened` opens a folder's rows at the front or at a state."""

    imports: tuple[str, ...]
    opened: Callable[[Path, Any], Stream]


def counted(n_rows: int, state: Any, read: Callable[[slice], Tokens]) -> Stream:
    """Batches of `n_rows` rows as `read` gives them; the state is the number of batches read."""
    done = [state or 0]

    def batches() -> Iterator[Tokens]:
        for begin in range(done[0] * BATCH, n_rows, BATCH):
            batch = read(slice(begin, begin + BATCH))
            done[0] += 1
            yield batch

    return Stream(batches(), lambda: done[0])


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
