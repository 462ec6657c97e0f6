"""Workers killed at random instants on a lake in a bucket. `make test-crash POINTS=20 SEED=7` kills more."""

from __future__ import annotations

import random
from pathlib import Path
from urllib.parse import urlparse

import pytest

from tests.engines.processes import ObjectStore
from tests.engines.test_object_store import on_store
from tests.synthesis.kills import Scene


@pytest.mark.process
@pytest.mark.timeout(3_600)
def test_workers_killed_at_random_instants_change_no_row_in_a_bucket(
    object_store: ObjectStore, unique: str, tmp_path: Path, kill_points: int, kill_seed: int
) -> None:
    bucket = urlparse(object_store.bucket(unique)).netloc
    scene = Scene.create(on_store(object_store, tmp_path / "lake", bucket), tmp_path)
    draw = random.Random(kill_seed)
    for point in range(kill_points):
        scene.require_answer_after_kill(point, draw)
