"""A namespace: the properties that all its writers and readers share, written once.

create_namespace("s3://bucket/run7", Mesh(dp=32, cp=2), lanes=8)     # lane i mod 8 writes step i
store = open_store("s3://bucket/run7")
open_namespace(store)                           # Namespace(id="0c5e...", dp=32, cp=2, lanes=8, ...)
"""

from __future__ import annotations

import json
import os
import time
import uuid
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from blender.errors import InvalidRequest
from blender.global_batches.errors import DamagedLog, NamespaceDiffers, NamespaceNotFound
from blender.global_batches.format.cut import ChunkLayout
from blender.global_batches.json_values import compact_json
from blender.global_batches.log import names
from blender.global_batches.log.client import Client
from blender.global_batches.log.operations import ensure, get
from blender.global_batches.log.step_order import Arrival, Assigned
from blender.global_batches.store.namespace_store import PATIENCE_S, NamespaceStore, open_store
from blender.global_batches.store.probe import StoreFacts, probe
from blender.rows.checksummed_json import verified_content, with_checksum
from blender.spec.mesh import Mesh
from blender.spec.whole_number import whole_number
from factory.counted import counted
from factory.errors import ConfigurationError
from factory.settings import Settings

FORMAT = 1

MOST_LANES = 10_000  # each is a process or a thread that commits, and a line for whoever looks

OrderName = Literal["arrival", "assigned"]
"""How steps are numbered: `blender.global_batches.log.step_order`."""


@dataclass(frozen=True)
class Namespace:
    """What every batch of a namespace has in common, and what its store was measured to do."""

    id: str
    """Random: namespaces of equal meshes, one after the other at one address, differ."""
    dp: int
    cp: int
    layout: ChunkLayout
    lanes: int | None
    """The number of lanes, after whose closing the data end; None lets them come and go."""
    order: OrderName
    store: StoreFacts
    created_at: float
    """Seconds since 1970, by the clock of its creator; for people."""

    @property
    def mesh(self) -> Mesh:
        """The mesh of the ranks that read the batches."""
        return Mesh(dp=self.dp, cp=self.cp)

    @property
    def chunks(self) -> int:
        """The parts of a sequence in a batch."""
        return 1 if self.cp == 1 else 2 * self.cp

    def client(self) -> Client:
        """The log as known to a process that has read nothing yet."""
        return Client(namespace=self.id, order=self.log_order)

    def step_of(self, lane: str, sequence: int) -> int:
        """The step of a batch of a lane in assigned order. Raises InvalidRequest in arrival order."""
        if not isinstance(order := self.log_order, Assigned):
            raise InvalidRequest(
                "In arrival order a batch gets its step when it is committed. Number the batches by their "
                "lane and `sequence`, or create a namespace of assigned order."
            )
        return order.step(lane, sequence)

    @property
    def log_order(self) -> Arrival | Assigned:
        """The order as the log applies it."""
        if self.order == "assigned" and self.lanes is not None:
            return Assigned(self.lanes)
        return Arrival(self.lanes)

    def require_mesh(self, mesh: Mesh) -> None:
        """Raise NamespaceDiffers unless batches are made for a mesh."""
        if (mesh.dp, mesh.cp) != (self.dp, self.cp):
            raise NamespaceDiffers(
                f"The batches are made for dp={self.dp},cp={self.cp}, and the mesh is {mesh}. Give that mesh "
                "(tp and pp are free), or create a namespace for this one at another address."
            )


def create_namespace(
    uri: str | os.PathLike[str],
    mesh: Mesh,
    *,
    layout: ChunkLayout = "zigzag",
    lanes: int | None = None,
    order: OrderName = "assigned",
    settings: Settings | None = None,
    patience_s: float = PATIENCE_S,
) -> Namespace:
    """Create the namespace at an address, after a probe of its store; one that is there and equal is kept.

    In assigned order the lanes, by default one, are named by the numbers from 0 on: lane i mod `lanes` writes
    step i, and the data end at the first step of a finished lane. In arrival order they have any
    names. With `lanes`, that many may be opened, and the data end when all of them are finished; without,
    lanes come and go, and the data end by `end_namespace`. Tensor and pipeline parallel ranks read what their
    peers read, so only dp and cp of the mesh count. Raises NamespaceDiffers if another one is there, and
    UnsafeStore if the store lets two processes create a name, or hides one from a process that reads it.
    """
    if layout not in get_args(ChunkLayout):
        raise ConfigurationError(f"`{layout}` is not a layout of chunks. Use zigzag or contiguous.")
    if order not in get_args(OrderName):
        raise ConfigurationError(f"`{order}` is not an order of steps. Use arrival or assigned.")
    if lanes is not None:
        lanes = whole_number(lanes, "lanes", least=1, most=MOST_LANES)
    elif order == "assigned":
        lanes = 1
    store = open_store(uri, settings, patience_s=patience_s)
    if store.run(get(names.NAMESPACE)) is None:
        namespace = Namespace(
            uuid.uuid4().hex, mesh.dp, mesh.cp, layout, lanes, order, probe(store), time.time()
        )
        store.run(ensure(names.NAMESPACE, _to_bytes(namespace)))
    namespace = open_namespace(store)
    namespace.require_mesh(mesh)
    for requested, stored in (
        (f"{layout} layout", f"{namespace.layout} layout"),
        (f"{order} order", f"{namespace.order} order"),
        (lanes_in_words(lanes), lanes_in_words(namespace.lanes)),
    ):
        if requested != stored:
            raise NamespaceDiffers(
                f"{store.uri} holds a namespace with {stored}, and one with {requested} was asked for. "
                "Create that at another address, or use the one that is there."
            )
    return namespace


def lanes_in_words(lanes: int | None) -> str:
    """The lanes of a namespace in a sentence: `1 lane`, `4 lanes`, `lanes that come and go`."""
    return "lanes that come and go" if lanes is None else counted(lanes, "lane")


def open_namespace(store: NamespaceStore) -> Namespace:
    """The namespace of a store; raises NamespaceNotFound, or NamespaceDiffers if a newer version made it."""
    body = store.run(get(names.NAMESPACE))
    if body is None:
        raise NamespaceNotFound(
            f"There is no namespace at {store.uri}. Create it: `factory batches create`, or "
            "`create_namespace`."
        )
    try:
        content = json.loads(verified_content(body))
        if content["format"] <= FORMAT:
            return _from_content(content)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedLog(
            f"{names.NAMESPACE} of {store.uri} is damaged ({error}). Restore it from a copy."
        ) from error
    raise NamespaceDiffers(
        f"The namespace at {store.uri} has format {content['format']}, and this version reads formats up to "
        f"{FORMAT}. Upgrade to the version that made it."
    )


def require_unchanged(store: NamespaceStore, namespace: Namespace) -> None:
    """Raise NamespaceNotFound or NamespaceDiffers if the namespace has been deleted or recreated since."""
    if open_namespace(store).id != namespace.id:
        raise NamespaceDiffers(
            f"The namespace at {store.uri} was deleted and created anew while this process used it. "
            "Create the new one at an address of its own, and start this process again."
        )


def _to_bytes(namespace: Namespace) -> bytes:
    content = {"format": FORMAT} | asdict(namespace)
    return with_checksum(compact_json(content))


def _from_content(content: dict[str, Any]) -> Namespace:
    return Namespace(
        id=content["id"],
        dp=content["dp"],
        cp=content["cp"],
        layout=content["layout"],
        lanes=content["lanes"],
        order=content["order"],
        store=StoreFacts.from_json(content["store"]),
        created_at=content["created_at"],
    )
