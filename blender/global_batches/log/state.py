"""The state of a log: the lanes and their progress, the steps and their batches.

    state = LogState()
    state = state.after(delta)                      # the state one version later
    state.steps, state.lanes["rollouts-0"].offset   # 3, {"prompt": 96}
    f"{state.content:032x}"                         # equal for equal histories

The state after a version is a pure function of the log up to that version (the paper's manifest, section 4.2,
as the fold of deltas). Segments hold the descriptors of its oldest steps; the state keeps their content
alone. Its steps have no gap: a batch for a later step waits for the steps before it. Where lanes come and go,
finished lanes leave it with the next checkpoint, each for an object of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from blender.global_batches.json_values import Json

SEGMENT_STEPS = 10_000
END = ""
"""The lane, which no producer can name, whose closing ends the namespace."""
_CONTENTS = 1 << 128


class GapInLog(ValueError):
    """A delta does not follow the state: it was made from another one."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The location of a batch, and the hash of its footer, which holds the checksum of every slice."""

    step: int
    name: str
    """The name of its object."""
    n_bytes: int
    """The size of the object."""
    footer_offset: int
    footer_length: int
    footer_hash: bytes
    """16 bytes."""

    @property
    def content(self) -> int:
        """A 128-bit hash of step and footer, which name neither lane nor process."""
        digest = hashlib.blake2b(
            self.step.to_bytes(8, "little") + self.footer_hash, digest_size=16, person=b"batch"
        )
        return int.from_bytes(digest.digest(), "little")


@dataclass(frozen=True, slots=True)
class Lane:
    """How far a lane has come, and the process that holds it."""

    epoch: int = 0
    """The number of processes that have taken the lane."""
    incarnation: str = ""
    """The process that holds the lane: two that take it at once choose the same epoch."""
    sequence: int = 0
    """The number of batches that the lane has committed."""
    offset: Json = None
    """Where its producer goes on: what it gave with the last committed batch."""
    closed: bool = False
    """Whether the producer has finished the lane."""
    report: Json = None
    """What its producer last said of its commits, for people alone: `CommitFigures.report`."""


@dataclass(frozen=True, slots=True)
class Delta:
    """The additions of one commit: the batches of a lane, and its progress with them."""

    version: int
    first_step: int
    """The steps that were visible before this version."""
    lane: str
    progress: Lane
    batches: tuple[Descriptor, ...] = ()
    namespace: str | None = None
    """The id of the namespace that its writer had opened."""


@dataclass(frozen=True, slots=True)
class LogState:
    """The state after a version; version 0 is the empty log."""

    version: int = 0
    steps: int = 0
    """The number of visible steps: each of them and all before it are committed."""
    content: int = 0
    """The sum of the contents of all steps modulo 2^128: it does not depend on who committed them when."""
    lanes: Mapping[str, Lane] = field(default_factory=dict)
    segments: tuple[int, ...] = ()
    """The content of each segment of SEGMENT_STEPS steps, from step 0 on."""
    tail: tuple[Descriptor, ...] = ()
    """The batches of the visible steps after the segments."""
    waiting: tuple[Descriptor, ...] = ()
    """The batches of later steps, ascending: committed, and not visible before those that are missing."""
    n_bytes: int = 0
    """The bytes of all committed batches."""
    finished_lanes: int = 0
    """The number of lanes that have left the state."""
    recalled_lanes: Mapping[str, Lane] = field(default_factory=dict, compare=False)
    """Some of them, as this process knows them; no part of the state."""

    def lane(self, name: str) -> Lane:
        """A lane; one that nobody has taken is new."""
        return self.lanes.get(name) or self.recalled_lanes.get(name) or Lane()

    @property
    def is_ended(self) -> bool:
        """Whether somebody has ended the namespace: the log takes no more batches."""
        return self.lane(END).closed

    def after(self, *deltas: Delta) -> LogState:
        """The state after the deltas; raises GapInLog unless they follow it one by one."""
        version, steps, lanes, tail = self.version, self.steps, dict(self.lanes), list(self.tail)
        waiting = {batch.step: batch for batch in self.waiting}
        n_bytes = self.n_bytes
        for delta in deltas:
            if (delta.version, delta.first_step) != (version + 1, steps):
                raise GapInLog(
                    f"version {delta.version} begins with step {delta.first_step}, and version {version} "
                    f"ends before step {steps}"
                )
            version = delta.version
            lanes[delta.lane] = delta.progress
            for batch in delta.batches:
                if batch.step < steps or batch.step in waiting:
                    raise GapInLog(f"version {version} has step {batch.step}, which an earlier one has")
                waiting[batch.step] = batch
                n_bytes += batch.n_bytes
            while steps in waiting:
                tail.append(waiting.pop(steps))
                steps += 1
        content = content_of(tail[len(self.tail) :], self.content)
        later = tuple(waiting[step] for step in sorted(waiting))
        return replace(
            self,
            version=version,
            steps=steps,
            content=content,
            lanes=lanes,
            tail=tuple(tail),
            waiting=later,
            n_bytes=n_bytes,
        )

    def full_segments(self, segment_steps: int) -> list[tuple[Descriptor, ...]]:
        """The batches of the tail that fill segments."""
        stops = range(segment_steps, len(self.tail) + 1, segment_steps)
        return [self.tail[stop - segment_steps : stop] for stop in stops]

    def without_full_segments(self, segment_steps: int) -> LogState:
        """The same state with each full segment of its tail as its content."""
        segments = self.full_segments(segment_steps)
        return replace(
            self,
            segments=self.segments + tuple(map(content_of, segments)),
            tail=self.tail[len(segments) * segment_steps :],
        )

    def without_finished_lanes(self) -> LogState:
        """The same state with the number of the lanes that are finished; this process still knows these."""
        closed_lanes = {name: lane for name, lane in self.lanes.items() if lane.closed and name != END}
        return replace(
            self,
            lanes={name: lane for name, lane in self.lanes.items() if name not in closed_lanes},
            finished_lanes=self.finished_lanes + len(closed_lanes),
            recalled_lanes={**self.recalled_lanes, **closed_lanes},
        )


def content_of(batches: Iterable[Descriptor], before: int = 0) -> int:
    """The sum of the contents of batches, and of the content before them, modulo 2^128."""
    return sum((batch.content for batch in batches), before) % _CONTENTS


def numbered(batches: Sequence[Descriptor], steps: Iterable[int]) -> tuple[Descriptor, ...]:
    """Batches with their steps, as they stand in the log."""
    return tuple(replace(batch, step=step) for batch, step in zip(batches, steps, strict=True))
