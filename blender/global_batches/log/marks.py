"""The marks of training runs: a run is opened, moves its marks with its checkpoints, and is closed.

    run = yield from open_run(client, "a", me, start=0)         # from here on its batches are kept
    yield from hold(client, "a", me, {"ckpt-120": 120})
    yield from close(client, "a", me)

To open a run is to take it over: the mark names a new owner and inherits the live checkpoints, so that a
process that was replaced holds nothing more. A new run reads the floor after its first mark and marks once
more if its batches are there; a reclaimer reads the marks after its floor. So one of the two sees the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blender.global_batches.errors import BatchesGone, CheckpointDropped, NamespaceDiffers, RunTaken
from blender.global_batches.log import floors, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.operations import Routine, Verdict, create, get_all
from blender.global_batches.log.runs import (
    START,
    Mark,
    Run,
    Runs,
    mark_from_bytes,
    mark_to_bytes,
    runs_from_json,
)

_AT_ONCE = 16  # marks that are asked for at once after the first


def current(client: Client) -> Routine[Runs]:
    """The open runs: at least all marks that were there when the routine began.

    A floor records the runs after a number of marks, so that nobody reads the chain from its start.
    """
    if not client.runs.marks:
        yield from floors.current(client)
    if client.runs.marks < client.floor.marks:
        client.runs = runs_from_json(client.floor.marks, client.floor.runs)
    at_once = 1
    while True:
        first = client.runs.marks + 1
        indexes = [names.mark(index) for index in range(first, first + at_once)]
        bodies = yield from get_all(indexes)
        for name, body in zip(indexes, bodies, strict=True):
            if body is None:
                return client.runs
            mark = mark_from_bytes(body, name)
            _require_namespace(client, mark, name)
            client.runs = client.runs.after(mark)
        at_once = _AT_ONCE


def open_run(
    client: Client,
    name: str,
    owner: str,
    start: int = 0,
    every: int | None = None,
    keep: int | None = None,
) -> Routine[Run]:
    """Take a run over with its live checkpoints; a new one holds the steps from `start` on.

    Raises BatchesGone if these were reclaimed, and RunTaken if another process opens the run meanwhile.
    """
    while True:
        before = (yield from current(client)).open.get(name)
        checkpoints = before.checkpoints if before is not None else {START: start}
        if (yield from _append(client, Mark(name, owner, "open", checkpoints, every, keep))):
            break
    if before is None or not before.is_accepted:
        floor = yield from floors.current(client)
        if floor.step > min(checkpoints.values()):
            yield from close(client, name, owner)  # or it would hold the rest forever
            raise BatchesGone(
                f"Run `{name}` begins at step {min(checkpoints.values()):,}, and the batches before step "
                f"{floor.step:,} were reclaimed. Begin at that step or later."
            )
    runs = yield from hold(client, name, owner, checkpoints)
    return runs.open[name]


def hold(client: Client, name: str, owner: str, checkpoints: Mapping[str, int]) -> Routine[Runs]:
    """Move the marks of a run to its live checkpoints.

    Raises RunTaken unless the process has the run, and CheckpointDropped for one before its marks.
    """
    while True:
        run = _own_run((yield from current(client)), name, owner)
        if min(checkpoints.values()) < run.oldest_step:  # after a mark that was stored, and not answered
            raise CheckpointDropped(
                f"Run `{name}` holds the steps from {run.oldest_step:,} on, and not step "
                f"{min(checkpoints.values()):,}. Open the run again to see its live checkpoints."
            )
        if (yield from _append(client, Mark(name, owner, "hold", checkpoints, run.every, run.keep))):
            return client.runs


def close(client: Client, name: str, owner: str) -> Routine[Runs]:
    """Let go of all that a run holds; raises RunTaken unless the process has the run."""
    while True:
        run = _own_run((yield from current(client)), name, owner)
        if (yield from _append(client, Mark(name, owner, "close", run.checkpoints))):
            return client.runs


def close_for(client: Client, name: str) -> Routine[Run | None]:
    """Close a run in place of its process; the run that was closed, or None if none of that name is open."""
    while True:
        run = (yield from current(client)).open.get(name)
        if run is None:
            return None
        try:
            yield from close(client, name, run.owner)
        except RunTaken:
            continue  # a process has opened it at this moment, and is closed in turn
        return run


def _own_run(runs: Runs, name: str, owner: str) -> Run:
    run = runs.open.get(name)
    if run is None:
        raise RunTaken(
            f"Run `{name}` was closed, so its batches may be gone. Open it again, from a step that is there."
        )
    if run.owner != owner:
        raise RunTaken(
            f"Process {run.owner} has opened run `{name}`, and this one, {owner}, holds no batches any more. "
            "Let one process train a run, or give this one a name of its own."
        )
    return run


def _append(client: Client, mark: Mark) -> Routine[bool]:
    """Whether the mark is the next one; if not, it was another's, or its request was lost or is late."""
    mark = replace(mark, namespace=client.namespace)
    verdict = yield from create(names.mark(client.runs.marks + 1), mark_to_bytes(mark))
    if verdict is not Verdict.OURS:
        return False
    client.runs = client.runs.after(mark)
    return True


def _require_namespace(client: Client, mark: Mark, name: str) -> None:
    if client.namespace not in (None, mark.namespace):
        raise NamespaceDiffers(
            f"{name} was written for a namespace that was deleted, by a run that was still going when this "
            "one was created at its address. End that run, and create a namespace at an address of its own."
        )
