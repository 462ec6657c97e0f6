"""What a person reads of a namespace, and of a batch in it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from blender.errors import InvalidRequest
from blender.global_batches.batch_description import describe_batch
from blender.global_batches.namespace import create_namespace
from blender.global_batches.policies import Naive
from blender.global_batches.status import ago, namespace_status
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A namespace of three lanes of assigned order."""
    create_namespace(tmp_path, Mesh(dp=2), lanes=3, order="assigned")
    return str(tmp_path)


def write(uri: str, lane: str | int, n: int, *, finish: bool = False) -> None:
    """Put batches into a lane."""
    with BatchWriter(uri, lane, policy=Naive()) as writer:
        for _ in range(n):
            rows = np.arange(4) + writer.sequence
            writer.put([{"rows": rows}, {"rows": -rows}], offset={"row": writer.sequence}, origin="a test")
        if finish:
            writer.finish()


def test_status_names_the_lane_that_everybody_waits_for(uri: str) -> None:
    write(uri, 0, 2)
    write(uri, 2, 1)
    status = namespace_status(uri)
    assert (status.steps, status.waiting, status.is_ended) == (1, 2, False)
    assert status.waits_for is not None
    assert status.waits_for.startswith("Step 1 is that of lane `1`, which nobody has opened in the ")
    assert status.waits_for.endswith(
        " since the namespace was created, and 2 committed steps wait behind it."
    )
    first, second, third = status.lanes
    assert (first.batches, first.next_step, first.behind, first.epoch, first.is_closed) == (2, 6, 0, 1, False)
    assert (second.batches, second.next_step, second.behind, second.epoch) == (0, 1, 2, 0)
    assert second.committed_at is second.rate is second.conflicts is None
    assert (third.next_step, third.behind) == (5, 1)
    assert first.offset == {"row": 1}
    assert status.read_at - 60 < (first.committed_at or 0) <= status.read_at + 1
    assert first.figures["batches"] == 2
    assert first.figures["lost"] == 0
    assert first.figures["attempts"] >= 1
    assert first.figures["mean_lag"] >= 0
    described = json.loads(json.dumps(status.described()))
    assert described["lanes"][0]["conflicts"] == 0
    assert described["namespace"]["order"] == "assigned"


def test_status_says_since_when_a_lane_is_silent(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(uri, 0, 2)
    write(uri, 1, 1)
    write(uri, 2, 1)
    write(uri, 1, 0)  # a process that took the lane and died
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 7_500)
    status = namespace_status(uri)
    assert status.steps == 4
    assert status.waits_for is not None
    assert status.waits_for.startswith(
        f"Step 4 is that of lane `1`, which process {status.lanes[1].process} "
    )
    assert status.waits_for.endswith("holds, silent for 2 h 05 min.")
    assert status.lanes[1].epoch == 2


def test_a_namespace_whose_lanes_are_finished_has_ended(uri: str) -> None:
    for lane in range(3):
        write(uri, lane, 2, finish=True)
    status = namespace_status(uri)
    assert status.is_ended
    assert status.waits_for is None
    assert status.steps == 6
    assert all(lane.is_closed for lane in status.lanes)
    sizes = [describe_batch(uri, step).n_bytes for step in range(6)]
    assert status.n_bytes == sum(sizes)


def test_in_arrival_order_the_next_step_is_that_of_any_lane(tmp_path: Path) -> None:
    create_namespace(tmp_path, Mesh(dp=2), lanes=2, order="arrival")
    status = namespace_status(tmp_path)
    assert status.waits_for == "Step 0 is that of one of 2 lanes that nobody has opened."
    write(str(tmp_path), "a", 1, finish=True)
    assert namespace_status(tmp_path).waits_for == "Step 1 is that of a lane that nobody has opened."
    write(str(tmp_path), "b", 2)
    status = namespace_status(tmp_path)
    assert status.waits_for is not None
    assert "the latest, `b`, which process" in status.waits_for
    assert [(lane.name, lane.next_step, lane.behind) for lane in status.lanes] == [
        ("a", None, None),
        ("b", None, None),
    ]


def test_a_batch_is_described_down_to_its_slices(uri: str) -> None:
    write(uri, 0, 2)
    write(uri, 1, 1)
    write(uri, 2, 1)
    batch = describe_batch(uri, 3)
    assert (batch.lane, batch.epoch, batch.sequence, batch.origin) == ("0", 1, 1, "a test")
    body = (Path(uri) / batch.name).read_bytes()
    assert len(body) == batch.n_bytes
    assert [(part.dp, part.chunk) for part in batch.slices] == [(0, 0), (1, 0)]
    for part in batch.slices:
        assert crc32(body[part.offset : part.offset + part.n_bytes]) == part.checksum
    assert batch.columns[0].name == "rows"
    assert json.loads(json.dumps(batch.described()))["columns"][0]["shapes"] == [[4]]
    with pytest.raises(InvalidRequest, match=r"Step 4 was asked for, and .* has 4 steps"):
        describe_batch(uri, 4)


@pytest.mark.parametrize(
    "seconds, text",
    [(-1, "0 s"), (0.4, "0 s"), (119, "119 s"), (121, "2 min"), (7_380, "2 h 03 min"), (200_000, "2 d")],
)
def test_a_time_span_is_said_as_a_person_says_it(seconds: float, text: str) -> None:
    assert ago(seconds) == text
