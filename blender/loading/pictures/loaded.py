"""The pictures of a step as a rank reads them: patches to encode, and two maps for the exchange of outputs.

    pictures = step.images[0]                   # of the encoder's first microbatch
    pictures.patches                            # uint8 [n, patch * patch * 3], of all pictures in order
    pictures.grid                               # [k, 2]: lines of patches and patches a line of each picture
    pictures.cu_patches                         # [k + 1]: ends of the pictures in `patches`
    pictures.to["bucket"], pictures.to["row"]   # [k]: where the output of each goes
    step.placeholders[1]["node"]                # of the second microbatch of rows: who encodes each picture

Where a rank encodes the pictures of its own rows, each placeholder of a microbatch has the `index` of its
picture in the same microbatch of `images`. Positions are places in whole rows: with context parallelism
compare them with `places`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_numpy
from blender.loading.pictures.delivered import (
    DELIVERED,
    PLACEHOLDER,
    PLACEHOLDERS,
    PatchFacts,
    as_large_offsets,
    numbers_of,
)

Ints = npt.NDArray[np.int32]

TO = ("bucket", "microbatch", "row", "position", "tokens")
FROM = tuple(field.name for field in PLACEHOLDER)


@dataclass(frozen=True)
class ReplacedPicture:
    """A picture that became gray."""

    document: str
    reason: str
    """Why, to follow `its picture`."""
    source: int
    ordinal: int
    number: int


class LoadedPictures:
    """The pictures that a rank encodes in one microbatch, in the order of the step."""

    def __init__(self, values: pa.StructArray, facts: PatchFacts) -> None:
        self._values, self.facts = values, facts

    def __len__(self) -> int:
        return len(self._values)

    @cached_property
    def patches(self) -> npt.NDArray[np.uint8]:
        """The patches of all pictures, a view; shape [n, patch * patch * 3]."""
        width = self.facts.patch**2 * 3
        if not len(self):
            return np.empty((0, width), dtype=np.uint8)
        content = self._values.field("patches")
        offsets = as_large_offsets(content)
        count = int(offsets[-1] - offsets[0])
        return np.frombuffer(content.buffers()[2], np.uint8, count, int(offsets[0])).reshape(-1, width)

    @cached_property
    def grid(self) -> Ints:
        """The lines of patches of each picture, and the patches a line; shape [k, 2]."""
        sides = numbers_of(self._values, ("down", "across"))
        return np.stack([sides["down"], sides["across"]], axis=1)

    @cached_property
    def cu_patches(self) -> Ints:
        """0 and the end of each picture in `patches`; shape [k + 1]."""
        return np.concatenate([[0], np.cumsum(self.grid.prod(axis=1))]).astype(np.int32)

    @cached_property
    def to(self) -> dict[str, Ints]:
        """Where the tokens of each picture go: bucket, microbatch, row of it, first position, and number."""
        return numbers_of(self._values, TO)

    @cached_property
    def node(self) -> Ints:
        """The node of the encoder that each picture belongs to; a rank may read for others."""
        node: Ints = as_numpy(self._values.field("node"))
        return node

    @cached_property
    def replacements(self) -> tuple[ReplacedPicture, ...]:
        """The pictures that became gray."""
        bad = np.flatnonzero(~_is_null(self._values.field("problem"))).tolist()
        names = ("document", "problem", "source", "ordinal", "number")
        rows = [[self._values.field(name)[index].as_py() for name in names] for index in bad]
        return tuple(ReplacedPicture(*row) for row in rows)

    def pixels(self) -> npt.NDArray[np.float32]:
        """The patches as normalized colors, (color / 255 - mean) / std; shape [n, patch * patch * 3]."""
        colors = self.patches.reshape(len(self.patches), self.facts.patch**2, 3) / np.float32(255)
        mean = np.array(self.facts.mean, dtype=np.float32)
        std = np.array(self.facts.std, dtype=np.float32)
        centered_colors = ((colors - mean) / std).astype(np.float32, copy=False)
        return centered_colors.reshape(self.patches.shape)


def loaded_pictures(rows: pa.RecordBatch) -> tuple[LoadedPictures, ...]:
    """The pictures of each microbatch of the encoder; empty for rows without pictures."""
    if DELIVERED not in rows.schema.names:
        return ()
    facts = PatchFacts.of_field(rows.schema.field(DELIVERED))
    values = rows.column(DELIVERED).flatten()
    bins = as_numpy(values.field("bin"))
    ends = np.searchsorted(bins, np.arange(facts.bins + 1))
    return tuple(
        LoadedPictures(values.slice(first, stop - first), facts)
        for first, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    )


def placeholders(rows: pa.RecordBatch) -> dict[str, Ints]:
    """The placeholders of rows: `row` among them, and `FROM`; empty for rows without pictures."""
    if PLACEHOLDERS not in rows.schema.names:
        return {}
    lists = rows.column(PLACEHOLDERS)
    counts = np.diff(as_numpy(lists.offsets))
    row = np.repeat(np.arange(rows.num_rows, dtype=np.int32), counts)
    return {"row": row, **numbers_of(lists.flatten(), FROM)}


def _is_null(values: pa.Array) -> npt.NDArray[np.bool_]:
    return np.array([not reason.is_valid for reason in values], dtype=bool)
