"""Packed rows of real files: the Python files of this installation, cut and packed at any length.

A file has a token for 4 bytes, as `bench packing` counts. A file above the row length gives full rows; the
best-fit packing of the project places the remainders. Only lengths matter to a plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.installation import installed_files
from bench.packing.lengths import BYTES_PER_TOKEN, full_and_rest
from blender.loading.columns import StepColumns
from blender.loading.costs import Costs, sums
from factory._native import best_fit_decreasing

Ints = npt.NDArray[np.int64]


def file_lengths(suffix: str = ".py") -> Ints:
    """The estimated tokens of each file with this suffix."""
    n_bytes = [path.stat().st_size for path in installed_files() if path.suffix == suffix]
    return np.maximum(1, np.array(n_bytes) // BYTES_PER_TOKEN)


@dataclass(frozen=True)
class PackedRows:
    """Packed rows, a value a row."""

    n_tokens: Costs
    squared_lengths: Costs

    def __len__(self) -> int:
        return len(self.n_tokens)

    def step(self, offset: int, width: int) -> StepColumns:
        """Rows of a step in shuffled order, drawn without repetition until all were drawn."""
        random = np.random.default_rng(offset)
        epochs = [random.permutation(len(self)) for _ in range(-(-width // len(self)))]
        ordinals = np.concatenate(epochs)[:width]
        return StepColumns(
            blend="0" * 32,
            offset=offset,
            sources=("files",),
            source=np.zeros(width, dtype=np.int64),
            epoch=np.arange(width) // len(self),
            ordinal=ordinals,
            facts={
                "n_tokens": self.n_tokens[ordinals],
                "squared_lengths": self.squared_lengths[ordinals],
            },
        )


def packed(lengths: Ints, row_length: int) -> PackedRows:
    """Pack documents of these lengths in rows of `row_length` tokens."""
    full, rest = full_and_rest(lengths, row_length)
    rest = rest[rest > 0]
    row = best_fit_decreasing(pa.array(rest), row_length).to_numpy().astype(np.int64)
    n_full, length = int(full.sum()), np.uint64(row_length)
    n_packed, pieces = int(row.max(initial=-1)) + 1, rest.astype(np.uint64)
    n_tokens, squares = sums(pieces, row, n_packed), sums(pieces * pieces, row, n_packed)
    return PackedRows(
        np.concatenate([np.full(n_full, length), n_tokens]),
        np.concatenate([np.full(n_full, length * length), squares]),
    )
