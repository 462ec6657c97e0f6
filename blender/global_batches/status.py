"""The progress of a namespace, its writers, and the reason why its readers wait, for people.

    status = namespace_status("s3://bucket/run7")
    status.steps, status.is_ended, status.waits_for     # 812, False, "Step 812 is that of lane `1`, ..."
    status.lanes[1].figures["lost"]                     # 9 of 212 attempts

It reads the newest state of the log and the marks of runs, and no batch. The producers' own clocks give
the times.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from blender.global_batches.held_steps import HeldSteps
from blender.global_batches.json_values import Json
from blender.global_batches.log import log
from blender.global_batches.log.reclaim import reclaim
from blender.global_batches.log.runs import Runs
from blender.global_batches.log.state import END, LogState
from blender.global_batches.namespace import Namespace, open_namespace
from blender.global_batches.source import read_source
from blender.global_batches.store.namespace_store import PATIENCE_S, open_store
from factory.settings import Settings


@dataclass(frozen=True)
class LaneStatus:
    """A lane, and what its producer last said of its commits."""

    name: str
    epoch: int
    """The number of processes that have taken the lane; 0 if nobody has."""
    process: str
    """The process that holds it, as `host:process:random`."""
    batches: int
    """Batches that the lane has committed."""
    next_step: int | None
    """The step of its next batch, in assigned order."""
    behind: int | None
    """The batches by which it is behind the lane that is furthest ahead, in assigned order."""
    is_closed: bool
    offset: Json
    """Where its producer goes on."""
    committed_at: float | None
    """When the process took the lane or last committed, in seconds since 1970."""
    figures: Mapping[str, Any]
    """`CommitFigures.report` at that time; empty if the lane's producer gave none."""

    @property
    def rate(self) -> float | None:
        """Attempts in a second, by window and gap."""
        window, gap = self.figures.get("window"), self.figures.get("gap")
        return 1 / (window + gap) if window else None

    @property
    def conflicts(self) -> float | None:
        """The part of the attempts that were lost."""
        attempts = self.figures.get("attempts")
        return self.figures["lost"] / attempts if attempts else None


@dataclass(frozen=True)
class RunStatus:
    """An open run, and the steps that it holds."""

    name: str
    process: str
    """The process that opened it last, as `host:process:random`."""
    first_step: int
    """The first step that it holds."""
    checkpoints: Mapping[str, int]
    """The step after each live checkpoint, by name."""


@dataclass(frozen=True)
class NamespaceStatus:
    """The state of a namespace at one time."""

    uri: str
    namespace: Namespace
    source: Mapping[str, Json] | None
    """What fills it, if a producer has recorded that."""
    read_at: float
    """Seconds since 1970."""
    version: int
    """The newest version of its log."""
    steps: int
    """Steps that readers can read."""
    waiting: int
    """Batches of later steps, committed, that readers do not see before those that are missing."""
    n_bytes: int
    """The bytes of all committed batches."""
    content: str
    """The hash of all steps: equal for equal runs."""
    is_ended: bool
    runs: tuple[RunStatus, ...]
    """The open runs; the first holds the oldest step."""
    first_kept: int
    """Batches of the steps before it are deleted, or may be at any moment."""
    live_bytes: int
    """The bytes of the batches that are kept."""
    reclaimable: int
    """Batches that `factory batches reclaim` would delete now."""
    reclaimable_bytes: int
    orphans: int | None
    """Objects that no step will ever name, which it would delete too; None if they were not counted."""
    lanes: tuple[LaneStatus, ...]
    unlisted_lanes: int
    """Finished lanes that are not among these: they have left the state of the log."""
    waits_for: str | None
    """What comes next, and who owes it; None once the data have ended."""

    def described(self) -> dict[str, Any]:
        """All of it, for JSON."""
        lanes = [asdict(lane) | {"rate": lane.rate, "conflicts": lane.conflicts} for lane in self.lanes]
        return asdict(self) | {"lanes": lanes}


def namespace_status(
    uri: str | os.PathLike[str],
    *,
    count_orphans: bool = True,
    settings: Settings | None = None,
    patience_s: float = PATIENCE_S,
) -> NamespaceStatus:
    """The status of a namespace; to count orphans takes a LIST of all batches.

    Raises NamespaceNotFound, DamagedLog and StoreUnavailable.
    """
    store = open_store(uri, settings, patience_s=patience_s)
    namespace = open_namespace(store)
    client = namespace.client()
    state = store.run(log.load(client))
    store.run(log.require_whole(client, state))
    garbage = store.run(reclaim(client, dry=True, count_orphans=count_orphans))
    now = time.time()
    lanes = tuple(_lane_status(namespace, state, name) for name in _lane_names(namespace, state))
    is_ended = client.order.has_ended(state)
    return NamespaceStatus(
        uri=store.uri,
        namespace=namespace,
        source=read_source(store, namespace),
        read_at=now,
        version=state.version,
        steps=state.steps,
        waiting=len(state.waiting),
        n_bytes=state.n_bytes,
        content=f"{state.content:032x}",
        is_ended=is_ended,
        runs=_run_statuses(garbage.runs),
        first_kept=client.floor.step,
        live_bytes=garbage.live_bytes,
        reclaimable=garbage.batches,
        reclaimable_bytes=garbage.n_bytes,
        orphans=garbage.orphans if count_orphans else None,
        lanes=lanes,
        unlisted_lanes=state.finished_lanes,
        waits_for=None if is_ended else _waits_for(namespace, state, lanes, now),
    )


def ago(seconds: float) -> str:
    """A time span as a person says it: `12 s`, `4 min`, `2 h 03 min`, `5 d`."""
    if seconds < 120:
        return f"{max(0, seconds):.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172800:
        hours, minutes = divmod(int(seconds // 60), 60)
        return f"{hours} h {minutes:02} min"
    return f"{seconds / 86400:.0f} d"


def _run_statuses(runs: Runs) -> tuple[RunStatus, ...]:
    """The open runs, in the order of the first steps that they hold."""
    statuses = [
        RunStatus(name, run.owner, run.oldest_step, HeldSteps(name, run.checkpoints).checkpoints)
        for name, run in sorted(runs.open.items())
    ]
    return tuple(sorted(statuses, key=lambda run: run.first_step))


def _lane_names(namespace: Namespace, state: LogState) -> list[str]:
    if namespace.order == "assigned":
        return [f"{lane}" for lane in range(namespace.lanes or 0)]
    return sorted(state.lanes.keys() - {END})


def _lane_status(namespace: Namespace, state: LogState, name: str) -> LaneStatus:
    lane = state.lane(name)
    figures = lane.report if isinstance(lane.report, dict) else {}
    is_assigned = namespace.order == "assigned"
    furthest = max((other.sequence for other in state.lanes.values()), default=0)
    return LaneStatus(
        name=name,
        epoch=lane.epoch,
        process=lane.incarnation,
        batches=lane.sequence,
        next_step=namespace.step_of(name, lane.sequence) if is_assigned else None,
        behind=furthest - lane.sequence if is_assigned else None,
        is_closed=lane.closed,
        offset=lane.offset,
        committed_at=figures.get("at"),
        figures=figures,
    )


def _waits_for(namespace: Namespace, state: LogState, lanes: tuple[LaneStatus, ...], now: float) -> str:
    """A sentence on the next step: its lane, since when readers wait, and the steps behind it."""
    if namespace.order == "assigned" and namespace.lanes is not None:
        lane = lanes[state.steps % namespace.lanes]
        behind = f", and {len(state.waiting):,} committed steps wait behind it" if state.waiting else ""
        return (
            f"Step {state.steps:,} is that of lane `{lane.name}`, {_silence(namespace, lane, now)}{behind}."
        )
    opened = [lane for lane in lanes if not lane.is_closed]
    if not opened:
        unopened = 1 if namespace.lanes is None else namespace.lanes - len(lanes)
        lane_of = "a lane" if unopened == 1 else f"one of {unopened:,} lanes"
        return f"Step {state.steps:,} is that of {lane_of} that nobody has opened."
    latest = max(opened, key=lambda lane: lane.committed_at or 0)
    return (
        f"Step {state.steps:,} is that of the lane that commits next; the latest, `{latest.name}`, "
        f"{_silence(namespace, latest, now)}."
    )


def _silence(namespace: Namespace, lane: LaneStatus, now: float) -> str:
    """Since when a lane has been silent."""
    if not lane.epoch:
        age = ago(now - namespace.created_at)
        return f"which nobody has opened in the {age} since the namespace was created"
    if lane.committed_at is None:
        return f"which process {lane.process} holds"
    return f"which process {lane.process} holds, silent for {ago(now - lane.committed_at)}"
