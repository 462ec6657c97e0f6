"""The script of docs/training.md trains as printed, in little memory and with another number of ranks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("torch")

import torch

from blender import BlenderClient, Source
from factory.lake.schemas.packing import PACKED, SEQUENCE_LENGTH, VOCABULARY_SIZE
from factory.settings import Settings
from tests.blender.lakes import packed_rows, serving, write_table
from tests.ports import free_ports

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
GIB = 1 << 30
PEAK = """
import pathlib, re, runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
"""

pytestmark = pytest.mark.process


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The trainer, byte for byte."""
    (code,) = [
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "main" in block
    ]
    (tmp_path / "train.py").write_text(code)
    return tmp_path / "train.py"


@pytest.mark.invariant("The trainer of the docs runs as printed, and a step of full rows fits into 2 GiB.")
def test_two_ranks_train_and_one_goes_on_where_they_stopped(tmp_path: Path, script: Path) -> None:
    lake = Settings(home=tmp_path / "lake", cache=tmp_path / "cache")
    for name, n in (("code", 40), ("prose", 300)):
        rows = packed_rows(name, n)
        write_table(lake, f"packed.{name}", rows, snapshot_properties={VOCABULARY_SIZE: "30000"})
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


@pytest.mark.invariant("The trainer of the docs runs as printed, and a step of full rows fits into 2 GiB.")
@pytest.mark.slow
def test_a_step_of_full_rows_takes_less_than_two_gib(tmp_path: Path, script: Path) -> None:
    length, vocabulary, documents = 8_192, 16_384, (5_000, 3_000, 192)
    rows = [
        {
            "ordinal": ordinal,
            "tokens": (np.arange(length) % vocabulary).astype("<u2").tobytes(),
            "n_tokens": length,
            "segments": [{"doc_id": f"{n}", "doc_offset": 0, "length": n} for n in documents],
            **dict.fromkeys(("append", "shard", "chunk"), 0),
        }
        for ordinal in range(4)
    ]
    write_table(
        Settings(home=tmp_path / "lake", cache=tmp_path / "cache"),
        "packed.long",
        pa.Table.from_pylist(rows, schema=PACKED.columns),
        properties={SEQUENCE_LENGTH: str(length)},
        snapshot_properties={VOCABULARY_SIZE: str(vocabulary)},
    )
    with serving(tmp_path / "lake") as server, BlenderClient(server.address) as client:
        blend = client.create([Source("packed.long", 4)]).id
        command = [sys.executable, "-c", PEAK, str(script), server.address, blend, "1", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    step, peak_kib = done.stdout.splitlines()
    loss = re.fullmatch(r"step 0: 4 of 1 shares, loss ([\d.]+)", step)
    assert loss, step
    assert abs(float(loss[1]) - np.log(vocabulary)) < 1
    assert int(peak_kib) * 1024 < 2 * GIB
    saved = torch.load(tmp_path / "checkpoint.pt")["model"]
    assert (len(saved["token.weight"]), len(saved["place.weight"])) == (vocabulary, length)
