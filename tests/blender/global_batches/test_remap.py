"""Batches read by other meshes: every slice once and in order, through any changes of dp and cp."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blender.errors import EndOfData, InvalidRequest
from blender.global_batches.errors import NamespaceDiffers
from blender.global_batches.format.cut import ChunkLayout, chunks_of
from blender.global_batches.rank_slice import GlobalBatchSlice
from blender.global_batches.reader import BatchReader
from blender.global_batches.remap import Remap, StepPosition
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from tests.blender.global_batches.counted import counted
from tests.blender.global_batches.reading import written
from tests.blender.global_batches.written import Lane, batch, new_namespace

ROWS, LENGTH = 12, 24  # of a batch: what 1, 2, 3, 4, 6 and 12 dp indexes share, and as many chunks


@dataclass
class Training:
    """A job that is stopped and goes on with a state, on another mesh each time."""

    uri: str
    state: dict[str, Any] | None = None
    history: list[tuple[Mesh, list[GlobalBatchSlice]]] = field(default_factory=list)
    """The mesh of each step, and the slices of its ranks."""

    def go_on(self, mesh: Mesh, n_steps: int) -> None:
        """Read at most so many steps, and leave a state."""
        reader = BatchReader(self.uri, mesh, accept_batch_change=True)
        first, substep = reader.position_of(self.state) if self.state else (0, 0)
        ranks = [reader.read(StepRange(first), rank, substep=substep) for rank in range(mesh.ranks)]
        for _, slices in zip(range(n_steps), zip(*ranks, strict=True), strict=False):
            self.history.append((mesh, list(slices)))
            states = [reader.state_after(step) for step in slices]
            assert all(state == states[0] for state in states)
            self.state = json.loads(json.dumps(states[0]))
        for steps in ranks:
            steps.close()  # type: ignore[attr-defined]


def rows_of(step: GlobalBatchSlice) -> list[tuple[int, int]]:
    """The batch and the row in it of each row."""
    return [divmod(int(number), 1_000) for number in step.ids]


def tokens_of(step: GlobalBatchSlice, mesh: Mesh, layout: ChunkLayout) -> np.ndarray:
    """The tokens that a rank should read of its rows: those of its chunks in the mesh's own batches."""
    whole = batch(step.batch_step, ROWS, LENGTH)["tokens"][[row for _, row in rows_of(step)]]
    chunks = np.split(whole, 1 if mesh.cp == 1 else 2 * mesh.cp, axis=1)
    return np.concatenate([chunks[chunk] for chunk in chunks_of(step.place.cp, mesh.cp, layout)], axis=1)


@st.composite
def changes_of_mesh(draw: st.DrawFn) -> tuple[Mesh, list[tuple[Mesh, int]]]:
    """The mesh that batches are made for, and the mesh and the steps of each part of a training run."""

    def factors(sizes: list[int], size: int) -> st.SearchStrategy[int]:
        return st.sampled_from([other for other in sizes if other % size == 0 or size % other == 0])

    dps, cps = [1, 2, 3, 4, 6, 12], [1, 2, 3, 4, 6]
    mesh = Mesh(dp=draw(st.sampled_from(dps)), cp=draw(st.sampled_from(cps)))
    others = st.builds(Mesh, dp=factors(dps, mesh.dp), cp=factors(cps, mesh.cp))
    return mesh, draw(st.lists(st.tuples(others, st.integers(1, 3)), min_size=1, max_size=4))


@pytest.mark.invariant(
    "Under any sequence of meshes with multiples or divisors of the batches' dp and cp, every slice of each"
    " batch is read exactly once and in order, and a state takes the run from one mesh to the next."
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes_of_mesh(), st.sampled_from(["zigzag", "contiguous"]))
def test_every_slice_is_read_once_and_in_order_under_any_changes_of_the_mesh(
    tmp_path_factory: pytest.TempPathFactory,
    changes: tuple[Mesh, list[tuple[Mesh, int]]],
    layout: ChunkLayout,
) -> None:
    mesh, parts = changes
    n_batches = sum(max(1, other.dp // mesh.dp) * steps for other, steps in parts) + 1
    uri = new_namespace(tmp_path_factory.mktemp("batches"), mesh, lanes=1, layout=layout)
    lane = Lane(uri)
    lane.put(*(batch(number, ROWS, LENGTH) for number in range(n_batches)))
    lane.close()
    training = Training(uri)
    for other, n_steps in parts:
        training.go_on(other, n_steps)
        assert training.state is not None
        if training.state["substep"]:  # the mesh may not change here, but the process may
            training.go_on(other, mesh.dp // other.dp - training.state["substep"])
    training.go_on(mesh, n_batches)
    tokens: Counter[int] = Counter()
    for other, slices in training.history:
        of_dp = slices[:: other.cp]  # in the order of ranks, cp ranks are neighbors
        assert [rows_of(step) for step in of_dp] == sorted(rows_of(step) for step in of_dp)
        assert {(step.offset, step.substep) for step in slices} == {(slices[0].offset, slices[0].substep)}
        for step in slices:
            np.testing.assert_array_equal(step.tokens, tokens_of(step, other, layout))
            tokens.update(step.tokens.reshape(-1).tolist())
    whole = (batch(number, ROWS, LENGTH)["tokens"].reshape(-1).tolist() for number in range(n_batches))
    assert tokens == Counter(token for of_batch in whole for token in of_batch)
    order = [rows_of(step)[0][0] for _, slices in training.history for step in slices]
    assert order == sorted(order)


def test_twice_the_ranks_read_two_batches_a_step_and_half_of_them_one_in_two(tmp_path: Path) -> None:
    uri = written(tmp_path, 4, Mesh(dp=2))
    twice = BatchReader(uri, Mesh(dp=4), accept_batch_change=True)
    of_rank = [list(twice.read(StepRange(), rank)) for rank in range(4)]
    assert [[rows_of(step)[0] for step in steps] for steps in of_rank] == [
        [(0, 0), (2, 0)],
        [(0, 2), (2, 2)],
        [(1, 0), (3, 0)],
        [(1, 2), (3, 2)],
    ]
    assert [(step.offset, step.batch_step) for step in of_rank[3]] == [(0, 1), (2, 3)]
    half = BatchReader(uri, Mesh(dp=1), accumulate=2)
    steps = list(half.read(StepRange(2), 0))
    assert [(step.offset, step.substep, step.substeps) for step in steps] == [
        (2, 0, 2),
        (2, 1, 2),
        (3, 0, 2),
        (3, 1, 2),
    ]
    assert [rows_of(step)[0] for step in steps] == [(2, 0), (2, 2), (3, 0), (3, 2)]


def test_a_mesh_begins_at_any_batch(tmp_path: Path) -> None:
    reader = BatchReader(written(tmp_path, 8, Mesh(dp=2)), Mesh(dp=6), accept_batch_change=True)
    starts = [step.offset for step in reader.read(StepRange(1, 6), 5)]
    assert starts == [1, 4]
    assert [step.offset for step in reader.read(StepRange(2, 6, stride=2), 0)] == [2]


def test_substeps_of_a_batch_share_its_footer(tmp_path: Path) -> None:
    reader = BatchReader(written(tmp_path, 3, Mesh(dp=4)), Mesh(dp=1), accumulate=4)
    requests = counted(reader)
    assert len(list(reader.read(StepRange(), 0))) == 12
    assert len(requests.ranges) == 3 * (1 + 4)


def test_a_step_of_two_batches_waits_for_both_in_every_rank(tmp_path: Path) -> None:
    uri = new_namespace(tmp_path, lanes=1)
    lane = Lane(uri)
    lane.put(*(batch(number) for number in range(3)))
    reader = BatchReader(uri, Mesh(dp=2), accept_batch_change=True, longest_pause_s=0.02)
    ranks: list[Iterator[GlobalBatchSlice]] = [reader.read(StepRange(), rank) for rank in range(2)]
    assert [next(steps).batch_step for steps in ranks] == [0, 1]
    lane.close()
    with pytest.warns(UserWarning, match=r"of dp=2 is 2 of them: 1 step from step 2 on cannot be read"):
        assert [list(steps) for steps in ranks] == [[], []]
    with pytest.raises(EndOfData, match=r"ended after 3 steps, and steps up to 4 were asked for"):
        list(reader.read(StepRange(2, 2), 0))
    with pytest.raises(InvalidRequest, match=r"Steps 0 to 3 .* 1 would be left over\. Stop at 2 or at 4"):
        reader.read(StepRange(0, 3), 0)


@pytest.mark.parametrize(
    "mesh, other, sentence",
    [
        (
            Mesh(dp=4),
            Mesh(dp=6),
            r"made for dp=4,cp=1, and the mesh is pp=1,dp=6,cp=1,tp=1\. .* dp=4 or dp=8",
        ),
        (Mesh(dp=8), Mesh(dp=3), r"Read them with dp=2 or dp=4"),
        (Mesh(dp=5), Mesh(dp=999), r"Read them with dp=995 or dp=1000"),
        (Mesh(dp=7), Mesh(dp=2), r"Read them with dp=1 or dp=7"),
        (Mesh(dp=2, cp=4), Mesh(cp=6), r"Read them with cp=4 or cp=8"),
    ],
)
def test_another_ratio_is_refused_with_the_two_nearest_that_work(
    mesh: Mesh, other: Mesh, sentence: str
) -> None:
    with pytest.raises(NamespaceDiffers, match=sentence):
        Remap(mesh, other)


@pytest.mark.parametrize(
    "dp, options, error, sentence",
    [
        (1, {}, NamespaceDiffers, r"is 4 steps of dp=1\. Give `accumulate=4` .* or `accept_batch_change=T"),
        (8, {}, NamespaceDiffers, r"of dp=8 is 2 batches .* `accept_batch_change=True`; `accumulate` keeps"),
        (2, {"accumulate": 4}, InvalidRequest, r"is 4, and .* is 2 steps of dp=2\. Give `accumulate=2`, or"),
        (8, {"accumulate": 2}, InvalidRequest, r"is 1 step of dp=8\. Leave it out, and give `accept_batch"),
        (4, {"accumulate": 2}, InvalidRequest, r"is 1 step of dp=4\. Leave it out\.$"),
        (2, {"accumulate": 2, "accept_batch_change": True}, InvalidRequest, "exclude each other"),
    ],
)
def test_another_number_of_rows_wants_a_word(
    dp: int, options: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    remap = Remap(Mesh(dp=4), Mesh(dp=dp))
    words = options.get("accept_batch_change", False), options.get("accumulate")
    with pytest.raises(error, match=sentence):
        remap.require_batch_change(*words)


def test_a_state_in_a_batch_goes_on_with_the_same_dp_alone(tmp_path: Path) -> None:
    uri = written(tmp_path, 4, Mesh(dp=4))
    half = BatchReader(uri, Mesh(dp=2), accept_batch_change=True)
    state = half.state(2, 1)
    assert half.position_of(state) == StepPosition(2, 1)
    with pytest.raises(InvalidRequest, match=r"substep 1 of step 2 as dp=2 reads it, and this mesh has dp=4"):
        BatchReader(uri).offset_of(state)
    with pytest.raises(InvalidRequest, match=r"substep 1 of step 2, and its step alone was asked for"):
        half.offset_of(state)
    with pytest.raises(InvalidRequest, match=r"`substep` is 2. Give a whole number, 0 to 1"):
        half.state(2, 2)


def test_a_reader_that_accumulates_goes_on_with_a_whole_batch(tmp_path: Path) -> None:
    reader = BatchReader(written(tmp_path, 4, Mesh(dp=2)), Mesh(), accumulate=2)
    steps = reader.read(StepRange(1), 0)
    assert reader.state_after(next(steps))["step"] == 1
    assert reader.state_after(next(steps))["step"] == 2
    assert reader.position_of(reader.state(3, 1)) == (3, 0)
    state = BatchReader(reader.uri, Mesh(), accept_batch_change=True).state(3, 1)
    with pytest.raises(
        InvalidRequest, match=r"after an optimizer step with a part of its batch, and this re"
    ):
        reader.position_of(state)  # it would train on the first substep again


def test_more_cp_ranks_read_the_chunk_with_their_part_and_fewer_ones_neighbors(tmp_path: Path) -> None:
    uri = written(tmp_path, 1, Mesh(cp=2))
    more, fewer = BatchReader(uri, Mesh(cp=4)), BatchReader(uri, Mesh(cp=1))
    requests = counted(more)
    assert [next(more.read(StepRange(), rank)).nbytes for rank in range(4)] == 4 * [4 * (4 * 8 + 4)]
    of_rank = requests.ranges[1:3]
    assert sum(length for _, _, length in of_rank) == 64 + 2 * 4 * 4 * 8  # twice the tokens, padded ids
    requests = counted(fewer)
    (whole,) = fewer.read(StepRange(), 0)
    assert len(requests.ranges) == 2
    np.testing.assert_array_equal(whole.tokens, batch(0)["tokens"])


@pytest.mark.parametrize(
    "columns, cp, sentence",
    [
        (
            {"ids": np.arange(4)},
            2,
            r"names no column along the sequence, so that 2 cp ranks cannot divide it",
        ),
        (
            {"tokens": np.zeros((4, 6))},
            2,
            r"Column `tokens` has chunks of 6 places, .* cut them into 4 parts",
        ),
    ],
)
def test_a_batch_that_cp_ranks_cannot_divide_is_refused(
    tmp_path: Path, columns: dict[str, np.ndarray], cp: int, sentence: str
) -> None:
    uri = new_namespace(tmp_path)
    Lane(uri).put(columns)
    with pytest.raises(InvalidRequest, match=sentence):
        next(BatchReader(uri, Mesh(cp=cp)).read(StepRange(0, 1), 0))
