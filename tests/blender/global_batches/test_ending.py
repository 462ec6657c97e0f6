"""Ends by hand: of lanes whose producer is gone, and of namespaces whose lanes come and go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from blender.errors import InvalidRequest
from blender.global_batches.ending import end_namespace, finish_lane
from blender.global_batches.errors import Fenced, LaneClosed, NamespaceEnded, UnevenLanes
from blender.global_batches.namespace import create_namespace
from blender.global_batches.reader import BatchReader
from blender.global_batches.status import namespace_status
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from factory.cli.batches_tables import status_lines
from factory.errors import ConfigurationError
from tests.blender.global_batches.reading import read


def put(writer: BatchWriter, number: int) -> None:
    writer.put([{"tokens": np.array([[number * 1_000_000]])}], number + 1)


def test_a_lane_is_finished_in_place_of_its_producer(tmp_path: Path) -> None:
    create_namespace(tmp_path, Mesh(), lanes=2, order="arrival")
    with pytest.raises(InvalidRequest, match=r"Nobody has opened lane `gone` .*\. It has no lanes yet\."):
        finish_lane(tmp_path, "gone")
    alive, gone = BatchWriter(tmp_path, "alive"), BatchWriter(tmp_path, "gone")
    put(gone, 0)
    gone.flush()
    with pytest.raises(InvalidRequest, match=r"Nobody has opened lane `gome` .* `alive`, `gone`"):
        finish_lane(tmp_path, "gome")
    assert [finish_lane(tmp_path, "gone") for _ in range(2)] == [1, 1]
    put(gone, 1)
    with pytest.raises(Fenced):
        gone.flush()
    put(alive, 1)
    alive.finish()
    assert read(BatchReader(str(tmp_path))) == [0, 1]  # to the end of the data


def test_a_lane_of_assigned_order_is_not_finished_before_steps_that_are_there(tmp_path: Path) -> None:
    create_namespace(tmp_path, Mesh(), lanes=2)
    with BatchWriter(tmp_path, 0) as first, BatchWriter(tmp_path, 1) as second:
        put(first, 0)
        put(second, 1)
        second.flush()
        put(second, 3)
    with pytest.raises(UnevenLanes, match="Step 3 of lane `1` would never be read"):
        finish_lane(tmp_path, 0)
    assert finish_lane(tmp_path, 1) == 2


def test_a_lane_that_was_finished_long_ago_is_finished_still(tmp_path: Path) -> None:
    create_namespace(tmp_path, Mesh(), order="arrival")
    for number in range(51):  # two versions each, and a checkpoint after 100
        with BatchWriter(tmp_path, f"lane-{number}") as writer:
            if number == 7:
                put(writer, 7)
            writer.finish()
    assert (tmp_path / "lanes" / "lane-7").exists()
    again = BatchWriter(tmp_path, "lane-7")
    assert (again.is_finished, again.offset, again.committed) == (True, 8, 1)
    with pytest.raises(LaneClosed):
        put(again, 8)
    assert finish_lane(tmp_path, "lane-7") == 1
    with pytest.raises(InvalidRequest, match="Nobody has opened lane `lane-51`"):
        finish_lane(tmp_path, "lane-51")
    status = namespace_status(tmp_path)
    assert (status.unlisted_lanes, [lane.name for lane in status.lanes]) == (50, ["lane-50"])
    assert "and 50 finished lanes before" in [f"{line}" for line in status_lines(status)]
    assert status.waits_for == "Step 1 is that of a lane that nobody has opened."


def test_an_ended_namespace_takes_no_more(tmp_path: Path) -> None:
    uri = f"{tmp_path}/run"
    create_namespace(uri, Mesh(), order="arrival")
    writer = BatchWriter(uri, "a")
    writer.put([{"x": np.arange(3)}], 1)
    writer.flush()
    end_namespace(uri)
    end_namespace(uri)
    writer.put([{"x": np.arange(3)}], 2)
    with pytest.raises(NamespaceEnded, match="The namespace was ended"):
        writer.close()
    with pytest.raises(NamespaceEnded, match="The namespace was ended"):
        BatchWriter(uri, "b")


@pytest.mark.parametrize("lanes, counted", [(1, "1 lane"), (2, "2 lanes")])
def test_end_namespace_refuses_a_number_of_lanes(tmp_path: Path, lanes: int, counted: str) -> None:
    uri = f"{tmp_path}/run"
    create_namespace(uri, Mesh(), lanes=lanes)
    with pytest.raises(ConfigurationError, match=f"has assigned order and {counted}, and ends once"):
        end_namespace(uri)


def test_two_that_end_a_namespace_at_once_both_succeed(tmp_path: Path) -> None:
    uri = f"{tmp_path}/run"
    create_namespace(uri, Mesh(), order="arrival")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: end_namespace(uri), range(8)))
    with pytest.raises(NamespaceEnded):
        BatchWriter(uri, "a")
