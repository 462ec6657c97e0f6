"""The columns that a global batch can hold, and the room that they take in a slice."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from blender.global_batches.errors import InvalidBatch

ALIGNMENT = 64  # a cache line, and the widest vector of a CPU
DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")

Array: TypeAlias = npt.NDArray[np.generic]
Shape: TypeAlias = tuple[int, ...]


class Column(NamedTuple):
    """A column of a batch."""

    name: str
    dtype: str
    """One of `DTYPES`."""
    cut: bool
    """Whether every chunk holds its part of the sequence, along axis 1. Else even chunks hold it whole."""
    shapes: tuple[Shape, ...]
    """The shape in a slice: one for each dp index, or one for all."""

    def within(self, chunk: int) -> bool:
        """Whether slices of this chunk hold the column."""
        return self.cut or chunk % 2 == 0

    def shape(self, dp: int) -> Shape:
        """The shape in the slices of a dp index that hold the column."""
        return self.shapes[dp if len(self.shapes) > 1 else 0]

    def padded_bytes(self, dp: int) -> int:
        """The bytes that the column takes in a slice."""
        return padded(prod(self.shape(dp)) * np.dtype(self.dtype).itemsize)


def padded(length: int) -> int:
    """`length` or the next multiple of ALIGNMENT."""
    return -(-length // ALIGNMENT) * ALIGNMENT


def dtype_of(array: Array) -> str:
    """The dtype as a footer names it: little-endian."""
    return array.dtype.newbyteorder("<").str


def require_sequence(sequence: Collection[str], names: Collection[str]) -> None:
    """Raises InvalidBatch unless every column that is to be cut is there."""
    unknown = [name for name in sequence if name not in names]
    if unknown:
        raise InvalidBatch(f"`sequence` names the column `{unknown[0]}`. Columns: {listed(names)}.")


def require_array(name: str, array: object, *, least_axes: int = 0) -> None:
    """Raises InvalidBatch unless `array` can be stored and has the axes along which it is cut."""
    if not isinstance(array, np.ndarray):
        raise InvalidBatch(f"Column `{name}` is a {type(array).__name__}. Give it as an array of numpy.")
    if dtype_of(array) not in DTYPES:
        raise InvalidBatch(
            f"Column `{name}` has dtype {array.dtype}. A batch holds bool, integers of 8 to 64 bits and "
            "floats of 16 to 64 bits."
        )
    if array.ndim < least_axes:
        raise InvalidBatch(
            f"Column `{name}` has shape {array.shape}. Give it rows as axis 0, and the sequence as axis 1 if "
            "`sequence` names it."
        )


def listed(names: Collection[str]) -> str:
    """Names for a sentence."""
    return ", ".join(f"`{name}`" for name in sorted(names)) or "none"
