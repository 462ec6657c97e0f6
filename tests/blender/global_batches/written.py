"""Namespaces with batches, written through the protocol alone."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from blender.global_batches.format.cut import ChunkLayout, cut
from blender.global_batches.format.slices import encode
from blender.global_batches.json_values import Json
from blender.global_batches.log import checkpoints, log, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.log import StoredBatch
from blender.global_batches.log.operations import Put, Routine
from blender.global_batches.log.state import END, Descriptor
from blender.global_batches.namespace import Namespace, create_namespace, open_namespace
from blender.global_batches.store.namespace_store import open_store
from blender.spec.mesh import Mesh
from factory.settings import Settings

Columns = Mapping[str, np.ndarray]
SEQUENCE = {"tokens"}


def small_log(monkeypatch: pytest.MonkeyPatch, checkpoint_versions: int, segment_steps: int) -> None:
    """Give every process of a test short segments, and a log that is trimmed often."""

    def client(namespace: Namespace) -> Client:
        return Client(
            namespace=namespace.id,
            order=namespace.log_order,
            checkpoint_versions=checkpoint_versions,
            segment_steps=segment_steps,
        )

    monkeypatch.setattr(Namespace, "client", client)


def new_namespace(
    folder: Path, mesh: Mesh | None = None, *, lanes: int | None = None, layout: ChunkLayout = "zigzag"
) -> str:
    """The address of a namespace in a folder."""
    create_namespace(str(folder), mesh or Mesh(), lanes=lanes, layout=layout, order="arrival")
    return str(folder)


class Lane:
    """A producer that commits each batch by itself."""

    def __init__(self, uri: str, lane: str = "a", settings: Settings | None = None) -> None:
        self.store = open_store(uri, settings)
        self.namespace = namespace = open_namespace(self.store)
        self.mesh = Mesh(dp=namespace.dp, cp=namespace.cp)
        self.client = namespace.client()
        self.lane = lane
        claim, self.state = self.store.run(log.take(self.client, lane, uuid.uuid4().hex))
        assert claim is not None
        self.claim = claim

    def put(self, *batches: Columns, origin: Json = None) -> None:
        """Store batches and commit them all in one version."""
        first = self.state.lane(self.lane).sequence
        made = []
        for number, columns in enumerate(batches, first):
            batch = encode(cut(columns, self.mesh, sequence=SEQUENCE & columns.keys()), origin)
            name = names.batch(self.lane, self.claim.epoch, number, uuid.uuid4().hex[:8])
            self.store.run(_put(name, batch.body))
            place = Descriptor(
                0, name, len(batch.body), batch.footer_offset, batch.footer_length, batch.footer_hash
            )
            made.append(StoredBatch(number, number + 1, place))
        while self.state.lane(self.lane).sequence < first + len(batches):
            self._attempt(made, closed=False)

    def close(self) -> None:
        """Finish the lane."""
        while not self.state.lane(self.lane).closed:
            self._attempt([], closed=True)

    def _attempt(self, made: list[StoredBatch], closed: bool) -> None:
        self.state = self.store.run(log.attempt(self.client, self.claim, self.state, made, closed))
        self.state = self.store.run(checkpoints.maintain(self.client, self.state))


def end(uri: str) -> None:
    """End the namespace for all lanes."""
    Lane(uri, END).close()


def batch(number: int, rows: int = 4, length: int = 16) -> dict[str, np.ndarray]:
    """Columns that say their batch, row and place."""
    tokens = number * 1_000_000 + np.arange(rows * length, dtype=np.int64).reshape(rows, length)
    return {"ids": number * 1_000 + np.arange(rows, dtype=np.int32), "tokens": tokens}


def _put(name: str, body: bytes) -> Routine[None]:
    yield Put(name, body)
