"""Workers killed at random instants on a lake in a folder. `make test-crash POINTS=20 SEED=7` kills more."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from factory.settings import Settings
from tests.synthesis.kills import Scene


@pytest.mark.process
@pytest.mark.timeout(3_600)
def test_workers_killed_at_random_instants_change_no_row(
    tmp_path: Path, kill_points: int, kill_seed: int
) -> None:
    scene = Scene.create(Settings(home=tmp_path / "lake"), tmp_path)
    draw = random.Random(kill_seed)
    for point in range(kill_points):
        scene.require_answer_after_kill(point, draw)
