"""The script of docs/training.md trains as printed, and continues with another number of ranks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
import torch

from blender import BlenderClient, Source
from tests.blender.lakes import make_lake, serving
from tests.ports import free_ports

PAGE = Path(__file__).parents[2] / "docs" / "training.md"

pytestmark = pytest.mark.process


def test_two_ranks_train_and_one_goes_on_where_they_stopped(tmp_path: Path) -> None:
    (code,) = [it for it in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "main" in it]
    script = tmp_path / "train.py"
    script.write_text(code)
    make_lake(tmp_path / "lake", code=40, prose=300)
    with serving(tmp_path / "lake") as server, BlenderClient(server.address) as client:
        sources = [Source("packed.code", 6, oversample=True, shuffle="row"), Source("packed.prose", 2)]
        blend = client.create(sources, seed=7).id

        def run(ranks: int, stop: int) -> str:
            shared = {
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(free_ports(1)[0]),
                "OMP_NUM_THREADS": "1",
            }
            command = [sys.executable, str(script), server.address, blend, str(stop), str(tmp_path)]
            rank_variables = [
                {"RANK": str(rank), "WORLD_SIZE": str(ranks)} if ranks > 1 else {} for rank in range(ranks)
            ]
            processes = [
                subprocess.Popen(
                    command, env={**os.environ, **shared, **variables}, stdout=PIPE, stderr=PIPE, text=True
                )
                for variables in rank_variables
            ]
            ended = [process.communicate(timeout=600) for process in processes]
            assert [process.returncode for process in processes] == [0] * ranks, ended
            assert "".join(out for out, _ in ended[1:]) == ""
            return ended[0][0]

        first, second = run(2, 3), run(1, 5)
    assert re.findall(r"step (\d+): (\d+) of (\d+) shares", first) == [(str(at), "4", "2") for at in range(3)]
    assert re.findall(r"step (\d+): (\d+) of (\d+) shares", second) == [("3", "8", "1"), ("4", "8", "1")]
    saved = torch.load(tmp_path / "checkpoint.pt")
    assert saved["data"] == {"blend": blend, "offset": 5}
