"""examples/pictures trains on two processes, and each step has the loss of one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.lake.schemas.packing import VOCABULARY_SIZE
from factory.settings import Settings
from tests.blender.lakes import ROOT, packed_rows, serving, write_table
from tests.blender.picture_tables import LENGTH, PICTURES, documents, write_pictures
from tests.ports import free_ports

pytest.importorskip("torch")
pytestmark = [pytest.mark.process, pytest.mark.slow]

SPEC = """
images: {patch: 14, merge: 2, most_patches: 64}
encoder: {hidden: 32, layers: 1}
encoder_level: LEVEL
row_tokens: 128
"""


def losses_of(ranks: int, address: str) -> list[tuple[int, float, int]]:
    """Step, loss and pictures of each line that the example prints, started by torchrun."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    command = [*torchrun, "--master-port", str(free_ports(1)[0]), str(ROOT / "examples/pictures/train.py")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, address, "4"], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"step (\d+): loss ([\d.]+), (\d+) pictures", done.stdout)
    return [(int(step), float(loss), int(pictures)) for step, loss, pictures in lines]


def test_two_processes_that_encode_for_each_other_have_the_losses_of_one(tmp_path: Path) -> None:
    lake = Settings(home=tmp_path / "lake", cache=tmp_path / "cache")
    snapshot = {VOCABULARY_SIZE: "1000"}
    write_pictures(lake, documents(24), snapshot_properties=snapshot)
    properties = {"factory.sequence-length": str(LENGTH)}
    write_table(
        lake, "packed.prose", packed_rows("prose", 9), properties=properties, snapshot_properties=snapshot
    )
    sources = [
        Source(PICTURES, 8, columns=("tokens", "images"), shuffle="row", oversample=True),
        Source("packed.prose", 4, oversample=True),
    ]
    blend = open_blends(lake).create(sources, seed=7).id
    runs = []
    for ranks, level in ((1, "intra"), (2, "intra"), (2, "interleaved")):
        spec = tmp_path / f"{level}.yaml"
        spec.write_text(SPEC.replace("LEVEL", level))
        options = ("--strategy", "vlm", "--spec", str(spec), "--mesh", f"dp={ranks}", "--microbatches", "2")
        with serving(lake.home, blend, *options, "--ragged", package="blender.loading") as constructor:
            runs.append(losses_of(ranks, constructor.address))
    alone, *others = runs
    assert [step for step, _, _ in alone] == list(range(4))
    assert min(pictures for _, _, pictures in alone) > 0
    assert alone[-1][1] < alone[0][1]
    for run in others:
        assert [(step, pictures) for step, _, pictures in run] == [(step, n) for step, _, n in alone]
        assert [loss for _, loss, _ in run] == pytest.approx([loss for _, loss, _ in alone], rel=1e-4)
