"""The places of rows and pictures in a plan of your own, as arrays: the input of `plan_raw`.

    places = RawPlaces.from_arrays(bucket=[0, 0, 1, 1], bin=[0, 1, 0, 1])
    RawPlaces.from_arrays(bucket, bin, node=[3, 0], node_bin=[0, 0])     # pictures, too
    RawPlaces.from_arrays(bucket, bin, encoder_level="interleaved")      # pictures, by a level of the tree

A trainer imports this module without the lake.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from factory.errors import first_line

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RawPlaces:
    """The bucket and the microbatch of each row of a step, and of its pictures. Raises InvalidRequest.

    Rows and pictures are in the order of the summary (`BufferSummary`). Without `node` and `node_bin`
    pictures get their places by `encoder_level`, and without that by the level of the spec.
    """

    bucket: Ints
    """The data parallel bucket of each row; shape [rows]."""
    bin: Ints
    """The microbatch of each row; shape [rows]."""
    node: Ints | None = None
    """The node of the encoder that gets each picture, a rank without `encoder_tree`; shape [pictures]."""
    node_bin: Ints | None = None
    """The microbatch in which it is encoded; shape [pictures]."""
    encoder_level: str | None = None
    """`intra`, `inter` or `interleaved`, as in a spec."""

    def __post_init__(self) -> None:
        if (self.node is None) != (self.node_bin is None):
            raise InvalidRequest(
                "A picture has a node and a microbatch on it, and the plan gives one of them alone. Give "
                "both `node` and `node_bin`, or neither."
            )
        if self.node is not None and self.encoder_level is not None:
            raise InvalidRequest(
                "The plan gives pictures a place by `node`, and by `encoder_level`, too. Give one of them."
            )

    @classmethod
    def from_arrays(
        cls,
        bucket: npt.ArrayLike,
        bin: npt.ArrayLike,
        node: npt.ArrayLike | None = None,
        node_bin: npt.ArrayLike | None = None,
        encoder_level: str | None = None,
    ) -> Self:
        """The places in copies of these arrays or sequences; raises InvalidRequest for other numbers."""
        return cls(
            whole_numbers("bucket", bucket),
            whole_numbers("bin", bin),
            None if node is None else whole_numbers("node", node),
            None if node_bin is None else whole_numbers("node_bin", node_bin),
            encoder_level,
        )


def whole_numbers(name: str, values: npt.ArrayLike) -> Ints:
    """A copy of `values` of shape [n]; raises InvalidRequest for anything but whole numbers in one row."""
    try:
        array = np.array(values)
    except ValueError as error:
        cause = first_line(error)
        raise InvalidRequest(f"`{name}` is not an array ({cause}). Give one number for each.") from error
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, dtype=np.int64)  # numpy makes floats of an empty list
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InvalidRequest(
            f"The plan gives {array.dtype} in the shape {array.shape} as `{name}`. Give one whole number for "
            "each."
        )
    return array.astype(np.int64)
