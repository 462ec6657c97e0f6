"""States of readers: any run goes on from one, and other histories refuse it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blender.errors import InvalidRequest
from blender.global_batches.errors import (
    OtherHistory,
)
from blender.global_batches.reader import BatchReader
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from tests.blender.global_batches.reading import written
from tests.blender.global_batches.written import Lane, batch, new_namespace, small_log


def test_a_state_taken_in_the_midst_of_a_log_is_loaded_when_it_is_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_log(monkeypatch, checkpoint_versions=4, segment_steps=8)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    states = []
    for number in range(40):
        states.append(BatchReader(uri).state(number))
        lane.put(batch(number))
    assert len({state["content"] for state in states}) == 40
    of_start = {"step": 0, "substep": 0, "dp": 1, "run": None, "content": 32 * "0"}
    assert states[0] == {"namespace": BatchReader(uri).id, **of_start}
    reader = BatchReader(uri)
    for number in [*range(40), 39, 8, 7, 9, 0]:
        assert reader.state(number) == states[number]
        assert reader.offset_of(states[number]) == number


def test_three_restarts_from_one_state_replay_the_same_bytes(tmp_path: Path) -> None:
    uri = written(tmp_path, 12, Mesh(dp=2))
    state = BatchReader(uri).state(5)

    def replay() -> list[bytes]:
        reader = BatchReader(uri)
        steps = list(reader.read(StepRange(reader.offset_of(state)), 1))
        assert [step.offset for step in steps] == list(range(5, 12))
        return [array.tobytes() for step in steps for array in step.arrays.values()]

    assert replay() == replay() == replay()


def test_a_state_of_another_history_is_refused(tmp_path: Path) -> None:
    uri, other = written(tmp_path / "a", 4), written(tmp_path / "b", 4)
    reader = BatchReader(uri)
    state = reader.state(3)
    with pytest.raises(OtherHistory, match="belongs to namespace"):
        reader.offset_of(BatchReader(other).state(3))
    with pytest.raises(OtherHistory, match=r"at step 5, and .* has 4 steps"):
        reader.offset_of(state | {"step": 5})
    with pytest.raises(OtherHistory, match="after other batches than steps 0 to 2"):
        reader.offset_of(state | {"content": 32 * "a"})
    with pytest.raises(OtherHistory, match="after other batches"):
        reader.offset_of(state | {"step": 2})


@pytest.mark.parametrize(
    "state",
    [
        None,
        7,
        {},
        {"blend": "4f1c", "offset": 3},
        {"namespace": "x", "step": 3},
        {"namespace": 3, "step": 3, "content": 32 * "0"},
        {"namespace": "x", "step": -1, "content": 32 * "0"},
        {"namespace": "x", "step": True, "content": 32 * "0"},
        {"namespace": "x", "step": "3", "content": 32 * "0"},
        {"namespace": "x", "step": 3, "content": 32 * "z"},
        {"namespace": "x", "step": 3, "content": 31 * "0"},
        {"namespace": "x", "step": 3, "content": 7},
        {"namespace": "x", "step": 3, "substep": 0, "dp": 1, "run": 3, "content": 32 * "0"},
        {"namespace": "x", "step": 3, "substep": -1, "dp": 1, "run": None, "content": 32 * "0"},
        {"namespace": "x", "step": 3, "substep": 0, "run": None, "content": 32 * "0"},
    ],
)
def test_what_is_not_a_state_is_refused_in_a_sentence(tmp_path: Path, state: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"not the state of a reader|`(sub)?step` is"):
        BatchReader(new_namespace(tmp_path)).offset_of(state)


def test_a_state_ahead_of_the_log_is_not_given(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"state of step 5 was asked for, and .* has 4 steps"):
        BatchReader(written(tmp_path, 4)).state(5)


def test_a_state_that_an_earlier_version_wrote_is_loaded_by_any_mesh(tmp_path: Path) -> None:
    uri = written(tmp_path, 4, Mesh(dp=2))
    reader = BatchReader(uri)
    state = reader.state(3)
    earlier = {name: state[name] for name in ("namespace", "step", "content")}
    assert reader.position_of(earlier) == (3, 0)
    assert BatchReader(uri, Mesh(), accumulate=2).position_of(earlier) == (3, 0)
    assert BatchReader(uri, Mesh(dp=4), accept_batch_change=True).offset_of(earlier) == 3
    with pytest.raises(InvalidRequest, match=r"besides .* which this version of the package does not know"):
        reader.offset_of({**state, "epoch": 1})
