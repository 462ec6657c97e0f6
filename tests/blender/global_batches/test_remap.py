"""Batches read by meshes of another dp: every slice once and in order, whatever meshes follow each other."""

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
from blender.global_batches.rank_slice import GlobalBatchSlice
from blender.global_batches.reader import BatchReader
from blender.global_batches.remap import Remap, StepPosition
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from tests.blender.global_batches.counted import counted
from tests.blender.global_batches.reading import written
from tests.blender.global_batches.written import Lane, batch, new_namespace

ROWS = 12  # of a batch: what 1, 2, 3, 4, 6 and 12 dp indexes share


@dataclass
class Training:
    """A job that is stopped and goes on with a state, on another mesh each time."""

    uri: str
    state: dict[str, Any] | None = None
    history: list[list[GlobalBatchSlice]] = field(default_factory=list)
    """The slices of all ranks, of each step."""

    def go_on(self, mesh: Mesh, n_steps: int) -> None:
        """Read at most so many steps, and leave a state."""
        reader = BatchReader(self.uri, mesh, accept_batch_change=True)
        first, substep = reader.position_of(self.state) if self.state else (0, 0)
        ranks = [reader.read(StepRange(first), rank, substep=substep) for rank in range(mesh.ranks)]
        for _, slices in zip(range(n_steps), zip(*ranks, strict=True), strict=False):
            self.history.append(list(slices))
            states = [reader.state_after(step) for step in slices]
            assert all(state == states[0] for state in states)
            self.state = json.loads(json.dumps(states[0]))
        for steps in ranks:
            steps.close()  # type: ignore[attr-defined]


def rows_of(step: GlobalBatchSlice) -> list[tuple[int, int]]:
    """The batch and the row in it of each row, by what is written in them."""
    return [divmod(int(first), 1_000_000) for first in step.tokens[:, 0]]


@st.composite
def changes_of_mesh(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """The dp that batches are made for, and the dp and the steps of each part of a training run."""
    sizes = [1, 2, 3, 4, 6, 12]
    dp = draw(st.sampled_from(sizes))
    others = [size for size in sizes if size % dp == 0 or dp % size == 0]
    return dp, draw(st.lists(st.tuples(st.sampled_from(others), st.integers(1, 5)), min_size=1, max_size=5))


@pytest.mark.invariant(
    "Under any sequence of meshes with a multiple or a divisor of the batches' dp, every slice of every"
    " batch is read exactly once and in order, and a state takes the run from one mesh to the next."
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes_of_mesh())
def test_every_slice_is_read_once_and_in_order_under_any_changes_of_the_mesh(
    tmp_path_factory: pytest.TempPathFactory, changes: tuple[int, list[tuple[int, int]]]
) -> None:
    dp, parts = changes
    n_batches = sum(max(1, other // dp) * steps for other, steps in parts) + 2
    uri = new_namespace(tmp_path_factory.mktemp("batches"), Mesh(dp=dp), lanes=1)
    lane = Lane(uri)
    lane.put(*(batch(number, ROWS, 2) for number in range(n_batches)))
    lane.close()
    training = Training(uri)
    for other, n_steps in parts:
        training.go_on(Mesh(dp=other), n_steps)
        assert training.state is not None
        if training.state["substep"]:  # the mesh may not change here, but the process may
            training.go_on(Mesh(dp=other), dp // other - training.state["substep"])
    training.go_on(Mesh(dp=dp), n_batches)
    rows = Counter(row for slices in training.history for step in slices for row in rows_of(step))
    assert rows == Counter((number, 2 * row) for number in range(n_batches) for row in range(ROWS))
    order = [rows_of(step)[0] for slices in training.history for step in slices]
    assert [number for number, _ in order] == sorted(number for number, _ in order)
    for slices in training.history:
        of_ranks = [rows_of(step)[0] for step in slices]
        assert of_ranks == sorted(of_ranks)
        assert {(step.offset, step.substep) for step in slices} == {(slices[0].offset, slices[0].substep)}


def test_twice_the_ranks_read_two_batches_a_step_and_half_of_them_one_in_two(tmp_path: Path) -> None:
    uri = written(tmp_path, 4, Mesh(dp=2))
    twice = BatchReader(uri, Mesh(dp=4), accept_batch_change=True)
    of_rank = [list(twice.read(StepRange(), rank)) for rank in range(4)]
    assert [[rows_of(step)[0] for step in steps] for steps in of_rank] == [
        [(0, 0), (2, 0)],
        [(0, 32), (2, 32)],
        [(1, 0), (3, 0)],
        [(1, 32), (3, 32)],
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
    assert [rows_of(step)[0] for step in steps] == [(2, 0), (2, 32), (3, 0), (3, 32)]


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
    "dp, other, sentence",
    [
        (4, 6, r"made for dp=4,cp=1, and the mesh is pp=1,dp=6,cp=1,tp=1\. Read them with dp=4 or dp=8"),
        (8, 3, r"Read them with dp=2 or dp=4"),
        (6, 5, r"Read them with dp=3 or dp=6"),
        (5, 999, r"Read them with dp=995 or dp=1000"),
        (7, 2, r"Read them with dp=1 or dp=7"),
    ],
)
def test_another_ratio_is_refused_with_the_two_nearest_that_work(dp: int, other: int, sentence: str) -> None:
    with pytest.raises(NamespaceDiffers, match=sentence):
        Remap(Mesh(dp=dp), Mesh(dp=other))


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


def test_tokens_of_each_step_are_those_of_the_batch(tmp_path: Path) -> None:
    half = BatchReader(written(tmp_path, 1, Mesh(dp=4)), Mesh(dp=2), accept_batch_change=True)
    steps = [list(half.read(StepRange(), rank)) for rank in range(2)]
    whole = np.concatenate([steps[dp][substep].tokens for dp in range(2) for substep in range(2)])
    np.testing.assert_array_equal(whole, batch(0)["tokens"])
