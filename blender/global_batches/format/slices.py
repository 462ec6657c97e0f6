"""A global batch as one immutable object; every rank reads its own slice alone.

    batch = encode(cut(columns, Mesh(dp=32, cp=2), sequence={"tokens"}), origin={"offset": 812})
    batch.body                                      # the object; `footer_offset` and the rest go to the log
    Footer.of_object(batch.body, "a copy")          # its contents: `footer.py` describes the bytes

Nothing in an object names a lane, an epoch, a process or a time: any writer gets equal bytes from equal
arrays and an equal origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np

from blender.global_batches.errors import InvalidBatch
from blender.global_batches.format.columns import (
    Column,
    Shape,
    column_array,
    dtype_in_words,
    dtype_of,
    listed,
    numpy_dtype,
    padded,
    require_sequence,
)
from blender.global_batches.format.footer import (
    MAGIC,
    TRAILER,
    Footer,
    footer_hash,
    possible_chunks,
)
from blender.global_batches.json_values import Json, small_json

RESERVED = "offset"
"""The name under which a reader gets the number of the step."""


@dataclass(frozen=True, eq=False)
class Slices:
    """The columns of a batch, cut for a mesh.

    `arrays` has `dp * chunks` elements, dp index first. `chunks` is 1, or 2 cp for a mesh with cp > 1: the
    equal parts of the sequence, in its order. Columns in `sequence` are cut along axis 1, and each slice has
    its part. The others are whole, and in the slices of even chunks alone: see `cut`.
    """

    arrays: tuple[Mapping[str, Any], ...]
    dp: int
    chunks: int = 1
    sequence: frozenset[str] = frozenset()


@dataclass(frozen=True)
class EncodedBatch:
    """The object of a batch, and the facts that the log needs to read it."""

    body: bytes
    footer_offset: int
    footer_length: int
    footer_hash: bytes


def encode(slices: Slices, origin: Json = None) -> EncodedBatch:
    """The object that holds `slices`. Big-endian arrays are stored little-endian.

    `origin` is the producer's own record of the source: JSON of at most 4 KiB. Raises InvalidBatch.
    """
    slices = _with_arrays(slices)
    columns = tuple(_column(slices, name) for name in sorted(slices.arrays[0]))
    origin = small_json(origin, "origin")
    pieces: list[memoryview | bytes] = []
    checksums: list[int] = []
    for index, arrays in enumerate(slices.arrays):
        checksum = 0
        for column in columns:
            if column.within(index % slices.chunks):
                array = np.asarray(arrays[column.name], dtype=numpy_dtype(column.dtype), order="C")
                padding = bytes(padded(array.nbytes) - array.nbytes)
                checksum = crc32(padding, crc32(array.data, checksum))
                pieces += [array.data, padding]
        checksums.append(checksum)
    footer = Footer(slices.dp, slices.chunks, columns, tuple(checksums), origin)
    footer_bytes = footer.encoded()
    trailer = TRAILER.pack(footer.length, len(footer_bytes), crc32(footer_bytes), MAGIC)
    body = b"".join([*pieces, footer_bytes, trailer])
    return EncodedBatch(body, footer.length, len(footer_bytes), footer_hash(footer_bytes))


def _with_arrays(slices: Slices) -> Slices:
    """The same with arrays of numpy; raises InvalidBatch unless every slice has the columns it should."""
    if slices.dp < 1 or not possible_chunks(slices.chunks):
        raise InvalidBatch(
            f"A batch cannot have {slices.dp} dp indexes of {slices.chunks} chunks. Use 1 or more, of 1 "
            "chunk or of 2 for each of 2 or more cp indexes."
        )
    if len(slices.arrays) != slices.dp * slices.chunks:
        raise InvalidBatch(
            f"{len(slices.arrays)} slices were given for {slices.dp} dp indexes of {slices.chunks} chunks. "
            f"Give {slices.dp * slices.chunks}."
        )
    names = slices.arrays[0].keys()
    if not names:
        raise InvalidBatch("The batch has no columns. Give every slice the same columns, at least one.")
    if not all(isinstance(name, str) for name in names):
        raise InvalidBatch(f"The columns {list(names)} are not all named by strings. Name them so.")
    if RESERVED in names:
        raise InvalidBatch(f"A column is named `{RESERVED}`, which is the step of a batch. Rename it.")
    require_sequence(slices.sequence, names)
    for index, arrays in enumerate(slices.arrays):
        expected = names if index % slices.chunks % 2 == 0 else slices.sequence
        if arrays.keys() != expected:
            raise InvalidBatch(
                f"Slice {_place(slices, index)} has the columns {listed(arrays)}, and should have "
                f"{listed(expected)}. Give even chunks the columns of slice 0, odd ones those of `sequence`."
            )
    with_arrays = tuple(
        {
            name: column_array(name, column, least_axes=2 if name in slices.sequence else 0)
            for name, column in columns.items()
        }
        for columns in slices.arrays
    )
    return replace(slices, arrays=with_arrays)


def _column(slices: Slices, name: str) -> Column:
    dtype = ""
    shapes: list[Shape] = []
    for index, arrays in enumerate(slices.arrays):
        if name not in arrays:
            continue
        array, place = arrays[name], _place(slices, index)
        dtype = dtype or dtype_of(array)
        if dtype_of(array) != dtype:
            raise InvalidBatch(
                f"Column `{name}` is {dtype_in_words(dtype_of(array))} in slice {place}, and "
                f"{dtype_in_words(dtype)} in the first. Give it one dtype."
            )
        if index % slices.chunks == 0:
            shapes.append(array.shape)
        elif array.shape != shapes[-1]:
            raise InvalidBatch(
                f"Column `{name}` has shape {array.shape} in slice {place}, and {shapes[-1]} in chunk 0. Cut "
                "the sequence into equal chunks."
            )
    shared = len(set(shapes)) == 1
    return Column(name, dtype, name in slices.sequence, tuple(shapes[:1] if shared else shapes))


def _place(slices: Slices, index: int) -> str:
    return "dp {}, chunk {}".format(*divmod(index, slices.chunks))
