"""Steps of a namespace as ranks read them: what they get, what they ask for, and how they are opened."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blender.errors import InvalidRequest
from blender.global_batches.errors import (
    NamespaceDiffers,
)
from blender.global_batches.format.cut import ChunkLayout, chunks_of
from blender.global_batches.reader import BatchReader
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from tests.blender.global_batches.counted import counted
from tests.blender.global_batches.reading import read, written
from tests.blender.global_batches.written import Lane, batch, new_namespace

ROOT = Path(__file__).parents[3]


def test_a_step_has_its_columns_by_name_its_number_and_its_origin(tmp_path: Path) -> None:
    reader = BatchReader(written(tmp_path, 3))
    steps = list(reader.read(StepRange(), 0))
    assert [step.offset for step in steps] == [0, 1, 2]
    np.testing.assert_array_equal(steps[1].tokens, batch(1)["tokens"])
    np.testing.assert_array_equal(steps[1].arrays["ids"], batch(1)["ids"])
    assert steps[1].origin == {"from": "a test"}
    with pytest.raises(AttributeError, match=r"no column `labels`. Columns: `ids`, `tokens`"):
        _ = steps[1].labels


@pytest.mark.parametrize("mesh", [Mesh(dp=2), Mesh(cp=2)])
def test_columns_are_read_only_and_views_where_nothing_is_joined(tmp_path: Path, mesh: Mesh) -> None:
    step = next(BatchReader(written(tmp_path, 1, mesh)).read(StepRange(), 0))
    for array in step.arrays.values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        assert (array.base is None) == (mesh.cp > 1)  # no view may keep bytes that were copied


@given(
    dp=st.integers(1, 4),
    cp=st.integers(1, 4),
    layout=st.sampled_from(["zigzag", "contiguous"]),
    rows=st.integers(0, 2),
    columns=st.sets(st.sampled_from(["ids", "tokens"]), min_size=1),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_arrays_of_all_ranks_are_the_batch(
    tmp_path_factory: pytest.TempPathFactory,
    dp: int,
    cp: int,
    layout: ChunkLayout,
    rows: int,
    columns: set[str],
) -> None:
    mesh = Mesh(dp=dp, cp=cp)
    uri = new_namespace(tmp_path_factory.mktemp("batches"), mesh, layout=layout)
    whole = {name: array for name, array in batch(7, rows * dp, 24).items() if name in columns}
    Lane(uri).put(whole)
    reader = BatchReader(uri)
    ranks = [next(reader.read(StepRange(0, 1), rank)) for rank in range(mesh.ranks)]
    chunks = 1 if cp == 1 else 2 * cp
    parts: dict[tuple[int, int], np.ndarray] = {}
    for rank, step in enumerate(ranks):
        place = mesh.coordinate(rank)
        assert step.arrays.keys() == columns
        if "ids" in columns:
            np.testing.assert_array_equal(step.ids, whole["ids"][place.dp * rows : (place.dp + 1) * rows])
        if "tokens" in columns:
            mine = chunks_of(place.cp, cp, layout)
            for chunk, part in zip(mine, np.split(step.tokens, len(mine), axis=1), strict=True):
                assert (place.dp, chunk) not in parts
                parts[place.dp, chunk] = part
    if "tokens" in columns:
        joined = [np.concatenate([parts[d, c] for c in range(chunks)], axis=1) for d in range(dp)]
        np.testing.assert_array_equal(np.concatenate(joined), whole["tokens"])


def test_sixteen_ranks_ask_for_the_slices_of_four(tmp_path: Path) -> None:
    mesh = Mesh(tp=2, pp=2, dp=2, cp=2)
    reader = BatchReader(written(tmp_path, 1, mesh), mesh)
    requests = counted(reader)
    slices = []
    for rank in range(mesh.ranks):
        requests.ranges.clear()
        next(reader.read(StepRange(0, 1), rank))
        (footer, *ranges) = requests.ranges
        slices.append((footer, frozenset(ranges)))
    assert len(set(slices)) == 4
    assert len({footer for footer, _ in slices}) == 1


@pytest.mark.parametrize(
    "layout, requests_of_ranks", [("zigzag", [2, 2, 2, 1]), ("contiguous", [1, 1, 1, 1])]
)
def test_neighboring_chunks_are_one_request(
    tmp_path: Path, layout: ChunkLayout, requests_of_ranks: list[int]
) -> None:
    reader = BatchReader(written(tmp_path, 1, Mesh(dp=2, cp=4), layout=layout))
    requests = counted(reader)
    bytes_read = 0
    for rank, expected in enumerate(requests_of_ranks):
        requests.ranges.clear()
        (step,) = reader.read(StepRange(0, 1), rank)
        assert len(requests.ranges) == 1 + expected
        bytes_read += sum(length for _, _, length in requests.ranges[1:])
        assert step.nbytes == 2 * 16 // 4 * 8 + 2 * 4
    assert bytes_read == reader._follower.batch(0).footer_offset // 2


def test_a_rank_without_rows_asks_for_the_footer_alone(tmp_path: Path) -> None:
    uri = new_namespace(tmp_path, Mesh(dp=2))
    Lane(uri).put(batch(0, rows=0))
    reader = BatchReader(uri)
    requests = counted(reader)
    (step,) = reader.read(StepRange(0, 1), 1)
    assert step.tokens.shape == (0, 16)
    assert len(requests.ranges) == 1


def test_a_stride_reads_its_own_steps_alone(tmp_path: Path) -> None:
    reader = BatchReader(written(tmp_path, 10))
    requests = counted(reader)
    assert [step.offset for step in reader.read(StepRange(1, 8, 3), 0)] == [1, 4, 7]
    assert len({name for name, _, _ in requests.ranges}) == 3


@pytest.mark.parametrize("versions, most_reads", [(10, 40), (1_000, 140)])
def test_opening_a_long_log_reads_its_newest_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: int, most_reads: int
) -> None:
    monkeypatch.setattr("blender.global_batches.store.folder.os.fsync", lambda _: None)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    columns = {"ids": np.zeros(1, np.int8)}
    for _ in range(versions):
        lane.put(columns)
    reader = BatchReader(uri)
    requests = counted(reader)
    assert reader.steps == versions
    assert requests.operations.total() < most_reads
    requests.operations.clear()
    assert reader.steps == versions
    assert requests.operations == {"log": 1, "floor": 1}


def test_a_mesh_of_another_dp_is_refused_and_tp_is_free(tmp_path: Path) -> None:
    uri = written(tmp_path, 1, Mesh(dp=2))
    with pytest.raises(NamespaceDiffers):
        BatchReader(uri, Mesh(dp=4))
    reader = BatchReader(uri, Mesh(dp=2, tp=4))
    assert reader.mesh.ranks == 8
    with pytest.raises(InvalidRequest, match="Rank 8"):
        reader.read(StepRange(), 8)


@pytest.mark.parametrize("steps", [StepRange(-1), StepRange(0, -1), StepRange(0, 1, 0)])
def test_an_impossible_range_is_refused_at_once(tmp_path: Path, steps: StepRange) -> None:
    with pytest.raises(InvalidRequest):
        BatchReader(new_namespace(tmp_path)).read(steps, 0)


def test_an_empty_range_reads_nothing(tmp_path: Path) -> None:
    assert read(BatchReader(new_namespace(tmp_path)), 0, 3, 0) == []


def test_a_pickled_reader_refuses_another_namespace_at_its_address(tmp_path: Path) -> None:
    pickled = pickle.dumps(BatchReader(new_namespace(tmp_path / "run")))
    shutil.rmtree(tmp_path / "run")
    new_namespace(tmp_path / "run")
    with pytest.raises(NamespaceDiffers, match="created anew since this reader was pickled"):
        pickle.loads(pickled)


def test_a_pickled_reader_opens_the_namespace_again(tmp_path: Path) -> None:
    reader = BatchReader(written(tmp_path, 2, Mesh(dp=2)), Mesh(dp=2, pp=2), longest_pause_s=0.5)
    copy = pickle.loads(pickle.dumps(reader))
    assert (copy.id, copy.mesh, copy._options) == (reader.id, reader.mesh, reader._options)
    assert read(copy, 1) == [0, 1]


def test_a_reader_needs_neither_torch_nor_the_lake(tmp_path: Path) -> None:
    program = """
import sys
for name in ("torch", "pyiceberg", "pandas", "grpc", "dagster", "pyspark"):
    sys.modules[name] = None
from blender.global_batches.reader import BatchReader
from blender.spec.step_range import StepRange
print([int(step.ids[0]) for step in BatchReader(sys.argv[1]).read(StepRange(), 0)])
"""
    command = [sys.executable, "-c", program, written(tmp_path, 3)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "[0, 1000, 2000]\n"
