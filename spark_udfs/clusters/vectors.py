"""Matrices of the vectors in a column of bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from factory.errors import ConfigurationError

_WIDTH = 4  # bytes of a float32


def matrix(vectors: pa.Array) -> npt.NDArray[np.float32]:
    """Return vectors, little-endian float32 without nulls, as rows of a matrix (n, d).

    Raises ConfigurationError for vectors of several lengths.
    """
    lengths = pc.unique(pc.binary_length(vectors)).to_pylist()
    if len(lengths) > 1:
        few, many = min(lengths) // _WIDTH, max(lengths) // _WIDTH
        raise ConfigurationError(
            f"One vector has {few:,} numbers and another has {many:,}. Make all vectors with one embedder."
        )
    if not lengths:
        return np.zeros((0, 0), np.float32)
    _, offsets, content = vectors.buffers()  # one copy of the bytes at most: a sample has a gigabyte
    first = np.frombuffer(offsets, np.int32)[vectors.offset]
    numbers = np.frombuffer(content, np.uint8)[first : first + len(vectors) * lengths[0]].view("<f4")
    return numbers.reshape(len(vectors), -1)


def binary(rows: npt.NDArray[np.float32]) -> pa.Array:
    """Return the rows of a matrix as a column of bytes, which `matrix` reads."""
    return pa.array([row.tobytes() for row in rows.astype("<f4")], pa.binary())
