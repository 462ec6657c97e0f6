"""The log of a namespace: a commit is the creation of the next version.

    state = yield from load(client)                              # the newest state
    claim, state = yield from take(client, "rollouts-0", me)     # this process holds the lane
    state = yield from commit(client, claim, state, progress, batches)
    state = yield from advance(client, state)                    # what others committed since

The paper's protocol (sections 4.3 and 5.1) with what it leaves open: lanes change hands by epochs, every
unclear answer is read back, and every state is confirmed by the floor. Here a version holds what it adds, not
the whole manifest, so that the time in which commits collide does not grow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from blender.global_batches import checkpoints, floors, names
from blender.global_batches.client import Client
from blender.global_batches.errors import DamagedLog, Fenced
from blender.global_batches.operations import Routine, Verdict, create, get_all
from blender.global_batches.records import delta_from_bytes, delta_to_bytes
from blender.global_batches.state import Delta, Descriptor, GapInLog, Lane, LogState, numbered

_AT_ONCE = 16  # versions that a walk asks for at once after the first


@dataclass(frozen=True, slots=True)
class Claim:
    """The hold of a process on a lane, until another process takes it over."""

    lane: str
    epoch: int
    incarnation: str


def load(client: Client) -> Routine[LogState]:
    """The newest state: the newest checkpoint and the versions after it."""
    missing = None
    while True:
        floor = yield from floors.current(client)
        state = yield from checkpoints.newest(client, floor.version)
        if state is not None:
            newer = yield from _walk(client, state)
            if newer is not None:
                return newer
        elif missing == floor:
            raise DamagedLog(
                f"{names.checkpoint(floor.version)} is missing, and the versions before it are deleted. "
                "Restore it from a copy of the namespace."
            )
        else:
            missing = floor  # or the floor was raised, and the checkpoint deleted, after the floor was read


def advance(client: Client, state: LogState) -> Routine[LogState]:
    """The newest state, from an earlier one."""
    newer = yield from _walk(client, state)
    return newer if newer is not None else (yield from load(client))


def take(client: Client, lane: str, incarnation: str) -> Routine[tuple[Claim | None, LogState]]:
    """Take a lane over from the process that holds it, which can commit no more; no claim if it is closed.

    The state says where to go on. Raises Fenced if another process takes the lane at the same time and wins.
    """
    state = yield from load(client)
    while True:
        before = state.lane(lane)
        if before.closed:
            return None, state
        claim = Claim(lane, before.epoch + 1, incarnation)
        progress = replace(before, epoch=claim.epoch, incarnation=incarnation)
        won, state = yield from _attempt(client, state, claim, progress, ())
        if won or state.lane(lane) == progress:
            return claim, state
        if state.lane(lane).epoch > before.epoch:
            raise _fenced(claim, state)
        # Otherwise the process before came further: what it committed since belongs into the claim.


def commit(
    client: Client, claim: Claim, state: LogState, progress: Lane, batches: tuple[Descriptor, ...]
) -> Routine[LogState]:
    """Add batches to the log and the progress that the lane has made with them, both or nothing.

    Returns a state that holds them. Raises Fenced, with nothing added, if another process has the lane.
    """
    while True:
        won, state = yield from _attempt(client, state, claim, progress, batches)
        if won or _is_committed(claim, state, progress):
            return state


def _attempt(
    client: Client, state: LogState, claim: Claim, progress: Lane, batches: tuple[Descriptor, ...]
) -> Routine[tuple[bool, LogState]]:
    """Try to create the next version once; whether it is ours and counts, and the newest state."""
    delta = Delta(state.version + 1, state.steps, claim.lane, progress, numbered(batches, state.steps))
    verdict = yield from create(names.log(delta.version), delta_to_bytes(delta))
    if verdict is not Verdict.OURS:
        return False, (yield from advance(client, state))
    floor = yield from floors.current(client)
    if delta.version <= floor.version:  # the name was deleted and taken again, or is ours from long ago
        return False, (yield from load(client))
    return True, state.after(delta)


def _walk(client: Client, state: LogState) -> Routine[LogState | None]:
    """The state after the versions that follow; None if the floor rose above the state meanwhile.

    Then a version may have been read that was created under a deleted name. The floor is compared with the
    start of the walk, not its end, and also if there is no next version: it may be deleted.
    """
    deltas: list[Delta] = []
    at_once = 1
    while True:
        first = state.version + 1 + len(deltas)
        versions = [names.log(version) for version in range(first, first + at_once)]
        bodies = yield from get_all(versions)
        for name, body in zip(versions, bodies, strict=True):
            if body is None:
                break
            deltas.append(delta_from_bytes(body, name))
        else:
            at_once = _AT_ONCE
            continue
        break
    floor = yield from floors.current(client)
    if floor.version > state.version:
        return None
    try:
        return state.after(*deltas)
    except GapInLog as error:
        raise DamagedLog(f"The log is damaged: {error}. Restore it from a copy of the namespace.") from error


def _is_committed(claim: Claim, state: LogState, progress: Lane) -> bool:
    lane = state.lane(claim.lane)
    if (lane.epoch, lane.incarnation) != (claim.epoch, claim.incarnation):
        raise _fenced(claim, state)
    return lane == progress


def _fenced(claim: Claim, state: LogState) -> Fenced:
    lane = state.lane(claim.lane)
    return Fenced(
        f"Process {lane.incarnation} has taken lane `{claim.lane}` over (epoch {lane.epoch}, after "
        f"{lane.sequence:,} batches), and this one, {claim.incarnation}, can commit no more. Let one process "
        "write a lane; the batches that were not committed come again from the other."
    )
