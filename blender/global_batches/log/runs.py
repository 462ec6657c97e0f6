"""Training runs, and the checkpoints for which each of them holds batches.

    runs = Runs().after(Mark("a", "host:71:5f0c", "open", {"": 0}))
    runs = runs.after(Mark("a", "host:71:5f0c", "hold", {"ckpt-110": 110, "ckpt-120": 120}))
    runs.watermark                  # 110: no run goes back to a step before it
    runs.open["a"].checkpoints      # {"ckpt-110": 110, "ckpt-120": 120}

The fold of the chain of marks (the paper's watermarks, section 5.3). Its records are never overwritten: a
mark of a process that was replaced would delete batches of its successor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from blender.global_batches.errors import DamagedLog
from blender.global_batches.json_values import Json, compact_json
from blender.rows.checksummed_json import verified_content, with_checksum

START = ""
"""The name under which a run without a checkpoint holds its first step; no checkpoint can have it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A record of the chain: the checkpoints of a run from here on, by the process that has the run."""

    run: str
    owner: str
    """The process, by a name that is never used again."""
    kind: Literal["open", "hold", "close"]
    """A process takes the run over; moves its marks; or ends it."""
    checkpoints: Mapping[str, int]
    """The step after each live checkpoint, by name. Who opens a run inherits them."""
    every: int | None = None
    """Steps between two checkpoints, if the run has said so."""
    keep: int | None = None
    """Live checkpoints, if the run has said so."""
    namespace: str | None = None
    """The id of the namespace that its writer had opened."""


@dataclass(frozen=True, slots=True)
class Run:
    """An open run."""

    owner: str
    checkpoints: Mapping[str, int]
    is_accepted: bool = False
    """Whether its owner has marked it, which it does once it knows that its batches are there."""
    every: int | None = None
    keep: int | None = None

    @property
    def oldest_step(self) -> int:
        """The first step that it may ask for."""
        return min(self.checkpoints.values())


@dataclass(frozen=True, slots=True)
class Runs:
    """The open runs after a number of marks."""

    marks: int = 0
    open: Mapping[str, Run] = field(default_factory=dict)

    @property
    def watermark(self) -> int | None:
        """The first step that an open run may ask for; None without one."""
        return min((run.oldest_step for run in self.open.values()), default=None)

    @property
    def holder(self) -> str | None:
        """The run that holds the watermark."""
        return min(self.open, key=lambda name: (self.open[name].oldest_step, name), default=None)

    def after(self, mark: Mark) -> Runs:
        """The runs with one more mark; a mark by a process without the run counts for nothing."""
        before = self.open.get(mark.run)
        runs = dict(self.open)
        if mark.kind == "open":
            is_accepted = before is not None and before.is_accepted
            runs[mark.run] = Run(mark.owner, mark.checkpoints, is_accepted, mark.every, mark.keep)
        elif before is not None and before.owner == mark.owner:
            if mark.kind == "close":
                del runs[mark.run]
            else:
                runs[mark.run] = Run(mark.owner, mark.checkpoints, True, mark.every, mark.keep)
        return Runs(self.marks + 1, runs)


def mark_to_bytes(mark: Mark) -> bytes:
    """A record of the chain of marks."""
    return with_checksum(compact_json(_in_order(asdict(mark))))


def mark_from_bytes(body: bytes, name: str) -> Mark:
    """The inverse of `mark_to_bytes`; raises DamagedLog with the name of the object."""
    try:
        return Mark(**_by_name(json.loads(verified_content(body))))
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedLog(f"{name} is damaged ({error}). Restore it from a copy of the namespace.") from error


def runs_to_json(runs: Runs) -> dict[str, Json]:
    """The open runs as a floor records them."""
    return {name: _in_order(asdict(run)) for name, run in sorted(runs.open.items())}


def runs_from_json(marks: int, content: Mapping[str, Any] | None) -> Runs:
    """The inverse of `runs_to_json`."""
    return Runs(marks, {name: Run(**_by_name(fields)) for name, fields in (content or {}).items()})


def _in_order(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields with the checkpoints as pairs: JSON sorts names, and the latest checkpoint is the last one."""
    return fields | {"checkpoints": list(fields["checkpoints"].items())}


def _by_name(fields: dict[str, Any]) -> dict[str, Any]:
    return fields | {"checkpoints": dict(fields["checkpoints"])}
