"""torch, and numpy where torch cannot be imported, read one namespace while four producers write it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from blender.global_batches import BatchDataset, BatchReader, Mesh, create_namespace
from blender.trainer.torch import BlendLoader
from tests.blender.lakes import ROOT

pytestmark = pytest.mark.process

MESH = Mesh(dp=2, cp=2)
LANES = 4
PRODUCE = """
import sys, time
import numpy as np
from blender.global_batches import BatchWriter, Mesh, cut
uri, lane = sys.argv[1:]
with BatchWriter(uri, lane) as writer:
    for row in range(20):
        tokens = np.arange(4 * 8, dtype=np.uint16).reshape(4, 8) + 1000 * int(lane) + row
        writer.put(cut({"tokens": tokens}, Mesh(dp=2, cp=2), sequence={"tokens"}), offset=row + 1)
        time.sleep(0.01)
    writer.finish()
"""
READ = """
import json, sys
sys.modules["torch"] = None
from blender.global_batches import BatchReader, Mesh
from blender.spec.step_range import StepRange
reader = BatchReader(sys.argv[1], Mesh(dp=2, cp=2))
print(json.dumps([step.tokens.tolist() for step in reader.read(StepRange(), 1)]))
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_both_read_the_same_steps_while_four_producers_write(tmp_path: Path) -> None:
    uri = f"{tmp_path}/run"
    create_namespace(uri, MESH, lanes=LANES, order="arrival")
    numpy_reader = start(READ, uri)
    producers = [start(PRODUCE, uri, f"{lane}") for lane in range(LANES)]
    try:
        loader = BlendLoader(BatchDataset(BatchReader(uri, MESH), rank=1))
        by_torch = [step["tokens"].tolist() for step in loader]
        by_numpy = json.loads(numpy_reader.communicate(timeout=60)[0])
        assert [producer.wait(60) for producer in producers] == [0] * LANES
    finally:
        for process in (numpy_reader, *producers):
            process.kill()
            process.communicate()
    assert by_torch == by_numpy
    assert len(by_torch) == 20 * LANES
    firsts = [step[0][0] for step in by_torch]
    for lane in range(LANES):
        of_lane = [first - 1000 * lane - 2 for first in firsts if first // 1000 == lane]
        assert of_lane == list(range(20))  # rank 1 has chunks 1 and 2 of the first rows, from token 2 on
