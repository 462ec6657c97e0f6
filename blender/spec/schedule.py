"""The stored schedule of a blend: shares of a step at knots, as whole numbers.

A user writes proportions of any sum by source name (`blender.records.Schedule`). The stored and hashed form
has each knot's shares in units of 2^-32, in the order of the sources: 6 : 4 and .6 : .4 are the same blend,
and no machine's rounding changes a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Self, get_args

from pydantic import BaseModel, ConfigDict, model_validator

from blender.errors import InvalidBlend
from blender.records import Schedule
from blender.spec.mixture import (
    MAX_OFFSET,
    MAX_ROWS_PER_STEP,
    WHOLE,
    MixturePiece,
    ScheduleKind,
    scheduled,
    shares_of,
)
from blender.spec.validated import validated

_KINDS = get_args(ScheduleKind)


class ShareKnot(BaseModel):
    """The shares at one step, in units of 2^-32, in the order of the blend's sources."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    offset: int
    shares: tuple[int, ...]


class BlendSchedule(BaseModel):
    """Rows per step and the sources' shares along the steps. Make it with `blend_schedule`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ScheduleKind
    """The shares between two knots: those of the first (`stepped`), on a straight line (`linear`) or on half
    a wave (`cosine`). `constant` has one knot."""
    rows_per_step: int
    knots: tuple[ShareKnot, ...]
    """Ascending. The first knot's shares also apply before it, the last knot's for ever after."""

    @model_validator(mode="after")
    def _knots_make_a_schedule(self) -> Self:
        if not 1 <= self.rows_per_step <= MAX_ROWS_PER_STEP:
            raise ValueError(
                f"The schedule has {self.rows_per_step:,} rows a step. "
                f"Use at least 1 and at most {MAX_ROWS_PER_STEP:,}."
            )
        offsets = [knot.offset for knot in self.knots]
        if not offsets or (self.kind == "constant" and len(offsets) > 1):
            wanted = "exactly one knot" if self.kind == "constant" else "at least one knot"
            raise ValueError(f"A {self.kind} schedule has {len(offsets)} knots. Give it {wanted}.")
        for offset in offsets:
            if not 0 <= offset <= MAX_OFFSET:
                raise ValueError(f"A knot is at step {offset:,}. A blend has 0 to {MAX_OFFSET:,}.")
        for one, next_one in pairwise(offsets):
            if one >= next_one:
                raise ValueError(
                    f"A knot at step {next_one:,} follows one at {one:,}. Give each step once, in order."
                )
        if any(min(knot.shares, default=-1) < 0 or sum(knot.shares) != WHOLE for knot in self.knots):
            raise ValueError(
                f"The shares of a knot do not sum to {WHOLE}. Make the schedule through Blender."
            )
        return self

    def piece(self, start: int) -> MixturePiece:
        """The piece that begins at step `start` of the blend; raises ValueError for too many knots."""
        knots = [(knot.offset - start, knot.shares) for knot in self.knots]
        return scheduled(self.kind, self.rows_per_step, knots)


def blend_schedule(schedule: Schedule, names: Sequence[str]) -> BlendSchedule:
    """The stored form of `schedule` for the sources `names`; raises InvalidBlend."""
    if schedule.kind not in _KINDS:
        raise InvalidBlend(f"Unknown schedule `{schedule.kind}`. Use {', '.join(_KINDS)}.")
    known = set(names)
    knots = []
    for offset, proportions in schedule.knots:
        unknown = sorted(set(proportions) - known)
        if unknown:
            raise InvalidBlend(
                f"The knot at step {offset:,} names the unknown source `{unknown[0]}`. "
                f"Sources: {', '.join(names)}."
            )
        try:
            shares = shares_of([proportions.get(name, 0) for name in names])
        except ValueError as error:
            raise InvalidBlend(f"The knot at step {offset:,} makes no step: {error}") from error
        knots.append({"offset": offset, "shares": shares})
    fields = {"kind": schedule.kind, "rows_per_step": schedule.rows_per_step, "knots": tuple(knots)}
    return validated(BlendSchedule.model_validate, fields)
