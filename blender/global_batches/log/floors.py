"""The floor: names of the log up to its version may be gone, and are never used again.

A producer that slept can recreate a deleted number: the create succeeds, and nobody reads its version.
(Section 5.1 of the paper rules this out; it happens once versions are deleted.) So the floor rises before
anything is deleted, and a process reads the floor after each version that it creates.
"""

from __future__ import annotations

from dataclasses import replace

from blender.global_batches.log import chain, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.objects import Floor, floor_from_bytes, floor_to_bytes
from blender.global_batches.log.operations import Routine, create


def current(client: Client) -> Routine[Floor]:
    """The newest floor: at least as high as any that was there when the routine began."""
    index, body = yield from chain.head(names.floor, client.floor_index)
    if body is not None:
        client.floor = floor_from_bytes(body, names.floor(index))
        client.floor_index = index
    return client.floor


def raise_to(client: Client, version: int) -> Routine[Floor]:
    """Raise the floor to a version, unless it is higher; the checkpoint of that version must be there."""
    while True:
        floor = yield from current(client)
        if floor.version >= version:
            return floor
        raised = floor_to_bytes(replace(floor, version=version))
        yield from create(names.floor(client.floor_index + 1), raised)
