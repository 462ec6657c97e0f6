"""Damaged objects are named at their step and never served."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from blender.global_batches.errors import (
    DamagedBatch,
    DamagedLog,
)
from blender.global_batches.log import names
from blender.global_batches.rank_slice import GlobalBatchSlice, read_footer, read_slice
from blender.global_batches.reader import BatchReader
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from tests.blender.global_batches.reading import fast_reader, first_number, read, written
from tests.blender.global_batches.written import Lane, batch, new_namespace, small_log


def test_a_flipped_byte_is_named_by_the_ranks_that_read_it_and_seen_by_no_other(tmp_path: Path) -> None:
    mesh = Mesh(dp=2, cp=2)
    uri = new_namespace(tmp_path, mesh)
    Lane(uri).put({"ids": np.arange(2, dtype=np.int8), "tokens": np.arange(16, dtype=np.int16).reshape(2, 8)})
    reader = BatchReader(uri)
    whole = [next(reader.read(StepRange(0, 1), rank)) for rank in range(4)]
    place = reader._follower.batch(0)
    path = tmp_path / place.name
    body = path.read_bytes()
    trailer = place.footer_offset + place.footer_length
    readers_of = np.zeros(len(body), int)
    for byte in range(trailer):
        path.write_bytes(body[:byte] + bytes([body[byte] ^ 0x10]) + body[byte + 1 :])
        for rank in range(4):
            step, fault = read_one(reader, rank)
            if fault:
                part = f"The footer of the batch {place.name}" if byte >= place.footer_offset else "Slice dp"
                assert part in fault
                assert place.name in fault
                readers_of[byte] += 1
            else:
                assert step is not None
                for name, array in step.arrays.items():
                    np.testing.assert_array_equal(array, whole[rank].arrays[name])
    assert (readers_of[: place.footer_offset] == 1).all()
    assert (readers_of[place.footer_offset : trailer] == 4).all()


def read_one(reader: BatchReader, rank: int) -> tuple[GlobalBatchSlice | None, str]:
    """Step 0, read in this thread, or the sentence that names the damage."""
    try:
        store, namespace, batch = reader._store, reader.namespace, reader._follower.batch(0)
        footer = read_footer(store, namespace, batch)
        return read_slice(store, namespace, batch, footer, reader.mesh.coordinate(rank)), ""
    except DamagedBatch as error:
        return None, str(error)


@pytest.mark.parametrize("kept", [None, 0, 10, 200])
def test_a_missing_or_short_object_is_named(tmp_path: Path, kept: int | None) -> None:
    uri = written(tmp_path, 1)
    reader = BatchReader(uri)
    reader._follower.poll()
    path = tmp_path / reader._follower.batch(0).name
    body = path.read_bytes()
    path.unlink()
    if kept is not None:
        path.write_bytes(body[:kept])
    with pytest.raises(DamagedBatch, match=path.name):
        read(reader)


def test_damage_is_raised_at_its_step_after_the_steps_before_it(tmp_path: Path) -> None:
    uri = written(tmp_path, 20)
    reader = BatchReader(uri)
    reader._follower.poll()
    (tmp_path / reader._follower.batch(7).name).unlink()
    steps = reader.read(StepRange(), 0)
    assert [first_number(step) for step in islice(steps, 7)] == list(range(7))
    with pytest.raises(DamagedBatch, match="of step 7 is missing"):
        next(steps)
    assert read(reader, 0, 8) == list(range(8, 20))


def test_a_damaged_record_of_the_log_is_named(tmp_path: Path) -> None:
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    reader = fast_reader(uri)
    lane.put(batch(0))
    steps = reader.read(StepRange(), 0)
    next(steps)
    lane.put(batch(1))
    steps.close()  # type: ignore[attr-defined]
    path = tmp_path / names.log(3)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DamagedLog, match=names.log(3)):
        list(BatchReader(uri).read(StepRange(), 0))


@pytest.mark.parametrize("damage", ["missing", "swapped"])
def test_a_damaged_segment_is_named_at_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    small_log(monkeypatch, checkpoint_versions=4, segment_steps=4)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    for number in range(19):
        lane.put(batch(number))
    second, third = names.segment(4, 7), names.segment(8, 11)
    if damage == "missing":
        (tmp_path / second).unlink()
    else:
        (tmp_path / second).write_bytes((tmp_path / third).read_bytes())
    steps = BatchReader(uri).read(StepRange(), 0)
    assert [first_number(step) for step in islice(steps, 4)] == [0, 1, 2, 3]
    with pytest.raises(DamagedLog, match=second):
        next(steps)
