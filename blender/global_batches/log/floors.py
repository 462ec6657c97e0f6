"""The floor: log names up to its version, and batches before its step, may be gone; no name is used again.

A producer that slept can recreate a deleted number: the create succeeds, and nobody reads its version.
(Section 5.1 of the paper rules this out; it happens once versions are deleted.) So the floor rises before
anything is deleted, and a process reads the floor after each version that it creates.
"""

from __future__ import annotations

from dataclasses import replace

from blender.global_batches.errors import BatchesGone
from blender.global_batches.log import chain, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.objects import Floor, floor_from_bytes, floor_to_bytes
from blender.global_batches.log.operations import Routine, Verdict, create


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
        yield from append(client, replace(floor, version=version))


def append(client: Client, floor: Floor) -> Routine[bool]:
    """Create the next floor; False if it would fall, or another process has created that record."""
    last = client.floor
    if floor.version < last.version or floor.step < last.step or floor.deleted < last.deleted:
        return False  # it was made from an earlier one
    verdict = yield from create(names.floor(client.floor_index + 1), floor_to_bytes(floor))
    return verdict is Verdict.OURS


def require_kept(client: Client, step: int) -> Routine[None]:
    """Raise BatchesGone if the batch of a step may have been reclaimed."""
    floor = yield from current(client)
    if step < floor.step:
        raise BatchesGone(
            f"The batch of step {step:,} was reclaimed: no open run held the batches before step "
            f"{floor.step:,}. Begin at that step or later, or at a checkpoint that an open run holds."
        )
