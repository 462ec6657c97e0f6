"""kill -9 and pauses of producers and trainers on a folder (more: `make test-batches KILLS=50`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.settings import Settings
from tests.blender.global_batches.killed_processes import check_run

pytestmark = pytest.mark.process


def test_every_batch_arrives_once_whoever_is_killed(
    tmp_path: Path, batch_kills: int, batch_seed: int
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    check_run(f"{tmp_path}/run", notes, batch_kills, batch_seed, Settings(home=tmp_path))
