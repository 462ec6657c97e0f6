"""The columns that a global batch can hold, and the room that they take in a slice."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from blender.global_batches.errors import InvalidBatch
from blender.global_batches.format.bfloat16 import BITS, Bfloat16Array, host_array
from factory.errors import first_line

ROW_FACTS = "row_facts"
"""A column of packed rows (`stored_rows`): chunks of them hold neighbors, and are cut anew for another cp."""

ALIGNMENT = 64  # a cache line, and the widest vector of a CPU
BFLOAT16 = "bfloat16"
DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", BFLOAT16)

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
        return padded(prod(self.shape(dp)) * numpy_dtype(self.dtype).itemsize)

    def array(self, dp: int, content: memoryview, offset: int) -> Array:
        """The column in the slices of a dp index, as a view of their bytes from `offset` on."""
        array = np.ndarray(self.shape(dp), numpy_dtype(self.dtype), content, offset)
        return array.view(Bfloat16Array) if self.dtype == BFLOAT16 else array


def padded(length: int) -> int:
    """`length` or the next multiple of ALIGNMENT."""
    return -(-length // ALIGNMENT) * ALIGNMENT


def dtype_of(array: Array) -> str:
    """The dtype as a footer names it: little-endian."""
    return BFLOAT16 if isinstance(array, Bfloat16Array) else array.dtype.newbyteorder("<").str


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype in which numpy holds a column: two bytes without a meaning for bfloat16."""
    return BITS if name == BFLOAT16 else np.dtype(name)


def dtype_in_words(name: str) -> str:
    """A dtype of a footer in a sentence: `int32`, `bfloat16`."""
    return name if name == BFLOAT16 else f"{np.dtype(name)}"


def require_sequence(sequence: Collection[str], names: Collection[str]) -> None:
    """Raises InvalidBatch unless every column that is to be cut is there."""
    unknown = [name for name in sequence if name not in names]
    if unknown:
        raise InvalidBatch(f"`sequence` names the column `{unknown[0]}`. Columns: {listed(names)}.")


def column_array(name: str, column: object, *, least_axes: int = 0) -> Array:
    """A column as an array over the same memory: one of numpy, a tensor of torch, or another that has DLPack.

    Raises InvalidBatch unless it can be stored and has the axes along which it is cut.
    """
    array = _numpy_array(name, column)
    if dtype_of(array) not in DTYPES:
        raise InvalidBatch(
            f"Column `{name}` has dtype {array.dtype}. A batch holds bool, integers of 8 to 64 bits, floats "
            "of 16 to 64 bits, and bfloat16."
        )
    if array.ndim < least_axes:
        raise InvalidBatch(
            f"Column `{name}` has shape {array.shape}. Give it rows as axis 0, and the sequence as axis 1 if "
            "`sequence` names it."
        )
    return array


def _numpy_array(name: str, column: object) -> Array:
    if isinstance(column, np.ndarray):
        is_of_ml_dtypes = column.dtype.name == BFLOAT16 and not isinstance(column, Bfloat16Array)
        return Bfloat16Array.of_bits(column) if is_of_ml_dtypes else column
    if not hasattr(column, "__dlpack__"):
        raise InvalidBatch(
            f"Column `{name}` is a {type(column).__name__}. Give it as an array of numpy or a tensor of "
            "torch."
        )
    try:
        return host_array(column)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:  # each library raises another one
        raise InvalidBatch(
            f"Column `{name}` is a {type(column).__name__} that numpy cannot read ({first_line(error)}). "
            "Give it detached and in the memory of the host: of torch, `.detach().cpu()`."
        ) from error


def listed(names: Collection[str]) -> str:
    """Names for a sentence."""
    return ", ".join(f"`{name}`" for name in sorted(names)) or "none"
