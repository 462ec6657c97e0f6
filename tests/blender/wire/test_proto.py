"""The committed code of the protocol is what its definition generates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROTO = Path("blender/proto/blender/v1/blender.proto")


@pytest.mark.parametrize("suffix", ["_pb2.py", "_pb2.pyi"])
def test_the_committed_code_is_generated_from_the_definition(suffix: str, tmp_path: Path) -> None:
    options = [f"--{kind}_out={tmp_path}" for kind in ("python", "pyi")]
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", "-I", ".", *options, str(PROTO)], cwd=ROOT, check=True
    )
    name = PROTO.with_name(PROTO.stem + suffix)
    assert (ROOT / name).read_text() == (tmp_path / name).read_text(), "run `make proto`"
