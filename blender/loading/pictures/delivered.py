"""The columns of pictures in a batch for a rank, nested in its rows.

    placeholders   with each row: where the tokens of its pictures are, and who encodes each of them
    pictures       what this rank encodes, and where the output of each goes

A rank may encode pictures of other ranks' rows. They are dealt to the rows of its batch by bytes, in the
order of its microbatches, so that all of a batch is one table, and parts of it are of like size.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_arrow, as_numpy

Ints = npt.NDArray[np.int64]

PLACEHOLDERS, DELIVERED = "placeholders", "pictures"
PATCHES = "factory.patches"  # field metadata of `pictures`: JSON of `PatchFacts`

PLACEHOLDER = pa.struct(
    [pa.field(name, pa.int32(), nullable=False) for name in ("position", "tokens", "node", "bin", "index")]
)

_NUMBERS = ("node", "bin", "index", "bucket", "microbatch", "row", "position", "tokens", "across", "down")

PICTURE = pa.struct(
    [
        *(pa.field(name, pa.int32(), nullable=False) for name in _NUMBERS),
        pa.field("source", pa.int32(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("problem", pa.string()),
        pa.field("document", pa.string()),
        pa.field("patches", pa.large_binary(), nullable=False),
    ]
)


@dataclass(frozen=True)
class PatchFacts:
    """What all patches of a spec share."""

    patch: int
    merge: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    bins: int
    """Microbatches of the encoder."""

    def field(self) -> pa.Field:
        """The field `pictures` of a batch."""
        text = json.dumps(vars(self), sort_keys=True)
        return pa.field(DELIVERED, pa.list_(PICTURE), metadata={PATCHES: text})

    @classmethod
    def of_field(cls, field: pa.Field) -> PatchFacts:
        """The inverse of `field`."""
        members: dict[str, Any] = json.loads(field.metadata[PATCHES.encode()])
        return cls(**{**members, "mean": tuple(members["mean"]), "std": tuple(members["std"])})


def with_placeholders(rows: pa.RecordBatch, row: Ints, columns: dict[str, Ints]) -> pa.RecordBatch:
    """The rows with their placeholders, given by row; `row` is ascending."""
    values = pa.StructArray.from_arrays(
        [int32(columns[field.name]) for field in PLACEHOLDER], fields=list(PLACEHOLDER)
    )
    offsets = np.searchsorted(row, np.arange(rows.num_rows + 1))
    lists = pa.ListArray.from_arrays(int32(offsets), values, type=pa.list_(PLACEHOLDER))
    return rows.append_column(pa.field(PLACEHOLDERS, pa.list_(PLACEHOLDER)), lists)


def with_pictures(rows: pa.RecordBatch, pictures: pa.StructArray, facts: PatchFacts) -> pa.RecordBatch:
    """The rows with the pictures that a rank encodes, in the order given."""
    sizes = np.diff(as_large_offsets(pictures.field("patches")))
    before = np.cumsum(sizes) - sizes
    row = np.minimum(before * rows.num_rows // max(1, int(sizes.sum())), rows.num_rows - 1)
    offsets = np.searchsorted(row, np.arange(rows.num_rows + 1))
    lists = pa.ListArray.from_arrays(int32(offsets), pictures, type=pa.list_(PICTURE))
    return rows.append_column(facts.field(), lists)


def as_large_offsets(values: pa.Array) -> Ints:
    """The begin of each value of a large binary array in its data, and the end."""
    if not len(values):
        return np.zeros(1, dtype=np.int64)
    return np.frombuffer(values.buffers()[1], "<i8", len(values) + 1, 8 * values.offset)


def numbers_of(values: pa.StructArray, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Fields of structures as arrays."""
    return {name: as_numpy(values.field(name)) for name in names}


def int32(values: npt.ArrayLike) -> pa.Array:
    """An Arrow array of 32 bits."""
    return as_arrow(np.asarray(values).astype(np.int32))
