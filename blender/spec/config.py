"""The definition of a blend: sources, weights and seed, under an id that is their hash.

A weight is rows in every step; a schedule of shares may replace the weights (`blender.spec.schedule`).

The id is a hash of the canonical JSON. It omits fields at their default, so that a new field changes no
existing id, and references to snapshots: every source carries the content fingerprint of its table instead.
The same data on two machines therefore makes the same blend under any snapshot ids. The hashed fields decide
every row of the blend, so a default must never change.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from blender.errors import InvalidBlend
from blender.records import Schedule, Source
from blender.spec.mixture import MAX_OFFSET, MAX_ROWS_PER_STEP, MAX_SOURCES, MixturePiece, constant
from blender.spec.schedule import BlendSchedule, blend_schedule
from blender.spec.source import WellformedSource, canonical, wellformed
from blender.spec.validated import validated

FORMAT = 1  # of the order of rows (mixture, shuffle and their keys): another order needs another format


class BlendConfig(BaseModel):
    """An immutable blend. Make it with `blend_config`, change it with `updated`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: tuple[WellformedSource, ...]
    """All sources, with the weights that hold from step `offset` on."""
    schedule: BlendSchedule | None = None
    """Shares of a step from step `offset` on, in place of weights."""
    seed: int = Field(0, ge=0, lt=1 << 64)
    """Seed of every shuffle."""
    pad: bool = False
    """Allow sources with rows of different lengths; shorter rows are padded to the longest."""
    parent: str = ""
    """For an update, the blend to follow before step `offset`."""
    offset: int = Field(0, ge=0, le=MAX_OFFSET)
    """For an update, its first step."""

    @model_validator(mode="after")
    def _sources_make_a_step(self) -> Self:
        times = Counter(source.name for source in self.sources)
        repeated = sorted(name for name, count in times.items() if count > 1)
        if repeated:
            raise ValueError(f"Two sources are called `{repeated[0]}`. Give one of them another `name`.")
        if len(self.sources) > MAX_SOURCES:
            raise ValueError(f"The blend has {len(self.sources):,} sources. Use at most {MAX_SOURCES:,}.")
        total = sum(source.weight for source in self.sources)
        if self.schedule is not None:
            self._schedule_fits(self.schedule, total)
        elif not 0 < total <= MAX_ROWS_PER_STEP:
            raise ValueError(
                f"The weights sum to {total:,} rows a step. Give sources with at least 1 and at most "
                f"{MAX_ROWS_PER_STEP:,} rows in all."
            )
        if self.offset and not self.parent:
            raise ValueError(
                f"Offset {self.offset} is given without a parent. Only an update begins at an offset."
            )
        return self

    def _schedule_fits(self, schedule: BlendSchedule, weights: int) -> None:
        if weights:
            raise ValueError(
                f"The blend has a schedule and weights that sum to {weights} rows a step. "
                "Leave out one of them."
            )
        if schedule.knots[0].offset < self.offset:
            raise ValueError(
                f"The first knot is at step {schedule.knots[0].offset:,}, and the update holds from step "
                f"{self.offset:,} on. Put every knot there or later."
            )
        for knot in schedule.knots:
            if len(knot.shares) != len(self.sources):
                raise ValueError(
                    f"The knot at step {knot.offset:,} has {len(knot.shares)} shares, the blend "
                    f"{len(self.sources)} sources. Make the schedule through Blender."
                )
        schedule.piece(self.offset)

    @property
    def piece(self) -> MixturePiece:
        """The piece of the mixture from step `offset` on."""
        if self.schedule is not None:
            return self.schedule.piece(self.offset)
        return constant([source.weight for source in self.sources])

    def canonical(self) -> dict[str, Any]:
        """The hashed and stored form: everything but the references."""
        fields = self.model_dump(mode="json", exclude_defaults=True, exclude={"sources"})
        return {"format": FORMAT, "sources": [canonical(source) for source in self.sources], **fields}

    def canonical_json(self) -> bytes:
        """The canonical form as bytes."""
        text = json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode()

    @cached_property
    def id(self) -> str:
        """32 hexadecimal digits; raises InvalidBlend while a source has no content fingerprint."""
        for source in self.sources:
            if not source.content:
                raise InvalidBlend(f"Source `{source.name}` is not pinned. Create the blend through Blender.")
        return id_of(self.canonical_json())

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """The inverse of `canonical_json`; raises InvalidBlend for another format."""
        fields = json.loads(content)
        found = fields.pop("format", None)
        if found != FORMAT:
            raise InvalidBlend(
                f"This blend has format {found}, this Blender serves format {FORMAT}. "
                "Serve it with the version that made it."
            )
        return cls.model_validate(fields)


def id_of(canonical_json: bytes) -> str:
    """The id of the blend with this canonical JSON."""
    return hashlib.blake2b(canonical_json, digest_size=16).hexdigest()


def blend_config(
    sources: Sequence[Source], seed: int = 0, schedule: Schedule | None = None, *, pad: bool = False
) -> BlendConfig:
    """A new blend, by a schedule if the sources have no weights; raises InvalidBlend."""
    fields = {"sources": tuple(sources), "seed": seed, "pad": pad}
    return validated(BlendConfig.model_validate, fields | _schedule(schedule, sources))


def updated(
    parent: BlendConfig,
    offset: int,
    weights: Mapping[str, int],
    add: Sequence[Source] = (),
    schedule: Schedule | None = None,
    *,
    pad: bool = False,
) -> BlendConfig:
    """The blend equal to `parent` before step `offset`, with `weights` or a `schedule` from there on.

    `weights` are rows per step by source name: an unnamed source keeps its weight, and zero pauses a source.
    A schedule replaces every weight. `add` appends further sources. The update pads if `pad` is set or the
    parent pads. Raises InvalidBlend.
    """
    known = {source.name for source in parent.sources}
    unknown = sorted(set(weights) - known)
    if unknown:
        raise InvalidBlend(
            f"The blend has no source `{unknown[0]}`. Its sources: {', '.join(sorted(known))}."
        )
    if schedule is not None and weights:
        raise InvalidBlend("The update has weights and a schedule. Leave out one of them.")
    chosen = {source.name: 0 for source in parent.sources} if schedule is not None else weights
    kept = [_weighted(source, chosen.get(source.name, source.weight)) for source in parent.sources]
    sources = (*kept, *add)
    fields = {"sources": sources, "seed": parent.seed, "parent": parent.id, "offset": offset}
    fields["pad"] = parent.pad or pad
    return validated(BlendConfig.model_validate, fields | _schedule(schedule, sources))


def _weighted(source: Source, weight: int) -> Source:
    return source if weight == source.weight else wellformed(replace(source, weight=weight))


def _schedule(schedule: Schedule | None, sources: Sequence[Source]) -> dict[str, BlendSchedule]:
    if schedule is None:
        return {}
    return {"schedule": blend_schedule(schedule, [source.name for source in sources])}
