"""examples/mesh trains the same model on any mesh, and a blend's dataset goes on where a loader stopped."""

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
from tests.ports import free_ports

pytest.importorskip("torch")
pytestmark = pytest.mark.process


def trained(ranks: int, *arguments: str) -> list[tuple[int, float, str]]:
    """Step, loss and mesh of each line that the example prints, started by torchrun."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    command = [*torchrun, "--master-port", str(free_ports(1)[0]), str(ROOT / "examples/mesh/train.py")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"step (\d+): loss ([\d.]+) on (\S+)", done.stdout)
    return [(int(step), float(loss), mesh) for step, loss, mesh in lines]


@pytest.mark.slow
def test_a_run_has_the_losses_of_one_rank_on_every_mesh(tmp_path: Path) -> None:
    lake = Settings(home=tmp_path / "lake", cache=tmp_path / "cache")
    for name, n in (("code", 40), ("prose", 300)):
        table = f"packed.{name}"
        write_table(lake, table, packed_rows(name, n), snapshot_properties={VOCABULARY_SIZE: "30000"})
    sources = [Source("packed.code", 12, oversample=True, shuffle="row"), Source("packed.prose", 4)]
    blend = open_blends(lake).create(sources, seed=7).id
    with serving(lake.home) as blender:
        alone = trained(1, blender.address, blend, "6", str(tmp_path))
        (tmp_path / "checkpoint.pt").unlink()
        runs = []
        for mesh, ranks, stop in (("dp=2,cp=2", 4, "2"), ("cp=2", 2, "4")):
            options = ("--mesh", mesh, "--microbatches", "2", "--model", "hidden=32,layers=1")
            with serving(lake.home, blend, *options, package="blender.loading") as constructor:
                runs += trained(ranks, constructor.address, "planned", stop, str(tmp_path))
        runs += trained(1, blender.address, blend, "6", str(tmp_path))
    assert [step for step, _, _ in runs] == [step for step, _, _ in alone] == list(range(6))
    assert [loss for _, loss, _ in runs] == pytest.approx([loss for _, loss, _ in alone], rel=1e-4)
    meshes = ["pp=1,dp=2,cp=2,tp=1"] * 2 + ["pp=1,dp=1,cp=2,tp=1"] * 2 + ["pp=1,dp=1,cp=1,tp=1"] * 2
    assert [mesh for _, _, mesh in runs] == meshes
