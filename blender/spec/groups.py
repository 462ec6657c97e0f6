"""The positions of equal numbers in a column, by one stable sort instead of a scan per number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def positions_by_number(numbers: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield every distinct number, ascending, with its positions in `numbers` [n], ascending.

    The largest number sets the memory: numbers count sources, or are ranks among n values.
    """
    counts = np.bincount(numbers)
    ends = np.cumsum(counts)
    positions = np.argsort(narrow(numbers), kind="stable")
    for number in np.flatnonzero(counts).tolist():
        yield number, positions[ends[number] - counts[number] : ends[number]]


def narrow(numbers: Ints) -> npt.NDArray[np.unsignedinteger]:
    """Numbers of 0 or more in the narrowest type, because numpy sorts 16 bits by radix, in linear time."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
