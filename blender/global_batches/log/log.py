"""The log of a namespace: a commit is the creation of the next version.

    state = yield from load(client)                              # the newest state
    claim, state = yield from take(client, "rollouts-0", me)     # this process holds the lane
    state = yield from attempt(client, claim, state, stored)     # with its stored batches
    state = yield from advance(client, state)                    # the commits of others since

The paper's protocol (sections 4.3 and 5.1) with its open points settled: lanes change hands by epochs, every
unclear answer is read back, and the floor confirms every state. A version holds its additions instead of the
entire manifest, so that the time in which commits collide does not grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blender.global_batches.errors import DamagedLog, Fenced, NamespaceDiffers, NamespaceEnded, UnsafeStore
from blender.global_batches.json_values import Json
from blender.global_batches.log import checkpoints, floors, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.objects import delta_from_bytes, delta_to_bytes
from blender.global_batches.log.operations import Routine, Verdict, create, get, get_all, list_names
from blender.global_batches.log.state import (
    Delta,
    Descriptor,
    GapInLog,
    Lane,
    LogState,
    numbered,
)

_AT_ONCE = 16  # versions that a walk asks for at once after the first


@dataclass(frozen=True, slots=True)
class Claim:
    """The hold of a process on a lane, until another process takes it over."""

    lane: str
    epoch: int
    incarnation: str


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch that a process has stored for its lane, and has not seen in the log."""

    sequence: int
    """Its number in the lane."""
    offset: Json
    """Where the producer goes on after it."""
    descriptor: Descriptor


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
    """The newest state, from an earlier one.

    A tail longer than two segments is read again from the checkpoint that archived them, and so are many
    finished lanes; if checkpoints are missing, the state is read again at twice its length.
    """
    newer = yield from _walk(client, state)
    if newer is None:
        return (yield from load(client))
    if client.is_long(newer):
        newer = yield from load(client)
        client.note_size(newer)
    return newer


def require_whole(client: Client, state: LogState) -> Routine[None]:
    """Raise DamagedLog if the version after the newest state is missing, and later ones are there.

    A log that lost a version looks as one that ends before it, and a create would fill the gap.
    """
    listed = yield from list_names(names.LOG)
    last = max((names.number(name) or 0 for name in listed), default=0)
    if last <= state.version + 1:
        return
    newer = yield from _walk(client, state)
    if newer is not None and newer.version == state.version:
        raise DamagedLog(
            f"{names.log(state.version + 1)} is missing, and {names.log(last)} is there. Restore it from a "
            "copy of the namespace."
        )


def require_read_after_write(client: Client, state: LogState) -> Routine[None]:
    """Raise UnsafeStore if the newest version, which this process has created or read, is not to be found.

    It was missing a moment before its create, so a store that keeps such answers shows itself here.
    """
    if (yield from get(names.log(state.version))) is not None:
        return
    floor = yield from floors.current(client)
    if floor.version < state.version:
        raise UnsafeStore(
            f"The store does not show {names.log(state.version)}, which was there before. Batches would be "
            "lost without a word: take a store that reads after write, with no cache in front of it."
        )


def take(
    client: Client, lane: str, incarnation: str, report: Json = None
) -> Routine[tuple[Claim | None, LogState]]:
    """Take a lane over from the process that holds it, which can commit no more; no claim if it is closed.

    The state says where to go on. Raises Fenced if another process takes the lane at the same time and wins,
    and NamespaceDiffers if the namespace has no such lane.
    """
    state = yield from load(client)
    yield from require_whole(client, state)
    while True:
        state = yield from checkpoints.recall(client, state, lane)
        before = state.lane(lane)
        if before.closed:
            return None, state
        client.order.require_lane(state, lane)
        claim = Claim(lane, before.epoch + 1, incarnation)
        progress = replace(before, epoch=claim.epoch, incarnation=incarnation, report=report)
        state = yield from _append(client, state, lane, progress, ())
        after = state.lane(lane)
        if (after.epoch, after.incarnation) == (claim.epoch, incarnation):
            return claim, state
        if after.epoch > before.epoch:
            raise _fenced(claim, state)
        # Otherwise the process before came further: what it committed since belongs to the claim.


def attempt(
    client: Client,
    claim: Claim,
    state: LogState,
    stored: Sequence[StoredBatch],
    closed: bool = False,
    report: Json = None,
) -> Routine[LogState]:
    """Try once to add the missing batches of `stored` to the log, and to close the lane; the newest state.

    Its lane tells the committed batches: up to its `sequence`, by this attempt or by an earlier one with a
    lost answer. Raises Fenced, with nothing added, if another process has the lane, and UnevenLanes if
    the lanes of assigned order do not end with the same step.

    It looks for newer versions first: a create after a state that is old by the gap between two attempts
    would lose to a commit in that gap.
    """
    state = yield from _caught_up(client, state)
    state = yield from checkpoints.recall(client, state, claim.lane)
    lane = _claimed_lane(claim, state)
    missing = [batch for batch in stored if batch.sequence >= lane.sequence]
    if not missing and lane.closed == closed:
        return state
    progress = replace(
        lane,
        sequence=lane.sequence + len(missing),
        offset=missing[-1].offset if missing else lane.offset,
        closed=closed,
        report=report,
    )
    client.order.require_one_end(state, claim.lane, progress)
    state = yield from _append(client, state, claim.lane, progress, [batch.descriptor for batch in missing])
    state = yield from checkpoints.recall(client, state, claim.lane)
    _claimed_lane(claim, state)
    return state


def _append(
    client: Client, state: LogState, lane: str, progress: Lane, batches: Sequence[Descriptor]
) -> Routine[LogState]:
    """Create the next version, unless another process does; the newest state, with or without it."""
    if state.is_ended:
        raise NamespaceEnded("The namespace was ended and takes no more batches. Create another one.")
    steps = client.order.steps(state, lane, len(batches))
    delta = Delta(state.version + 1, state.steps, lane, progress, numbered(batches, steps), client.namespace)
    verdict = yield from create(names.log(delta.version), delta_to_bytes(delta))
    if verdict is not Verdict.OURS:
        return (yield from advance(client, state))
    floor = yield from floors.current(client)
    if delta.version <= floor.version:  # the name was deleted and taken again, or is ours from long ago
        return (yield from load(client))
    return _after(state, (delta,))


def _caught_up(client: Client, state: LogState) -> Routine[LogState]:
    """The newest state, by one read if it is the state. What nobody follows needs no floor to confirm it."""
    following = yield from get(names.log(state.version + 1))
    return state if following is None else (yield from advance(client, state))


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
            delta = delta_from_bytes(body, name)
            if client.namespace not in (None, delta.namespace):
                raise NamespaceDiffers(
                    f"{name} was written for a namespace that was deleted, by a process that still ran when "
                    "this one was created at its address. End that process, and create a namespace at an "
                    "address of its own."
                )
            deltas.append(delta)
        else:
            at_once = _AT_ONCE
            continue
        break
    floor = yield from floors.current(client)
    if floor.version > state.version:
        return None
    return _after(state, deltas)


def _after(state: LogState, deltas: Sequence[Delta]) -> LogState:
    try:
        return state.after(*deltas)
    except GapInLog as error:
        raise DamagedLog(f"The log is damaged: {error}. Restore it from a copy of the namespace.") from error


def _claimed_lane(claim: Claim, state: LogState) -> Lane:
    """The lane of a claim; raises Fenced if another process has it."""
    lane = state.lane(claim.lane)
    if (lane.epoch, lane.incarnation) != (claim.epoch, claim.incarnation):
        raise _fenced(claim, state)
    return lane


def _fenced(claim: Claim, state: LogState) -> Fenced:
    lane = state.lane(claim.lane)
    return Fenced(
        f"Process {lane.incarnation} has taken lane `{claim.lane}` over (epoch {lane.epoch}, after "
        f"{lane.sequence:,} batches), and this one, {claim.incarnation}, can commit no more. Let one process "
        "write a lane; the batches that were not committed come again from the other."
    )
