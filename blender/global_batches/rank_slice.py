"""A rank's part of a global batch: the footer, and the bytes of its own slices.

    footer = read_footer(store, namespace, descriptor)
    step = read_slice(store, namespace, descriptor, footer, mesh.coordinate(rank))
    step.offset, step.tokens                        # 812, array of [rows of the dp index, L of the cp index]

A deterministic projection (section 4.4 of the paper): ranks with the same dp and cp index read the same bytes
without a word between them. With cp > 1 the chunks of a rank are one request if they are neighbors.

Ranks of another cp read whole chunks of the batch: on fewer ranks several neighbors, on more ranks the chunk
with their part, so that its checksum is checked. Of packed rows that another cp pads they read all chunks of
their dp index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blender.errors import InvalidRequest
from blender.global_batches import row_runs
from blender.global_batches.errors import DamagedBatch, NamespaceDiffers
from blender.global_batches.format.columns import ROW_FACTS, Array
from blender.global_batches.format.cut import ChunkRun, joined, part_of, runs_of
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
    batches: int = 1
    """The batches that the step is."""
    batches_before: int = 0
    """The batches of the step before the one with this slice."""
    recut: int | None = None
    """The cp of the mesh, if the batch is made for another one."""
    has_all_chunks: bool = False
    """Whether it has packed rows that are to be cut for that cp."""

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
    store: NamespaceStore,
    namespace: Namespace,
    batch: Descriptor,
    footer: Footer,
    place: Coordinate,
    cp: int | None = None,
) -> GlobalBatchSlice:
    """The columns of a batch for the rank at a place: its dp index in the batch, its cp index among `cp`.

    They are views of the bytes that were read, or copies if columns are joined from chunks or cut from one.
    Raises DamagedBatch if a byte differs from the producer's, and InvalidRequest for a column that `cp` ranks
    cannot divide.
    """
    cp = namespace.cp if cp is None else cp
    recut = None if cp == namespace.cp else cp
    if recut is None or not _has_packed_rows(footer):
        arrays = _read_runs(store, batch, footer, place.dp, _runs(namespace, footer, place, cp))
        return GlobalBatchSlice(batch.step, arrays, footer.origin, place, recut=recut)
    if cp > 1 and row_runs.may_be_cut(footer, place.dp):
        runs = runs_of(place.cp, cp, namespace.chunks, namespace.layout)
        columns = _read_columns(store, batch, footer, place.dp, _chunks(footer, runs))
        facts = next(chunk[ROW_FACTS] for chunk in columns.values() if ROW_FACTS in chunk)
        if row_runs.are_cut_evenly(facts, namespace.chunks, cp):
            arrays = _read_only(row_runs.joined_rows(columns, runs))
            return GlobalBatchSlice(batch.step, arrays, footer.origin, place, recut=recut)
    arrays = _read_runs(store, batch, footer, place.dp, (ChunkRun(0, namespace.chunks),))
    return GlobalBatchSlice(batch.step, arrays, footer.origin, place, recut=recut, has_all_chunks=True)


def _read_runs(
    store: NamespaceStore, batch: Descriptor, footer: Footer, dp: int, runs: Sequence[ChunkRun]
) -> dict[str, Array]:
    """The columns of runs, joined."""
    chunks = _chunks(footer, runs)
    columns = _read_columns(store, batch, footer, dp, chunks)
    arrays = joined(_parts(columns, runs, footer), footer.sequence)
    if _are_copies(footer, runs, chunks):  # a view of a whole column would keep the bytes of the others
        fresh = footer.sequence if sum(run.stop - run.first for run in runs) > 1 else ()
        arrays = {name: array if name in fresh else array.copy() for name, array in arrays.items()}
    return _read_only(arrays)


def _read_columns(
    store: NamespaceStore, batch: Descriptor, footer: Footer, dp: int, chunks: Sequence[int]
) -> dict[int, dict[str, Array]]:
    """The columns of each chunk of a dp index."""
    pieces = _read_ranges(store, batch, [footer.range_of(dp, chunk) for chunk in chunks])
    return {chunk: footer.decode(dp, chunk, piece) for chunk, piece in zip(chunks, pieces, strict=True)}


def _read_only(arrays: dict[str, Array]) -> dict[str, Array]:
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def _has_packed_rows(footer: Footer) -> bool:
    return any(column.name == ROW_FACTS for column in footer.columns)


def bytes_while_read(namespace: Namespace, footer: Footer, place: Coordinate, cp: int | None = None) -> int:
    """The most bytes that `read_slice` has in memory: while it joins chunks, they are there twice."""
    cp = namespace.cp if cp is None else cp
    is_recut = cp != namespace.cp and _has_packed_rows(footer)  # at worst it needs all chunks
    runs = (ChunkRun(0, namespace.chunks),) if is_recut else _runs(namespace, footer, place, cp)
    chunks = _chunks(footer, runs)
    length = sum(footer.range_of(place.dp, chunk)[1] for chunk in chunks)
    return 2 * length if _are_copies(footer, runs, chunks) else length


def _runs(namespace: Namespace, footer: Footer, place: Coordinate, cp: int) -> tuple[ChunkRun, ...]:
    if cp > namespace.chunks == 1 and not footer.sequence:
        raise InvalidRequest(
            f"The batch {footer.name} names no column along the sequence, so that {cp} cp ranks cannot "
            "divide it. Read it with cp=1, or let its producer name some: `cut(columns, mesh, sequence=...)`."
        )
    return runs_of(place.cp, cp, namespace.chunks, namespace.layout)


def _chunks(footer: Footer, runs: Sequence[ChunkRun]) -> list[int]:
    """The chunks of runs, in their order, and an even one if it alone has some columns."""
    chunks = {chunk for run in runs for chunk in range(run.first, run.stop)}
    if len(footer.sequence) < len(footer.columns) and all(chunk % 2 for chunk in chunks):
        chunks.add(min(chunks) - 1)
    return sorted(chunks)


def _parts(
    columns: Mapping[int, Mapping[str, Array]], runs: Sequence[ChunkRun], footer: Footer
) -> list[dict[str, Array]]:
    """The columns of each chunk of the runs, cut where a run is a part; columns without a sequence first."""
    whole = {
        name: array
        for arrays in columns.values()
        for name, array in arrays.items()
        if name not in footer.sequence
    }
    return [whole] + [
        {name: part_of(name, columns[chunk][name], run) for name in footer.sequence}
        for run in runs
        for chunk in range(run.first, run.stop)
    ]


def _are_copies(footer: Footer, runs: Sequence[ChunkRun], chunks: Sequence[int]) -> bool:
    return bool(footer.sequence) and (len(chunks) > 1 or any(run.parts > 1 for run in runs))


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
