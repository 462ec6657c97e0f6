"""Delete batches before the oldest live checkpoint of all runs, and objects that no version names.

    reclaimed = yield from reclaim(client)
    reclaimed.step, reclaimed.batches, reclaimed.n_bytes, reclaimed.orphans     # 120, 40, 128000000, 3

First the floor rises to the oldest step that an open run holds, then the marks are read again, and only
batches that neither reading holds are deleted (section 5.3 of the paper, without its assumption that a
watermark is never late). Many processes may do so at once, and each may be stopped anywhere.

The LIST only finds garbage: orphans of fenced producers, and names that a late request created again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from blender.global_batches.errors import BatchesGone, DamagedLog, NamespaceDiffers
from blender.global_batches.log import checkpoints, floors, log, marks, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.objects import Floor
from blender.global_batches.log.operations import Routine, delete, get, list_names
from blender.global_batches.log.runs import Runs, runs_to_json
from blender.global_batches.log.state import Descriptor, LogState

_MARKS = 100  # after so many a floor records the runs: nobody reads the chain of marks from its start


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """The batches that a reclaimer has deleted, or would delete."""

    step: int
    """No batch of a step before it is left."""
    batches: int
    n_bytes: int
    """The bytes of these batches."""
    orphans: int
    """Objects of batches that no version of the log names, and none can name any more."""
    live_bytes: int
    """The bytes of all committed batches that are left."""
    runs: Runs
    """The open runs."""


def reclaim(
    client: Client, *, without_runs: bool = False, dry: bool = False, count_orphans: bool = True
) -> Routine[Reclaimed]:
    """Delete the batches before the oldest step that an open run holds, and orphans.

    If no run is open no batch is deleted but orphans, or, `without_runs`, every visible batch. A `dry` call
    deletes nothing, and counts; `count_orphans=False` leaves orphans alone.
    """
    state, floor, runs = yield from _raised(client, without_runs, dry)
    step = max(floor.step, _step(state, runs, without_runs)) if dry else floor.step
    watermark = runs.watermark
    stop = min(step, state.steps, step if watermark is None else watermark)
    dead, are_all_known = yield from _between(client, state, floor.deleted, stop)
    orphans: set[str] = set()
    if count_orphans:
        orphans = (yield from _orphans(client, state, max(floor.deleted, stop))) - {b.name for b in dead}
    n_bytes = sum(batch.n_bytes for batch in dead)
    if not dry:
        yield from delete([*(batch.name for batch in dead), *sorted(orphans)])
        if are_all_known:  # otherwise another reclaimer has come further, and records it
            yield from _record(client, stop, floor.deleted_bytes + n_bytes)
        yield from _delete_segments(client, min(stop, client.floor.deleted))
        yield from checkpoints.trim(client, state.version - state.version % client.checkpoint_versions)
    live_bytes = state.n_bytes - floor.deleted_bytes - n_bytes
    return Reclaimed(stop, len(dead), n_bytes, len(orphans), live_bytes, runs)


def _raised(client: Client, without_runs: bool, dry: bool) -> Routine[tuple[LogState, Floor, Runs]]:
    """The newest state, the floor at the step that runs hold, and the runs, read after that floor."""
    while True:
        state = yield from log.load(client)
        yield from floors.current(client)
        runs = yield from marks.current(client)
        floor = client.floor
        step = _step(state, runs, without_runs)
        if dry or (step <= floor.step and runs.marks < floor.marks + _MARKS):
            return state, floor, runs
        higher = replace(floor, step=max(step, floor.step), marks=runs.marks, runs=runs_to_json(runs))
        if (yield from floors.append(client, higher)):
            floor = yield from floors.current(client)
            return state, floor, (yield from marks.current(client))


def _step(state: LogState, runs: Runs, without_runs: bool) -> int:
    """The step before which nobody asks for a batch."""
    watermark = runs.watermark
    if watermark is None:
        return state.steps if without_runs else 0
    return min(watermark, state.steps)


def _between(
    client: Client, state: LogState, first: int, stop: int
) -> Routine[tuple[list[Descriptor], bool]]:
    """The batches of the steps from `first` to before `stop`, and whether no segment of them is deleted."""
    batches: list[Descriptor] = []
    are_all_known = True
    in_segments = len(state.segments) * client.segment_steps
    for step in range(first - first % client.segment_steps, min(stop, in_segments), client.segment_steps):
        try:
            batches += yield from checkpoints.read_segment(client, state, step)
        except BatchesGone:  # by another reclaimer
            yield from _require_unheld(client, step)
            are_all_known = False
    batches += state.tail[: max(0, stop - in_segments)]
    return [batch for batch in batches if first <= batch.step < stop], are_all_known


def _require_unheld(client: Client, first: int) -> Routine[None]:
    """Raise DamagedLog if a run that knows its batches to be there holds a step of a missing segment."""
    runs = yield from marks.current(client)
    last = first + client.segment_steps - 1
    if any(run.is_accepted and run.oldest_step <= last for run in runs.open.values()):
        raise DamagedLog(
            f"{checkpoints.segment_name(client, first)} is missing. Restore it from a copy of the namespace."
        )


def _orphans(client: Client, state: LogState, first: int) -> Routine[set[str]]:
    """The listed objects that no step from `first` on has, or can have; none if such steps are not known."""
    live_names = yield from _live_names(client, state, first)
    batches = yield from list_names(names.BATCHES)
    yield from _require_own_namespace(client)
    if live_names is None:
        return set()
    loose = {
        name: parts for name in batches if (parts := names.listed_batch(name)) and name not in live_names
    }
    lanes = {lane for lane, _, _ in loose.values()} - state.lanes.keys()
    if lanes and state.finished_lanes:
        state = yield from _with_finished_lanes(client, state, lanes)
        live_names = yield from _live_names(client, state, first)
    return {
        name
        for name, parts in loose.items()
        if live_names is not None and name not in live_names and _is_garbage(state, *parts)
    }


def _live_names(client: Client, state: LogState, first: int) -> Routine[set[str] | None]:
    """The names of the batches from a step on; None if such steps are not known."""
    live, are_all_known = yield from _between(client, state, first, state.steps)
    return {batch.name for batch in (*live, *state.waiting)} if are_all_known else None


def _with_finished_lanes(client: Client, state: LogState, lanes: set[str]) -> Routine[LogState]:
    """A later state, in which the process knows some lanes that have left it.

    They may have been opened and finished after the state, so it is read again behind their end.
    """
    for lane in sorted(lanes):
        state = yield from checkpoints.recall(client, state, lane)
    newer = yield from log.advance(client, state)
    return replace(newer, recalled_lanes={**newer.recalled_lanes, **state.recalled_lanes})


def _is_garbage(state: LogState, lane: str, epoch: int, sequence: int) -> bool:
    """Whether a batch that was listed after the state, and is not in it, can be of no visible step, ever.

    A producer commits a batch under the epoch of its claim, in the order of the sequence.
    """
    progress = state.lane(lane)
    is_past = progress.closed or sequence < progress.sequence
    return state.is_ended or epoch < progress.epoch or (epoch == progress.epoch and is_past)


def _delete_segments(client: Client, stop: int) -> Routine[None]:
    """Delete the segments of deleted batches, which are recorded: their descriptors are not needed again."""
    segments = yield from list_names(names.SEGMENTS)
    yield from _require_own_namespace(client)
    lasts = {name: names.last_of_segment(name) for name in segments}
    yield from delete(name for name, last in lasts.items() if last is not None and last < stop)


def _require_own_namespace(client: Client) -> Routine[None]:
    """Raise NamespaceDiffers if listed objects may belong to a namespace that was created here since."""
    if client.namespace is None:
        return
    body = yield from get(names.NAMESPACE)
    if body is None or client.namespace.encode() not in body:
        raise NamespaceDiffers(
            "The namespace was deleted, or created anew, while it was reclaimed. Nothing of the new one was "
            "deleted; reclaim that."
        )


def _record(client: Client, stop: int, n_bytes: int) -> Routine[None]:
    """Record that the batches before a step, of so many bytes, are deleted; nobody deletes them again."""
    floor = yield from floors.current(client)
    while floor.deleted < stop:
        yield from floors.append(client, replace(floor, deleted=stop, deleted_bytes=n_bytes))
        floor = yield from floors.current(client)
