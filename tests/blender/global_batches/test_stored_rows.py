"""Packed rows through a namespace: what a rank reads is what it gets of the rows by a blend or a loader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blender.batch import Batch
from blender.chunks import Chunk, Chunking, Piece, cut
from blender.errors import InvalidRequest
from blender.global_batches import cut as cut_columns
from blender.global_batches.blend_production import BlendProduction, parts_of
from blender.global_batches.errors import InvalidBatch
from blender.global_batches.format.cut import chunks_of, joined
from blender.global_batches.format.footer import Footer
from blender.global_batches.format.slices import Slices, encode
from blender.global_batches.log.state import Descriptor
from blender.global_batches.namespace import Namespace, create_namespace, open_namespace
from blender.global_batches.policies import Naive
from blender.global_batches.producer import Producer
from blender.global_batches.rank_slice import GlobalBatchSlice, read_slice
from blender.global_batches.reader import BatchReader
from blender.global_batches.store.folder import Folder
from blender.global_batches.store.namespace_store import NamespaceStore, open_store
from blender.global_batches.store.probe import StoreFacts
from blender.global_batches.stored_rows import is_packed_rows, packed_rows, packed_slices, require_layout
from blender.records import Source
from blender.spec.mesh import Coordinate, Mesh
from blender.trainer.local import LocalBlender, open_blend
from blender.trainer.reader import BlendHandle
from factory.settings import Settings
from tests.blender.drawn_rows import packed
from tests.blender.drawn_rows import packed_rows as drawn_rows
from tests.blender.lakes import CODE, PROSE, make_lake

ARRAYS = ("tokens", "targets", "position_ids", "document_ids", "places", "n_tokens", "ordinal", "cu_seqlens")


def read(slices: Slices, place: Coordinate, cp: int) -> GlobalBatchSlice:
    """What a rank reads of a stored batch, from the bytes of its object."""
    body = encode(slices).body
    footer = Footer.of_object(body, "a batch")
    ranges = [(chunk, *footer.range_of(place.dp, chunk)) for chunk in chunks_of(place.cp, cp, "zigzag")]
    parts = [footer.decode(place.dp, chunk, body[first : first + n]) for chunk, first, n in ranges]
    return GlobalBatchSlice(7, joined(parts, footer.sequence), None, place)


def with_more_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with columns of other types, some of them null."""
    n = rows.num_rows
    columns = {
        "text": pa.array([None if row % 3 == 1 else "é" * row for row in range(n)], pa.string()),
        "is_code": pa.array([row % 2 == 0 for row in range(n)], pa.bool_()),
        "plan": pa.array([2**63 + row for row in range(n)], pa.uint64()),
    }
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return rows


@settings(deadline=None)
@given(st.lists(drawn_rows(), min_size=1, max_size=3), st.booleans())
def test_a_rank_without_context_parallelism_reads_the_rows_of_its_dp_index(
    parts: list[pa.RecordBatch], more: bool
) -> None:
    parts = [with_more_columns(part) if more else part for part in same_kind(parts)]
    slices = packed_slices(parts, Mesh(dp=len(parts)))
    for dp, part in enumerate(parts):
        step = read(slices, Coordinate(dp=dp), 1)
        batch, expected = packed_rows(step), Batch(7, 8, part)
        assert isinstance(batch, Batch)
        assert (batch.offset, batch.next_offset) == (7, 8)
        assert batch.arrow.schema.equals(part.schema, check_metadata=True)
        assert batch.arrow.equals(part)
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(batch, name), getattr(expected, name), strict=True)


@settings(deadline=None)
@given(
    st.lists(drawn_rows(), min_size=1, max_size=2),
    st.integers(1, 4),
    st.sampled_from(["row", "document"]),
    st.booleans(),
)
def test_a_context_parallel_rank_reads_its_piece_of_every_row(
    parts: list[pa.RecordBatch], cp: int, chunking: Chunking, more: bool
) -> None:
    assume(cp > 1 or chunking == "document")
    parts = [with_more_columns(part) if more else part for part in same_kind(parts)]
    slices = packed_slices(parts, Mesh(dp=len(parts), cp=cp), chunking)
    for dp, part in enumerate(parts):
        for rank in range(cp):
            chunk = packed_rows(read(slices, Coordinate(dp=dp, cp=rank), cp))
            piece = cut(part, Piece(rank, cp, chunking))
            expected = Chunk(piece)
            assert isinstance(chunk, Chunk)
            assert chunk.piece == expected.piece
            assert chunk.arrow.schema.equals(piece.schema, check_metadata=True)
            assert chunk.arrow.equals(piece)
            for name in (*ARRAYS, "epoch", "source"):
                np.testing.assert_array_equal(getattr(chunk, name), getattr(expected, name), strict=True)


@settings(deadline=None)
@given(
    st.lists(drawn_rows(), min_size=1, max_size=2),
    st.sampled_from([(1, 2), (1, 3), (2, 1), (2, 4), (4, 2), (4, 1), (3, 6), (6, 3)]),
    st.sampled_from(["row", "document"]),
    st.booleans(),
)
def test_a_rank_of_another_cp_reads_its_piece_of_every_row(
    parts: list[pa.RecordBatch], cps: tuple[int, int], chunking: Chunking, more: bool
) -> None:
    cp, other = cps
    parts = [with_more_columns(part) if more else part for part in same_kind(parts)]
    body = encode(packed_slices(parts, Mesh(dp=len(parts), cp=cp), chunking)).body
    for dp, part in enumerate(parts):
        for rank in range(other):
            chunk = packed_rows(read_by(body, Coordinate(dp=dp, cp=rank), Mesh(dp=len(parts), cp=cp), other))
            piece = Piece(rank, other, chunking)
            if piece == Piece():
                assert isinstance(chunk, Batch)
                reference: Batch | Chunk = Batch(7, 8, part)
            else:
                assert isinstance(chunk, Chunk)
                reference = Chunk(cut(part, piece))
                assert chunk.arrow.equals(reference.arrow)
                assert chunk.arrow.schema.equals(reference.arrow.schema, check_metadata=True)
            for name in (*ARRAYS, "epoch", "source"):
                np.testing.assert_array_equal(getattr(chunk, name), getattr(reference, name), strict=True)


@pytest.mark.parametrize("cps", [(2, 4), (2, 8), (4, 2)])
@pytest.mark.parametrize("length, chunking", [(16, "row"), (12, "row"), (16, "document")])
def test_rows_that_both_cps_divide_evenly_are_read_by_their_chunks(
    cps: tuple[int, int], length: int, chunking: Chunking
) -> None:
    cp, other = cps
    rows = packed([[length], [3, 4], [1, length - 1]], length)
    body = encode(packed_slices([rows], Mesh(cp=cp), chunking)).body
    for rank in range(other):
        step = read_by(body, Coordinate(cp=rank), Mesh(cp=cp), other)
        assert step.has_all_chunks == (length == 12 or chunking == "document")
        chunk = packed_rows(step)
        assert isinstance(chunk, Chunk)
        assert chunk.arrow.equals(cut(rows, Piece(rank, other, chunking)))


def read_by(body: bytes, place: Coordinate, mesh: Mesh, cp: int) -> GlobalBatchSlice:
    """What a rank of another cp reads of a batch, by the requests of readers."""
    footer = Footer.of_object(body, "batch")
    batch = Descriptor(7, "batch", len(body), footer.length, 0, b"")
    namespace = Namespace("id", mesh.dp, mesh.cp, "zigzag", 1, "assigned", StoreFacts(0, 0), 0.0)
    with TemporaryDirectory() as folder:
        Path(folder, "batch").write_bytes(body)
        store = NamespaceStore(folder, Folder(Path(folder)), 0.0)
        return read_slice(store, namespace, batch, footer, place, cp)


def same_kind(parts: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Those of the parts that one table may hold: of one length, width and set of columns."""
    return [part for part in parts if part.schema.equals(parts[0].schema, check_metadata=True)]


@settings(deadline=None)
@given(drawn_rows(), drawn_rows(), st.sampled_from([Mesh(), Mesh(cp=2)]), st.data())
def test_equal_rows_give_equal_bytes_whatever_block_they_were_read_in(
    rows: pa.RecordBatch, others: pa.RecordBatch, mesh: Mesh, data: st.DataObject
) -> None:
    blocks = [with_more_columns(part) for part in same_kind([rows, others])]
    alone = blocks[0]
    before = data.draw(st.integers(0, blocks[-1].num_rows))
    around = [blocks[-1].slice(0, before), alone, blocks[-1].slice(before)]
    block = pa.Table.from_batches(around).combine_chunks().to_batches() or [alone]
    inside = block[0].slice(before, alone.num_rows)
    assert encode(packed_slices([inside], mesh)).body == encode(packed_slices([alone], mesh)).body


def test_full_rows_are_read_without_a_copy_of_their_tokens() -> None:
    rows = packed([[3, 5], [8]], 8)
    step = read(packed_slices([rows], Mesh()), Coordinate(), 1)
    arrow = packed_rows(step).arrow
    assert arrow.column("tokens").buffers()[2].address == step.tokens.ctypes.data
    assert step.tokens.dtype == np.uint16
    assert step.tokens.tolist() == [list(range(1, 9)), list(range(9, 17))]


@pytest.mark.parametrize(
    "rows, sentence",
    [
        ([packed([[4]], 4)], "The rows of 1 dp indexes were given for the mesh .*dp=2.* Give those of 2"),
        ([cut(packed([[4]], 4), Piece(0, 2))] * 2, "cannot be stored: They were cut for a rank"),
        ([packed([[4]], 4).drop_columns(["tokens"])] * 2, "cannot be stored: .*no column `tokens`"),
        (
            [packed([[4]], 4).replace_schema_metadata(None).select(["ordinal"])] * 2,
            "cannot be stored: .*no column `tokens`",
        ),
    ],
)
@pytest.mark.parametrize("cp", [1, 2])
def test_other_rows_are_refused(rows: list[pa.RecordBatch], sentence: str, cp: int) -> None:
    with pytest.raises(InvalidBatch, match=sentence):
        packed_slices(rows, Mesh(dp=2, cp=cp))


def test_a_step_of_other_columns_is_no_packed_rows() -> None:
    step = read(cut_columns({"ids": np.arange(4)}, Mesh()), Coordinate(), 1)
    assert not is_packed_rows(step)
    with pytest.raises(InvalidRequest, match="Step 7 has no column `row_facts`"):
        packed_rows(step)


def test_a_contiguous_namespace_takes_no_packed_rows(tmp_path: Path) -> None:
    create_namespace(tmp_path, Mesh(cp=2), layout="contiguous")
    namespace = open_namespace(open_store(tmp_path))
    with pytest.raises(
        InvalidBatch, match=r"layout contiguous, .* Create a namespace with the layout zigzag"
    ):
        require_layout(namespace)
    require_layout(replace(namespace, layout="zigzag"))
    require_layout(replace(namespace, cp=1))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return make_lake(tmp_path_factory.mktemp("lake"), code=180, prose=60)


@pytest.fixture(scope="module")
def blend(lake: Settings) -> BlendHandle:
    """Ten steps of 24 rows of two tables, some of them short."""
    sources = [Source(CODE, 18, shuffle="row"), Source(PROSE, 6)]
    return open_blend(LocalBlender(lake).create(sources, seed=7).id, lake)


def stored(folder: Path, blend: BlendHandle, mesh: Mesh, chunking: Chunking = "row") -> BatchReader:
    """A reader of all steps of a blend."""
    create_namespace(folder, mesh, lanes=2, order="assigned")
    Producer(folder, BlendProduction(blend, chunking=chunking), policy=Naive).run()
    return BatchReader(str(folder), mesh)


@pytest.mark.invariant(
    "In assigned order the steps of a namespace equal the steps of its source, even if producers die, and"
    " a rank reads the slice that the source itself would give it."
)
def test_a_dataset_of_stored_steps_equals_one_of_the_blend_tensor_for_tensor(
    tmp_path: Path, blend: BlendHandle
) -> None:
    torch = pytest.importorskip("torch")
    from blender.global_batches.torch import BatchDataset
    from blender.trainer.torch import BlendDataset

    mesh = Mesh(dp=3, tp=2)
    reader = stored(tmp_path, blend, mesh)
    for rank in range(mesh.ranks):
        place = mesh.coordinate(rank)
        items = list(BatchDataset(reader, rank=rank))
        expected = list(BlendDataset(blend, rank=place.dp, ranks=mesh.dp))
        assert len(items) == len(expected) == 10
        for item, other in zip(items, expected, strict=True):
            assert item.keys() == other.keys()
            assert item["offset"] == other["offset"]
            for name in item.keys() - {"offset"}:
                assert item[name].dtype == other[name].dtype
                assert torch.equal(item[name], other[name])


@pytest.mark.parametrize("chunking", ["row", "document"])
def test_context_parallel_ranks_read_the_chunks_of_the_blend(
    tmp_path: Path, blend: BlendHandle, chunking: Chunking
) -> None:
    torch = pytest.importorskip("torch")
    from blender.global_batches.torch import BatchDataset

    mesh = Mesh(dp=2, cp=2)
    reader = stored(tmp_path, blend, mesh, chunking)
    for rank in range(mesh.ranks):
        place = mesh.coordinate(rank)
        for item, step in zip(BatchDataset(reader, rank=rank), blend.fetch(), strict=True):
            chunk = Chunk(cut(parts_of(step, mesh.dp)[place.dp], Piece(place.cp, 2, chunking)))
            for name in ("tokens", "targets", "position_ids", "cu_seqlens"):
                assert torch.equal(item[name], torch.from_numpy(getattr(chunk, name)))


@pytest.mark.parametrize("chunking", ["row", "document"])
@pytest.mark.parametrize("other", [Mesh(dp=4, cp=1), Mesh(dp=1, cp=4)], ids=str)
def test_ranks_of_another_mesh_read_the_rows_of_the_blend(
    tmp_path: Path, blend: BlendHandle, chunking: Chunking, other: Mesh
) -> None:
    torch = pytest.importorskip("torch")
    from blender.global_batches.torch import BatchDataset

    mesh = Mesh(dp=2, cp=2)
    stored(tmp_path, blend, mesh, chunking)
    reader = BatchReader(str(tmp_path), other, accept_batch_change=True)
    steps = list(blend.fetch())
    for rank in range(other.ranks):
        place = other.coordinate(rank)
        items = list(BatchDataset(reader, rank=rank))
        assert len(items) == (5 if other.dp == 4 else 20)
        for number, tensors in enumerate(items):
            batch, part = (2 * number + rank // 2, rank % 2) if other.dp == 4 else divmod(number, 2)
            rows = parts_of(steps[batch], mesh.dp)[part]
            piece = Piece(place.cp, other.cp, chunking)
            reference = Batch(batch, batch + 1, rows) if piece == Piece() else Chunk(cut(rows, piece))
            for name in ("tokens", "targets", "position_ids", "cu_seqlens"):
                assert torch.equal(tensors[name], torch.from_numpy(getattr(reference, name)))
