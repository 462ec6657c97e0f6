"""Blend files, in YAML or JSON: sources with weights or a schedule, and a seed.

    seed: 7
    sources:
      - {table: packed.web, shuffle: page_window, page_rows: 8, window_pages: 1024}
      - {table: packed.code, oversample: true}
    schedule:
      kind: cosine
      rows_per_step: 512
      knots:
        - {offset: 0, proportions: {packed.web: 9, packed.code: 1}}
        - {offset: 20000, proportions: {packed.web: 6, packed.code: 4}}

`pad: true` allows sources with different row lengths. The fields are those of `blender.records.Source` and
`blender.records.Schedule`.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from blender.records import Schedule
from blender.spec.mixture import ScheduleKind
from blender.spec.source import WellformedSource
from factory.frozen_model import FrozenModel
from factory.orchestration.datasets.located_yaml import LocatedYaml


class WrittenKnot(FrozenModel):
    """The proportions at a step, with any sum; a missing source has proportion zero."""

    offset: int
    proportions: dict[str, float]


class WrittenSchedule(FrozenModel):
    """Proportions that change along the steps, in place of weights."""

    kind: ScheduleKind = "linear"
    rows_per_step: int
    knots: tuple[WrittenKnot, ...] = Field(min_length=1)


class WrittenBlend(FrozenModel):
    """The fields of a blend file; `BlendConfig` validates them as a whole."""

    sources: tuple[WellformedSource, ...] = Field(min_length=1)
    seed: int = 0
    schedule: WrittenSchedule | None = None
    pad: bool = False

    @classmethod
    def read(cls, path: Path) -> WrittenBlend:
        """Read a blend file; raise ConfigurationError with a line for each wrong field."""
        return LocatedYaml.read(path).build(cls)

    @property
    def planned(self) -> Schedule | None:
        """Return the schedule as a record."""
        if self.schedule is None:
            return None
        knots = tuple((knot.offset, knot.proportions) for knot in self.schedule.knots)
        return Schedule(self.schedule.rows_per_step, knots, self.schedule.kind)
