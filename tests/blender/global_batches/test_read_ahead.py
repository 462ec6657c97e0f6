"""How far a reader runs ahead: by the bytes that it has asked for and that nobody has taken."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from blender.global_batches.reader import BatchReader
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from tests.blender.global_batches.written import Lane, new_namespace
from tests.blender.programs import eventually

ROOT = Path(__file__).parents[3]
N_STEPS = 24
SLICE_BYTES = 1 << 20


class Outstanding:
    """The bytes of slices that a reader has asked its store for, less those that its consumer has taken."""

    def __init__(self, reader: BatchReader) -> None:
        self._lock = threading.Lock()
        self._read = reader._store.read
        self._now = self.most = 0
        reader._store.read = self._counted  # type: ignore[method-assign]

    def _counted(self, name: str, offset: int, length: int) -> memoryview | None:
        if length >= SLICE_BYTES // 4:  # no footer
            self.add(length)
        return self._read(name, offset, length)

    def add(self, n_bytes: int) -> None:
        with self._lock:
            self._now += n_bytes
            self.most = max(self.most, self._now)


def wide_steps(folder: Path, mesh: Mesh) -> str:
    """A namespace of slices of a mebibyte that has ended."""
    uri = new_namespace(folder, mesh, lanes=1)
    lane = Lane(uri)
    tokens = np.zeros((1, mesh.cp * SLICE_BYTES), np.uint8)
    lane.put(*({"tokens": tokens} for _ in range(N_STEPS)))
    lane.close()
    return uri


@pytest.mark.invariant("Slices in flight and slices not yet taken stay within the budget of their iterator.")
@pytest.mark.parametrize("mesh", [Mesh(), Mesh(cp=2)])
@pytest.mark.parametrize("slices", [1, 4.5])
def test_slices_in_flight_and_ready_stay_within_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mesh: Mesh, slices: float
) -> None:
    monkeypatch.setattr("blender.global_batches.store.folder.os.fsync", lambda _: None)
    n_bytes = int(slices * SLICE_BYTES)
    reader = BatchReader(wide_steps(tmp_path, mesh), prefetch_bytes=n_bytes)
    outstanding = Outstanding(reader)
    offsets = []
    for step in reader.read(StepRange(), 0):
        offsets.append(step.offset)
        outstanding.add(-step.nbytes)
        if step.offset < 8:
            time.sleep(0.05)  # a reader without a bound runs ahead meanwhile
        if step.offset == 0 and mesh.cp == 1 and slices > 1:
            assert eventually(lambda: outstanding.most >= 4 * SLICE_BYTES)  # the budget is used
    assert offsets == list(range(N_STEPS))
    # The slice that a consumer takes counts no more, a moment before this test hears of it.
    assert SLICE_BYTES <= outstanding.most <= n_bytes + SLICE_BYTES


def test_a_process_ends_while_its_reader_waits_for_a_consumer(tmp_path: Path) -> None:
    program = """
import sys
from blender.global_batches.reader import BatchReader
from blender.spec.step_range import StepRange
steps = BatchReader(sys.argv[1], prefetch_bytes=1).read(StepRange(), 0)
print(next(steps).offset)
"""
    command = [sys.executable, "-c", program, wide_steps(tmp_path, Mesh())]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "0\n"
