"""A small lake, and a server of its blends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from blender.catalog.blends import Blends, open_blends
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.trainer.client import BlenderClient
from factory.settings import Settings
from tests.blender.lakes import make_lake


@pytest.fixture
def lake(tmp_path: Path) -> Settings:
    """A lake with `packed.code` (40 rows) and `packed.prose` (300 rows)."""
    return make_lake(tmp_path / "lake", code=40, prose=300)


@pytest.fixture(scope="module")
def shared_lake(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A lake with the rows of `lake`, for all tests of a module."""
    return make_lake(tmp_path_factory.mktemp("lake"), code=40, prose=300)


@pytest.fixture
def blends(lake: Settings) -> Blends:
    """The blends of `lake`."""
    return open_blends(lake)


@pytest.fixture
def server(blends: Blends) -> Iterator[BlenderServer]:
    """A server of `blends`."""
    with BlenderServer(blend_services(blends)) as running:
        yield running


@pytest.fixture
def client(server: BlenderServer) -> Iterator[BlenderClient]:
    """A client of `server`."""
    with BlenderClient(server.address) as connected:
        yield connected
