"""A blend's schedule as it is stored: shares of a step at knots, whole numbers that decide every row.

What a person writes (`blender.records.Schedule`) has proportions of any sum by the sources' names; what is
stored and hashed has each knot's shares in units of 2^-32, in the order of the sources. So 6 : 4 and .6 : .4
are the same blend, and no machine's rounding is in it.
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
    Piece,
    ScheduleKind,
    scheduled,
    shares_of,
)
from blender.spec.validated import validated

_KINDS = get_args(ScheduleKind)


class Knot(BaseModel):
    """The shares from a step of the blend on, in units of 2^-32, in the order of the blend's sources."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    offset: int
    shares: tuple[int, ...]


class BlendSchedule(BaseModel):
    """Rows in every step, and how they are shared along the steps. Make it with `blend_schedule`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ScheduleKind
    """What holds between two knots: the first of them (`stepped`), a straight line (`linear`) or half a wave
    (`cosine`). `constant` has one knot."""
    rows_per_step: int
    knots: tuple[Knot, ...]
    """Ascending; the first shares hold before the first knot too, the last ones for ever."""

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

    def piece(self, start: int) -> Piece:
        """The schedule from step `start` of the blend on; raises ValueError for too many numbers."""
        knots = [(knot.offset - start, knot.shares) for knot in self.knots]
        return scheduled(self.kind, self.rows_per_step, knots)


def blend_schedule(asked: Schedule, names: Sequence[str]) -> BlendSchedule:
    """The schedule of a blend of the sources `names`; raises InvalidBlend with a sentence."""
    if asked.kind not in _KINDS:
        raise InvalidBlend(f"There is no schedule `{asked.kind}`. Use {', '.join(_KINDS)}.")
    known = set(names)
    knots = []
    for offset, proportions in asked.knots:
        unknown = sorted(set(proportions) - known)
        if unknown:
            raise InvalidBlend(
                f"The knot at step {offset:,} names `{unknown[0]}`, which is no source of the blend. "
                f"Its sources: {', '.join(names)}."
            )
        try:
            shares = shares_of([proportions.get(name, 0) for name in names])
        except ValueError as error:
            raise InvalidBlend(f"The knot at step {offset:,} makes no step: {error}") from error
        knots.append({"offset": offset, "shares": shares})
    fields = {"kind": asked.kind, "rows_per_step": asked.rows_per_step, "knots": tuple(knots)}
    return validated(BlendSchedule.model_validate, fields)
