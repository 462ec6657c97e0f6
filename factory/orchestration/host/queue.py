"""Dagster's queue of runs, with one place in the lake and many for runs that wait for their workers.

A queued run is tagged with its place, and `dagster.yaml` limits how many may be in the lake. A run that
waits for its workers changes its tag, so that the queue starts another one meanwhile.
"""

from __future__ import annotations

import dagster as dg
from dagster._core.run_coordinator import QueuedRunCoordinator, SubmitRunContext  # not exported elsewhere

PLACE_TAG = "factory/place"  # on a run of the queue: in the lake, or waiting for its workers
IN_LAKE, WAITING = "lake", "waiting"
IN_TURN_TAG = "factory/in-turn"  # tags runs that go one at a time, highest priority first
IN_TURN = "true"


class LakeRunCoordinator(QueuedRunCoordinator):
    """The queue of Dagster, which gives every run a place; named in the lake's `dagster.yaml`."""

    def submit_run(self, context: SubmitRunContext) -> dg.DagsterRun:
        """Queue a run, for a place in the lake."""
        self._instance.add_run_tags(context.dagster_run.run_id, {PLACE_TAG: IN_LAKE})
        return super().submit_run(context)


def give_up_place(instance: dg.DagsterInstance, run_id: str) -> None:
    """Let the queue start another run, while this one waits."""
    _retag(instance, run_id, WAITING, WAITING)


def take_place(instance: dg.DagsterInstance, run_id: str) -> None:
    """Ask for a place in the lake again: the queue starts no other run from now on."""
    _retag(instance, run_id, IN_LAKE, IN_TURN)


def is_queued(run: dg.DagsterRun | None) -> bool:
    """Whether the queue started a run, which may meet another one at the door of the lake."""
    return run is not None and PLACE_TAG in run.tags


def _retag(instance: dg.DagsterInstance, run_id: str, place: str, turn: str) -> None:
    run = instance.get_run_by_id(run_id)
    tags = {} if run is None else run.tags
    moves = {tag: new for tag, new in ((PLACE_TAG, place), (IN_TURN_TAG, turn)) if tag in tags}
    if moves:
        instance.add_run_tags(run_id, moves)
