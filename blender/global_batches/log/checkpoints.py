"""Checkpoints of the log, and the end of the versions behind them.

A checkpoint is a pure function of the log up to its version, so a checkpoint by any writer is right. Safety
does not need it until a floor names it; before that it is read back.
"""

from __future__ import annotations

from dataclasses import replace

from blender.global_batches.errors import DamagedLog, NamespaceDiffers
from blender.global_batches.log import floors, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.objects import (
    checkpoint_from_bytes,
    checkpoint_to_bytes,
    finished_lane_from_bytes,
    finished_lane_to_bytes,
    segment_from_bytes,
    segment_to_bytes,
)
from blender.global_batches.log.operations import Routine, delete, ensure, get, list_names
from blender.global_batches.log.state import Descriptor, LogState, content_of


def maintain(client: Client, state: LogState) -> Routine[LogState]:
    """Write the checkpoint that is due after a commit, and trim the log behind the one before it.

    Called by the process that committed the version. If it dies first, readers walk further, and the next
    checkpoint is written by another.
    """
    if state.version % client.checkpoint_versions:
        return state
    state = yield from write(client, state)
    yield from trim(client, state.version - client.checkpoint_versions)
    return state


def write(client: Client, state: LogState) -> Routine[LogState]:
    """Write the full segments of a state and its checkpoint; the state with these segments.

    Where lanes come and go, the finished ones leave the state, and each is written before.
    """
    first = len(state.segments) * client.segment_steps
    for batches in state.full_segments(client.segment_steps):
        yield from ensure(segment_name(client, first), segment_to_bytes(batches))
        first += client.segment_steps
    state = state.without_full_segments(client.segment_steps)
    if client.order.lanes is None:
        shorter = state.without_finished_lanes()
        for lane in sorted(state.lanes.keys() - shorter.lanes.keys()):
            body = finished_lane_to_bytes(lane, state.lanes[lane], client.namespace)
            yield from ensure(names.finished_lane(lane), body)
        state = shorter
    yield from ensure(names.checkpoint(state.version), checkpoint_to_bytes(state))
    return state


def read(version: int) -> Routine[LogState | None]:
    """The state of a checkpoint; None if there is no checkpoint of the version."""
    if version == 0:
        return LogState()
    name = names.checkpoint(version)
    body = yield from get(name)
    state = None if body is None else checkpoint_from_bytes(body, name)
    if state is not None and state.version != version:
        raise DamagedLog(
            f"{name} holds the state after version {state.version:,}. Restore the right one from a copy."
        )
    return state


def newest(client: Client, version: int) -> Routine[LogState | None]:
    """The newest of the checkpoints that follow each other from a version on; None without the first."""
    state = yield from read(version)
    while state is not None:
        later = yield from read(state.version + client.checkpoint_versions)
        if later is None:
            break
        state = later
    return state


def read_segment(client: Client, state: LogState, step: int) -> Routine[tuple[Descriptor, ...]]:
    """The batches of the segment that holds a step.

    Raises BatchesGone if it was reclaimed, and DamagedLog unless it is the one of the state.
    """
    index = step // client.segment_steps
    name = segment_name(client, index * client.segment_steps)
    body = yield from get(name)
    if body is None:
        yield from floors.require_kept(client, (index + 1) * client.segment_steps - 1)
        raise DamagedLog(f"{name} is missing. Restore it from a copy of the namespace.")
    batches = segment_from_bytes(body, name)
    if content_of(batches) != state.segments[index]:
        raise DamagedLog(f"{name} holds other batches than the log. Restore it from a copy of the namespace.")
    return batches


def recall(client: Client, state: LogState, lane: str) -> Routine[LogState]:
    """The state with a finished lane that has left it; unchanged for any other lane.

    The lane was written before the checkpoint that it is missing from. Raises NamespaceDiffers if that was
    for a namespace that was deleted.
    """
    if not state.finished_lanes or lane in state.lanes or lane in state.recalled_lanes:
        return state
    name = names.finished_lane(lane)
    body = yield from get(name)
    if body is None:
        return state
    progress, namespace = finished_lane_from_bytes(body, name)
    if client.namespace not in (None, namespace):
        raise NamespaceDiffers(
            f"{name} was written for a namespace that was deleted, by a process that still ran when this one "
            "was created at its address. End that process, and create a namespace at an address of its own."
        )
    return replace(state, recalled_lanes={**state.recalled_lanes, lane: progress})


def trim(client: Client, version: int) -> Routine[None]:
    """Raise the floor to the checkpoint of a version, if there is one, and delete the names below the floor.

    The list only finds garbage, including the names of a process that died here, or that slept and created a
    name below the floor. The next process finds names that the list misses.
    """
    if version <= 0 or (yield from read(version)) is None:
        return  # whoever was to write it died
    floor = yield from floors.raise_to(client, version)
    for prefix, last in ((names.LOG, floor.version), (names.CHECKPOINTS, floor.version - 1)):
        numbers = {name: names.number(name) for name in (yield from list_names(prefix))}
        yield from delete(name for name, number in numbers.items() if number is not None and number <= last)


def segment_name(client: Client, first: int) -> str:
    """The name of the segment that begins with step `first`."""
    return names.segment(first, first + client.segment_steps - 1)
