"""The pictures that source loaders hand to a constructor: sizes and places of all, patches of some.

    handover.sizes      row  number  position  width  height        every picture of the rows at hand
    handover.pictures   row  number  width  height  content  problem  document      to be encoded

`content` is a file as the table has it, or patches. Both tables are sorted by row and number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_arrow, as_numpy

Ints = npt.NDArray[np.int64]

_PLACE = [pa.field("row", pa.int64()), pa.field("number", pa.int64())]
_SIZE = [pa.field("width", pa.int64()), pa.field("height", pa.int64())]

SIZES = pa.schema([*_PLACE, pa.field("position", pa.int64()), *_SIZE])

PICTURES = pa.schema(
    [
        *_PLACE,
        *_SIZE,
        pa.field("content", pa.large_binary()),
        pa.field("problem", pa.string()),  # why it is gray; null for the picture itself
        pa.field("document", pa.string()),  # of a gray one
    ]
)


@dataclass(frozen=True)
class PictureHandover:
    """Pictures of the rows of some sources."""

    sizes: pa.RecordBatch
    pictures: pa.RecordBatch

    @property
    def n_bytes(self) -> int:
        """Bytes that travel."""
        return int(self.sizes.nbytes + self.pictures.nbytes)

    @classmethod
    def join_samples(cls, parts: Sequence[PictureHandover]) -> PictureHandover:
        """The pictures of all loaders, in the order of the step."""
        return cls(
            _in_order([part.sizes for part in parts], SIZES),
            _in_order([part.pictures for part in parts], PICTURES),
        )


def column(rows: pa.RecordBatch, name: str) -> Ints:
    """A column of whole numbers."""
    values: Ints = as_numpy(rows.column(name))
    return values


def _in_order(parts: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    with_rows = [part for part in parts if part.num_rows]
    if len(with_rows) <= 1:
        return with_rows[0] if with_rows else pa.RecordBatch.from_pylist([], schema=schema)
    rows = pa.concat_batches(with_rows)
    order = np.lexsort((column(rows, "number"), column(rows, "row")))
    return rows.take(as_arrow(order))
