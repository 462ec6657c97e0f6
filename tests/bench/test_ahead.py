"""The bench of waits: every way to read gives the same rows, and each step has its wait."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import ahead
from bench.stream_data import write


@pytest.mark.process
def test_every_way_reads_the_same_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "STEPS", 5)
    monkeypatch.setattr(ahead, "COMPUTE_S", 0.0)
    write(tmp_path, 2_000)
    blend = json.loads((tmp_path / "blends.json").read_text())["plain"]
    found = [ahead.waits(tmp_path, "plain", blend, way) for way in ("16 MiB ahead", "no thread")]
    assert found[0].rows == found[1].rows != 0
    assert [len(one.later_ms) for one in found] == [4, 4]
