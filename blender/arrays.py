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
    """An Arrow array over the memory of 32- or 64-bit signed integers."""
    kind = {4: pa.int32(), 8: pa.int64()}[values.dtype.itemsize]
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
