"""The two doors of a loader: in the process of the test, and from a constructor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from blender.catalog.blends import open_blends
from blender.loading.client import LoadingClient
from blender.loading.embedded import EmbeddedLoading, open_loading
from blender.loading.handle import LoadingHandle
from blender.loading.service import loading_service, served_loader
from blender.loading.spec import LoadingSpec
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from factory.settings import Settings


@pytest.fixture(params=["embedded", "served"])
def open_handle(request: pytest.FixtureRequest, shared_lake: Settings) -> Iterator[Any]:
    """A function from a spec to its handle."""
    servers: list[BlenderServer] = []
    handles: list[EmbeddedLoading] = []

    def open_spec(spec: LoadingSpec, **options: Any) -> LoadingHandle:
        if request.param == "embedded":
            handles.append(open_loading(spec, shared_lake, **options))
            return handles[-1]
        blends = open_blends(shared_lake)
        loader = served_loader(blends.open(spec.blend), spec, **options)
        servers.append(BlenderServer([*blend_services(blends), loading_service(loader, blends)]))
        servers[-1].start()
        return LoadingClient(servers[-1].address, patience_s=0.5).open(spec.id)

    yield open_spec
    for server in servers:
        server.stop(0.5)
    for handle in handles:
        handle.close()
