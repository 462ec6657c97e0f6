"""Views of integers between Arrow and numpy, without pandas.

`Array.to_numpy` and `pa.array(ndarray)` import pandas on their first call if it is installed: 0.2 s
of CPU before the first batch of every trainer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def as_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """A view of an integer array without nulls."""
    assert array.null_count == 0, array.type
    width = array.type.bit_width // 8
    _, data = array.buffers()
    if data is None:
        return np.empty(0, dtype=f"<i{width}")
    return np.frombuffer(data, dtype=f"<i{width}", count=len(array), offset=array.offset * width)


def as_arrow(values: npt.NDArray[Any]) -> pa.Array:
    """An Arrow array over the memory of int32, int64 or uint64."""
    kind = {"i4": pa.int32(), "i8": pa.int64(), "u8": pa.uint64()}[values.dtype.str[1:]]
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def as_binary(values: npt.NDArray[Any], offsets: npt.NDArray[np.int64]) -> pa.Array:
    """A binary array over the memory of integers; value i begins at the integer `offsets[i]`."""
    bounds = (offsets * values.itemsize).astype(np.int32)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def binary_offsets(array: pa.Array) -> npt.NDArray[np.int64]:
    """The begin of each value of a binary array in its data, and the end; a null is empty."""
    if len(array) == 0:
        return np.zeros(1, dtype=np.int64)
    return np.frombuffer(array.buffers()[1], "<i4", len(array) + 1, 4 * array.offset).astype(np.int64)


def binary_integers(array: pa.Array, width: int) -> npt.NDArray[Any]:
    """A view of the integers of 1, 2 or 4 bytes in all values of a binary array; unsigned below 4 bytes."""
    offsets = binary_offsets(array)
    n = int(offsets[-1] - offsets[0]) // width
    kind = f"<u{width}" if width < 4 else "<i4"
    return np.frombuffer(array.buffers()[2] or b"", kind, count=n, offset=int(offsets[0]))
