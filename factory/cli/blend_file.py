"""Blend files, in YAML or JSON: sources with weights or a schedule, and a seed; and files of changes.

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

`pad: true` allows sources with different row lengths. A source without `columns` delivers `tokens`, and
`images` if its table has pictures. The file has the fields of `blender.records.Source` and
`blender.records.Schedule`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import Field, PrivateAttr

from blender.records import Schedule, Source
from blender.spec.mixture import ScheduleKind
from blender.spec.source import WellformedSource
from factory.errors import ConfigurationError
from factory.frozen_model import FrozenModel
from factory.lake.names import TableName
from factory.lake.packed_tables import delivered_columns
from factory.lake.tables import Lake
from factory.orchestration.declare.located_yaml import LocatedYaml


class WrittenKnot(FrozenModel):
    """The proportions at a step, with any sum; a missing source has proportion zero."""

    offset: int
    proportions: dict[str, float]


class WrittenSchedule(FrozenModel):
    """Proportions that change along the steps, in place of weights."""

    kind: ScheduleKind = "linear"
    rows_per_step: int
    knots: tuple[WrittenKnot, ...] = Field(min_length=1)

    @property
    def record(self) -> Schedule:
        """Return the schedule as a record."""
        knots = tuple((knot.offset, knot.proportions) for knot in self.knots)
        return Schedule(self.rows_per_step, knots, self.kind)


class WrittenBlend(FrozenModel):
    """The fields of a blend file; `BlendConfig` validates them as a whole."""

    sources: tuple[WellformedSource, ...] = Field(min_length=1)
    seed: int = 0
    schedule: WrittenSchedule | None = None
    pad: bool = False
    _without_columns: frozenset[int] = PrivateAttr(frozenset())
    """The numbers of the sources that name no columns."""

    @classmethod
    def read(cls, path: Path) -> WrittenBlend:
        """Read a blend file; raise ConfigurationError with a line for each wrong field."""
        yaml_file = LocatedYaml.read(path)
        blend_file = yaml_file.build(cls)
        sources = yaml_file.values["sources"]
        blend_file._without_columns = frozenset(
            number for number, source in enumerate(sources) if "columns" not in source
        )
        return blend_file

    def sources_of(self, lake: Lake) -> tuple[Source, ...]:
        """Return the sources, with the columns that their tables deliver where the file names none."""
        return tuple(
            replace(source, columns=delivered_columns(lake, TableName.parse(source.table)))
            if number in self._without_columns
            else source
            for number, source in enumerate(self.sources)
        )

    @property
    def planned(self) -> Schedule | None:
        """Return the schedule as a record."""
        if self.schedule is None:
            return None
        return self.schedule.record


class WrittenUpdate(FrozenModel):
    """The fields of a file that changes a blend from a step on."""

    weights: dict[str, int] = Field(default={})
    add: tuple[WellformedSource, ...] = ()
    schedule: WrittenSchedule | None = None
    pad: bool = False

    @classmethod
    def read(cls, path: Path) -> WrittenUpdate:
        """Read a file of a change; raise ConfigurationError with a line for each wrong field."""
        return LocatedYaml.read(path).build(cls)

    @classmethod
    def of_weights(cls, texts: Sequence[str]) -> WrittenUpdate:
        """Return the change to weights such as `packed.code=6`; raises as `source_rows`."""
        return cls(weights=dict(map(source_rows, texts)))

    @property
    def schedule_record(self) -> Schedule | None:
        """Return the schedule as a record."""
        return None if self.schedule is None else self.schedule.record


def source_rows(text: str) -> tuple[str, int]:
    """Return the source and the rows of a text such as `packed.code=6`; else raises ConfigurationError."""
    name, _, rows = text.partition("=")
    if not rows.isdecimal():
        raise ConfigurationError(
            f"`{text}` names no rows per step. Write a source and a whole number: {name or 'packed.code'}=6."
        )
    return name, int(rows)
