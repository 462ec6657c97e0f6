"""What a rank's step costs on another mesh than its batches are made for: bytes read, and time.

Batches of dp=8,cp=4 are read by twice and half the dp, and by other cps: as columns along the sequence, and
as packed rows, with the token after each chunk.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.batches.slices import CountedReads
from bench.harness import Report, Row, at_most, table
from blender.global_batches import cut
from blender.global_batches.follower import Follower
from blender.global_batches.format.cut import chunks_of
from blender.global_batches.format.slices import Slices
from blender.global_batches.namespace import create_namespace
from blender.global_batches.rank_slice import GlobalBatchSlice, read_footer, read_slice
from blender.global_batches.remap import Remap
from blender.global_batches.store.folder import Folder
from blender.global_batches.store.namespace_store import NamespaceStore
from blender.global_batches.stored_rows import packed_rows, packed_slices
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Coordinate, Mesh
from factory.lake.schemas.packing import SEQUENCE_LENGTH, TOKEN_BYTES

MESH = Mesh(dp=8, cp=4)
MESHES = (MESH, Mesh(dp=16, cp=4), Mesh(dp=4, cp=4), Mesh(dp=8, cp=8), Mesh(dp=8, cp=2), Mesh(dp=8))
ROWS, LENGTH, DOCUMENT = 32, 65_536, 2_048  # of a batch; tokens of a row, and of a document
BATCHES, ROUNDS = 4, 5
DP_AMPLIFICATION = 1.05
DATA = f"`remap`: {BATCHES} batches of {ROWS} rows of {LENGTH:,} tokens, for dp={MESH.dp},cp={MESH.cp}"
CAVEATS = ("`remap`: one process reads for all ranks in turn, from a folder in the page cache.",)


@dataclass(frozen=True)
class Kind:
    """A way to store tokens: the slices of a batch, and the tokens of a rank that has read one."""

    name: str
    slices: Callable[[np.ndarray], Slices]
    tokens: Callable[[GlobalBatchSlice], np.ndarray]


@dataclass
class Steps:
    """The steps of all ranks of a mesh."""

    seconds: list[float] = field(default_factory=list)
    n_bytes: int = 0
    needed_bytes: int = 0
    requests: int = 0
    are_right: bool = True


def measure(progress: Console) -> Report:
    """Write batches of each kind, and read them by each mesh."""
    report = Report(CAVEATS, DATA)
    columns = "batches, mesh | bytes read of needed | requests | a rank's step ms | of the batches' mesh"
    overview = table(f"Batches for dp={MESH.dp},cp={MESH.cp} on other meshes", columns)
    kinds = (
        Kind("columns", slices_of_columns, tokens_of_columns),
        Kind("rows", slices_of_rows, tokens_of_rows),
    )
    for kind in kinds:
        progress.print(f"reading {kind.name} by {len(MESHES)} meshes")
        with tempfile.TemporaryDirectory() as folder:
            batches = write(folder, kind)
            by_mesh = {mesh: read(folder, kind, mesh, batches) for mesh in MESHES}
        usual = median(by_mesh[MESH].seconds)
        for mesh, steps in by_mesh.items():
            label = f"dp={mesh.dp},cp={mesh.cp}"
            report.check(f"{kind.name}, {label}: all ranks get their tokens", steps.are_right)
            amplification, cost = steps.n_bytes / steps.needed_bytes, median(steps.seconds) / usual
            overview.add_row(
                f"{kind.name}, {label}",
                f"{amplification:.3f}",
                f"{steps.requests / len(steps.seconds):.2f}",
                f"{1e3 * median(steps.seconds):,.2f}",
                f"{cost:.2f}",
            )
            name = f"batches.remap.{kind.name}.dp{mesh.dp}_cp{mesh.cp}"
            ratio = round(amplification, 4)
            report.rows += [
                at_most(f"{name}.bytes_read_of_needed", ratio, "ratio", DP_AMPLIFICATION)
                if mesh.cp == MESH.cp
                else Row(f"{name}.bytes_read_of_needed", ratio, "ratio"),
                Row(f"{name}.step_s", round(median(steps.seconds), 6), "s"),
                Row(f"{name}.of_usual_mesh", round(cost, 3), "ratio"),
            ]
    report.tables.append(overview)
    return report


def slices_of_columns(tokens: np.ndarray) -> Slices:
    """A batch of one column along the sequence."""
    return cut({"tokens": tokens}, MESH, sequence={"tokens"})


def slices_of_rows(tokens: np.ndarray) -> Slices:
    """A batch of full packed rows of equal documents."""
    return packed_slices([_rows(part) for part in np.split(tokens, MESH.dp)], MESH)


def _rows(tokens: np.ndarray) -> pa.RecordBatch:
    metadata = {TOKEN_BYTES: "2", SEQUENCE_LENGTH: str(LENGTH)}
    numbers = np.arange(len(tokens))
    columns: dict[pa.Field, Any] = {
        pa.field("source", pa.int32()): numbers,
        pa.field("ordinal", pa.int64()): numbers,
        pa.field("epoch", pa.int64()): numbers,
        pa.field("tokens", pa.binary(), metadata=metadata): [row.tobytes() for row in tokens],
        pa.field("segment_lengths", pa.list_(pa.int32())): len(tokens) * [LENGTH // DOCUMENT * [DOCUMENT]],
    }
    arrays = [pa.array(values, column.type) for column, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(columns)))


def tokens_of_columns(step: GlobalBatchSlice) -> np.ndarray:
    """The tokens of a rank, from its column."""
    return np.asarray(step.arrays["tokens"])


def tokens_of_rows(step: GlobalBatchSlice) -> np.ndarray:
    """The tokens of a rank, from its packed rows."""
    return packed_rows(step).tokens


def write(folder: str, kind: Kind) -> list[np.ndarray]:
    """The tokens of all batches, which are in the folder."""
    create_namespace(folder, MESH)
    dice = np.random.default_rng(7)
    batches = [dice.integers(0, 2**16, (ROWS, LENGTH), dtype=np.uint16) for _ in range(BATCHES)]
    with BatchWriter(folder) as writer:
        for number, tokens in enumerate(batches):
            writer.put(kind.slices(tokens), offset=number)
        writer.finish()
    return batches


def read(folder: str, kind: Kind, mesh: Mesh, batches: Sequence[np.ndarray]) -> Steps:
    """Read every step of every rank, some times, and compare it once."""
    calls = CountedReads(Folder(Path(folder)))
    store = NamespaceStore(folder, calls, 60.0)
    namespace = create_namespace(folder, MESH)
    follower = Follower(store, namespace.client(), lambda: None)
    follower.poll()
    remap, steps = Remap(MESH, mesh), Steps()
    for turn in range(ROUNDS):
        for position in range(0, BATCHES * remap.substeps, remap.batches):
            for rank in range(mesh.ranks):
                place = mesh.coordinate(rank)
                number, dp = remap.slice_of(position, place.dp)
                calls.n_bytes = calls.requests = 0
                began = time.perf_counter()
                batch = follower.batch(number)
                footer = read_footer(store, namespace, batch)
                step = read_slice(store, namespace, batch, footer, replace(place, dp=dp), mesh.cp)
                tokens = kind.tokens(replace(step, place=place))
                steps.seconds.append(time.perf_counter() - began)
                steps.n_bytes += calls.n_bytes
                steps.requests += calls.requests
                steps.needed_bytes += 2 * tokens.size
                if turn == 0:
                    whole = np.split(batches[number], MESH.dp)[dp]
                    steps.are_right &= np.array_equal(tokens, _expected(whole, place, mesh))
    return steps


def _expected(rows: np.ndarray, place: Coordinate, mesh: Mesh) -> np.ndarray:
    chunks = np.split(rows, 1 if mesh.cp == 1 else 2 * mesh.cp, axis=1)
    return np.concatenate([chunks[chunk] for chunk in chunks_of(place.cp, mesh.cp, "zigzag")], axis=1)
