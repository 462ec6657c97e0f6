"""Global batches cut for a mesh, and put together again on each rank.

    slices = cut({"tokens": tokens, "ids": ids}, Mesh(dp=2, cp=2), sequence={"tokens"})
    chunks_of(cp_index=1, cp=2, layout="zigzag")    # (1, 2): the chunks of a rank in its dp index
    runs_of(1, 2, chunks=8, layout="zigzag")        # chunks 2 to 3 and 4 to 5, of a batch for cp=4
    joined([chunk_1, chunk_2], {"tokens"})          # tokens of both chunks, and the ids

With context parallelism (cp > 1) a sequence is cut into 2 cp chunks, and a rank has two. Under causal masks
the first chunks are cheap and the last ones dear, so `zigzag`, which is Megatron's, gives a rank one from
either end; `contiguous` gives it neighbors. Objects are the same for both.

Every even chunk stores a column without a sequence axis in full. A rank of either layout reads one even and
one odd chunk, so it gets the column once, with the requests that it sends anyway. The price: an object has
the column once for each cp index.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from blender.errors import InvalidRequest
from blender.global_batches.errors import InvalidBatch
from blender.global_batches.format.bfloat16 import Bfloat16Array
from blender.global_batches.format.columns import Array, column_array, require_sequence
from blender.global_batches.format.slices import Slices
from blender.spec.mesh import Mesh

ChunkLayout = Literal["zigzag", "contiguous"]


def cut(columns: Mapping[str, Any], mesh: Mesh, *, sequence: Collection[str] | None = None) -> Slices:
    """The slices of a batch, as views: axis 0 of every column are its rows, axis 1 of some the sequence.

    A column is an array of numpy, or a tensor of torch in the memory of the host, also of bfloat16. Rows are
    divided into `mesh.dp` equal runs, and columns in `sequence`, which a mesh with cp > 1 requires,
    into 2 cp equal chunks. Raises InvalidBatch if they cannot be.
    """
    if isinstance(sequence, str):
        raise InvalidBatch(f"`sequence` is the text `{sequence}`. Give a set of columns: {{'{sequence}'}}.")
    if mesh.cp > 1 and sequence is None:
        raise InvalidBatch(
            f"`sequence` is not given, and the mesh {mesh} divides sequences. Name the columns whose axis 1 "
            "is the sequence; every cp index reads all of the others."
        )
    sequence = sequence or ()
    require_sequence(sequence, columns)
    columns = {
        name: column_array(name, column, least_axes=2 if name in sequence else 1)
        for name, column in columns.items()
    }
    _require_rows({name: len(array) for name, array in columns.items()}, mesh)
    chunks = 1 if mesh.cp == 1 else 2 * mesh.cp
    for name in sequence:
        if columns[name].shape[1] % chunks:
            raise InvalidBatch(
                f"Column `{name}` has shape {columns[name].shape}, and its axis 1 is cut into {chunks} "
                f"chunks for the mesh {mesh}. Pad it to a multiple of {chunks}."
            )
    slices = tuple(
        {
            name: _part(_part(array, dp, mesh.dp, axis=0), chunk, chunks, axis=1)
            if name in sequence
            else _part(array, dp, mesh.dp, axis=0)
            for name, array in columns.items()
            if name in sequence or chunk % 2 == 0
        }
        for dp in range(mesh.dp)
        for chunk in range(chunks)
    )
    return Slices(slices, mesh.dp, chunks, frozenset(sequence))


def chunks_of(cp_index: int, cp: int, layout: ChunkLayout) -> tuple[int, ...]:
    """The chunks that a rank reads, in the order in which it joins them."""
    if not 0 <= cp_index < cp:
        raise InvalidRequest(f"cp index {cp_index} was asked for. A mesh with cp={cp} has 0 to {cp - 1}.")
    if cp == 1:
        return (0,)
    if layout == "zigzag":
        return cp_index, 2 * cp - 1 - cp_index
    return 2 * cp_index, 2 * cp_index + 1


class ChunkRun(NamedTuple):
    """Neighboring chunks of a rank, or one of the equal parts of a chunk."""

    first: int
    stop: int
    """The chunk after the last one."""
    part: int = 0
    parts: int = 1


def runs_of(cp_index: int, cp: int, chunks: int, layout: ChunkLayout) -> tuple[ChunkRun, ...]:
    """The runs of a rank in a batch of `chunks` chunks, made for a multiple of `cp` or a divisor.

    The rank joins them in this order. Together they are its chunks in a batch made for `cp`.
    """
    own_chunks = 1 if cp == 1 else 2 * cp
    runs = []
    for own in chunks_of(cp_index, cp, layout):
        if chunks >= own_chunks:
            width = chunks // own_chunks
            runs.append(ChunkRun(own * width, (own + 1) * width))
        else:
            chunk, part = divmod(own, own_chunks // chunks)
            runs.append(ChunkRun(chunk, chunk + 1, part, own_chunks // chunks))
    return tuple(runs)


def joined(parts: Sequence[Mapping[str, Array]], sequence: Collection[str]) -> dict[str, Array]:
    """The columns of a rank, by name, from the chunks that it read.

    Columns in `sequence` are joined along axis 1, by a copy if there are several chunks; the others come
    from the first chunk that holds them.
    """
    names = sorted(set().union(*parts))
    return {name: _joined([part[name] for part in parts if name in part], name in sequence) for name in names}


def part_of(name: str, array: Array, run: ChunkRun) -> Array:
    """The part of a chunk's column that a run takes. Raises InvalidRequest if it cannot be cut so."""
    if run.parts == 1:
        return array
    if array.shape[1] % run.parts:
        raise InvalidRequest(
            f"Column `{name}` has chunks of {array.shape[1]} places, and this mesh would cut them into "
            f"{run.parts} parts. Use a cp that divides them, or the cp of the batches."
        )
    return _part(array, run.part, run.parts, axis=1)


def _joined(arrays: Sequence[Array], along_sequence: bool) -> Array:
    if not along_sequence or len(arrays) == 1:
        return arrays[0]
    whole = np.concatenate(arrays, axis=1)
    return whole.view(Bfloat16Array) if isinstance(arrays[0], Bfloat16Array) else whole


def _part(array: Array, index: int, parts: int, axis: int) -> Array:
    extent = array.shape[axis] // parts
    part = slice(index * extent, (index + 1) * extent)
    return array[part] if axis == 0 else array[:, part]


def _require_rows(rows: Mapping[str, int], mesh: Mesh) -> None:
    if len(set(rows.values())) > 1:
        listing = ", ".join(f"`{name}` {n:,}" for name, n in sorted(rows.items()))
        raise InvalidBatch(f"The columns have different numbers of rows: {listing}. Give them the same.")
    for name, n in rows.items():
        if n % mesh.dp:
            raise InvalidBatch(
                f"Column `{name}` has {n:,} rows, which {mesh.dp} dp indexes cannot share equally. Give a "
                f"multiple of {mesh.dp}."
            )
