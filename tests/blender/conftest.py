"""A small lake for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from blender.catalog.blends import Blends, open_blends
from factory.settings import Settings
from tests.blender.lakes import make_lake


@pytest.fixture
def lake(tmp_path: Path) -> Settings:
    """A lake with `packed.code` (40 rows) and `packed.prose` (300 rows)."""
    return make_lake(tmp_path / "lake", code=40, prose=300)


@pytest.fixture
def blends(lake: Settings) -> Blends:
    """The blends of `lake`."""
    return open_blends(lake)
