"""A rank's part of a global batch: the footer, and the bytes of its own slices.

    footer = read_footer(store, namespace, descriptor)
    step = read_slice(store, namespace, descriptor, footer, mesh.coordinate(rank))
    step.offset, step.tokens                        # 812, array of [rows of the dp index, L of the cp index]

A deterministic projection (section 4.4 of the paper): ranks with the same dp and cp index read the same bytes
without a word between them. With cp > 1 the two chunks of a rank are one request if they are neighbors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blender.global_batches.errors import DamagedBatch, NamespaceDiffers
from blender.global_batches.format.columns import Array
from blender.global_batches.format.cut import chunks_of, joined
from blender.global_batches.format.footer import Footer
from blender.global_batches.json_values import Json
from blender.global_batches.log import floors
from blender.global_batches.log.client import Client
from blender.global_batches.log.state import Descriptor
from blender.global_batches.namespace import Namespace
from blender.global_batches.store.namespace_store import NamespaceStore
from blender.spec.mesh import Coordinate


@dataclass(frozen=True, eq=False)
class GlobalBatchSlice:
    """A step as one rank reads it; its columns are attributes too, as in a `Batch`."""

    offset: int
    """The number of the step: of its first batch, if several are a step of the mesh."""
    arrays: Mapping[str, Array]
    """The columns by name, read-only."""
    origin: Json
    """What the producer gave with the batch, to find it again."""
    place: Coordinate
    """The place in the mesh whose slice it is."""
    substep: int = 0
    """The number of the step in its batch, if that is several steps of the mesh."""
    substeps: int = 1
    """The steps of the mesh that its batch is."""
    batches_before: int = 0
    """The batches of the step before the one with this slice."""

    @property
    def batch_step(self) -> int:
        """The step of the batch with this slice."""
        return self.offset + self.batches_before

    def __getattr__(self, name: str) -> Any:
        arrays = self.__dict__.get("arrays", {})
        if name not in arrays:
            columns = ", ".join(f"`{column}`" for column in arrays)
            raise AttributeError(f"The step has no column `{name}`. Columns: {columns}.")
        return arrays[name]

    @property
    def nbytes(self) -> int:
        """The bytes of all columns."""
        return sum(array.nbytes for array in self.arrays.values())


def read_slice(
    store: NamespaceStore, namespace: Namespace, batch: Descriptor, footer: Footer, place: Coordinate
) -> GlobalBatchSlice:
    """The columns of a batch for the rank at a place of the mesh that it was made for.

    They are views of the bytes that were read, or copies if columns are joined from two chunks. Raises
    DamagedBatch if a byte differs from the producer's.
    """
    chunks = _chunks(namespace, place)
    pieces = _read_ranges(store, batch, [footer.range_of(place.dp, chunk) for chunk in chunks])
    parts = [footer.decode(place.dp, chunk, piece) for chunk, piece in zip(chunks, pieces, strict=True)]
    arrays = joined(parts, footer.sequence)
    if footer.sequence and len(parts) > 1:  # a view of a whole column would keep the bytes of the joined ones
        arrays = {name: array if name in footer.sequence else array.copy() for name, array in arrays.items()}
    for array in arrays.values():
        array.flags.writeable = False
    return GlobalBatchSlice(batch.step, arrays, footer.origin, place)


def bytes_while_read(namespace: Namespace, footer: Footer, place: Coordinate) -> int:
    """The most bytes that `read_slice` has in memory: while it joins two chunks, they are there twice."""
    chunks = _chunks(namespace, place)
    length = sum(footer.range_of(place.dp, chunk)[1] for chunk in chunks)
    return 2 * length if footer.sequence and len(chunks) > 1 else length


def _chunks(namespace: Namespace, place: Coordinate) -> tuple[int, ...]:
    return chunks_of(place.cp, namespace.cp, namespace.layout)


def read_footer(store: NamespaceStore, namespace: Namespace, batch: Descriptor) -> Footer:
    """The footer of a batch. Raises DamagedBatch, and NamespaceDiffers if it is made for another mesh."""
    data = _read(store, batch, batch.footer_offset, batch.footer_length)
    footer = Footer.parse(data, batch.name, batch.footer_hash)
    if (footer.dp, footer.chunks) != (namespace.dp, namespace.chunks):
        raise NamespaceDiffers(
            f"The batch {batch.name} has {footer.dp} dp indexes of {footer.chunks} chunks, and the namespace "
            f"{namespace.dp} of {namespace.chunks}. Mend its producer, and write another namespace."
        )
    return footer


def _read_ranges(
    store: NamespaceStore, batch: Descriptor, ranges: Sequence[tuple[int, int]]
) -> list[memoryview]:
    """The bytes of each range, which ascend; one request for neighbors, and none for empty ranges."""
    requests: list[list[int]] = []  # first byte, and the one after the last
    for offset, length in ranges:
        if requests and requests[-1][1] == offset:
            requests[-1][1] += length
        elif length:
            requests.append([offset, offset + length])
    bodies = [(start, _read(store, batch, start, stop - start)) for start, stop in requests]
    return [_piece(bodies, offset, length) for offset, length in ranges]


def _piece(bodies: Sequence[tuple[int, memoryview]], offset: int, length: int) -> memoryview:
    if not length:
        return memoryview(b"")
    start, body = max((start, body) for start, body in bodies if start <= offset)
    return body[offset - start : offset - start + length]


def _read(store: NamespaceStore, batch: Descriptor, offset: int, length: int) -> memoryview:
    content = store.read(batch.name, offset, length)
    if content is None:
        store.run(floors.require_kept(Client(), batch.step))
        raise DamagedBatch(
            f"The batch {batch.name} of step {batch.step:,} is missing. Restore the object from a copy."
        )
    return content
