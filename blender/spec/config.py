"""What a blend is: its sources, their weights and its seed, under an id that is the hash of all of it.

Weights are rows in every step; a blend may have a schedule of shares in their place
(`blender.spec.schedule`).

The id is a hash of the canonical JSON: fields that hold their default are left out (so a field added
later changes no id that exists), references to snapshots too, and every source carries the content
fingerprint of its table instead. The same data on two machines makes the same blend, whatever the
snapshot ids are. What is hashed decides every row of the blend; a default must therefore never change.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from blender.errors import InvalidBlend
from blender.records import Schedule
from blender.spec.checked import checked
from blender.spec.mixture import MAX_OFFSET, MAX_ROWS_PER_STEP, MAX_SOURCES, Piece, constant
from blender.spec.schedule import BlendSchedule, blend_schedule
from blender.spec.shuffle import Shuffle

FORMAT = 1  # of the order of rows: mixture, shuffle and their keys. Another order is another format.

PROVENANCE = ("offset", "source", "ordinal", "epoch")  # columns every batch has
SEGMENT_LENGTHS = "segment_lengths"  # column that comes with `tokens`: lengths of the documents in a row

_REFERENCE = ("snapshot", "branch", "tag")
_SIZES = (
    ("page_rows", ("page", "page_window")),
    ("window_pages", ("page_window",)),
    ("window_rows", ("window",)),
)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BlendSource(_Frozen):
    """One table of a blend and how it is read."""

    table: str
    """The table, `namespace.name`."""
    name: str = ""
    """The source's name, unique in the blend: the table's name unless given. It keys the shuffle."""
    snapshot: int | None = None
    """Read this snapshot; without `snapshot`, `branch` and `tag` the published main."""
    branch: str | None = None
    tag: str | None = None
    weight: int = Field(0, ge=0)
    """Rows in every step. Zero is a source that rests."""
    oversample: bool = False
    """Whether another epoch begins when the rows are used up; otherwise the blend ends there."""
    live: bool = False
    """Whether the table grows: rows that are not there yet are waited for. It is read once, in its own order
    or in that of windows."""
    shuffle: Literal["none", "window", "page", "page_window", "row"] = "none"
    """Order of an epoch: ordinals as they are, rows permuted in windows of consecutive ordinals, pages
    permuted, rows permuted in windows of permuted pages, or all rows permuted; with a new key each epoch."""
    page_rows: int = Field(0, ge=0)
    """Consecutive ordinals that are a page, for `page` and `page_window`, however files are cut."""
    window_pages: int = Field(0, ge=0)
    """Pages whose rows are permuted together, for `page_window`."""
    window_rows: int = Field(0, ge=0)
    """Consecutive ordinals that are permuted together, for `window`."""
    columns: tuple[str, ...] = ("tokens",)
    """Columns to deliver. `tokens` brings `segment_lengths` with it where the table has `segments`."""
    content: str = ""
    """Content fingerprint of the snapshot, of a live source the table's UUID; filled by Blender."""

    @model_validator(mode="before")
    @classmethod
    def _named_after_table(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and not fields.get("name"):
            return {**fields, "name": fields.get("table")}
        return fields

    @field_validator("columns")
    @classmethod
    def _columns_are_distinct(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        if not columns or len(set(columns)) != len(columns):
            raise ValueError(f"Columns {list(columns)} are none or repeated. Name each column once.")
        for column in columns:
            if column in (*PROVENANCE, SEGMENT_LENGTHS):
                raise ValueError(f"Column `{column}` is one Blender adds itself. Leave it out of `columns`.")
        return columns

    @model_validator(mode="after")
    def _one_reference(self) -> Self:
        given = [name for name in _REFERENCE if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"Source `{self.name}` names {' and '.join(given)}. Name one of them.")
        return self

    @model_validator(mode="after")
    def _sizes_of_the_shuffle(self) -> Self:
        for size, kinds in _SIZES:
            if self.shuffle in kinds and not getattr(self, size):
                raise ValueError(f"Shuffle `{self.shuffle}` needs `{size}`, at least 1. Give it.")
            if self.shuffle not in kinds and getattr(self, size):
                raise ValueError(f"Shuffle `{self.shuffle}` takes no `{size}`. Leave it out.")
        return self

    @model_validator(mode="after")
    def _live_is_read_once_as_it_grows(self) -> Self:
        if not self.live:
            return self
        if self.oversample:
            raise ValueError(f"Source `{self.name}` is live and has no end. Leave out `oversample`.")
        if self.shuffle not in ("none", "window"):
            raise ValueError(
                f"Source `{self.name}` is live, and shuffle `{self.shuffle}` needs all rows. "
                "Use `none`, or `window` with `window_rows`."
            )
        if any(getattr(self, name) is not None for name in _REFERENCE):
            raise ValueError(f"Source `{self.name}` is live and follows the published main. Name no other.")
        return self

    @property
    def order(self) -> Shuffle:
        """The order of an epoch."""
        return Shuffle(self.shuffle, self.page_rows, self.window_pages, self.window_rows)

    def canonical(self) -> dict[str, Any]:
        """What of the source is hashed."""
        fields = self.model_dump(mode="json", exclude_defaults=True, exclude=set(_REFERENCE))
        if self.name == self.table:
            del fields["name"]
        return fields


class BlendConfig(_Frozen):
    """An immutable blend. Make it with `blend_config`, change it with `updated`."""

    sources: tuple[BlendSource, ...]
    """All sources, with the weights that hold from step `offset` on."""
    schedule: BlendSchedule | None = None
    """Shares of a step that hold from step `offset` on, in place of weights."""
    seed: int = Field(0, ge=0, lt=1 << 64)
    """Seed of every shuffle."""
    pad: bool = False
    """Whether sources whose rows hold unlike numbers of tokens may stand together, padded to the longest."""
    parent: str = ""
    """For an update, the blend that holds before step `offset`."""
    offset: int = Field(0, ge=0, le=MAX_OFFSET)
    """For an update, the step from which `sources` hold."""

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
                f"The weights sum to {total} rows a step. Use at least 1 and at most {MAX_ROWS_PER_STEP:,}."
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
    def piece(self) -> Piece:
        """What holds from step `offset` on."""
        if self.schedule is not None:
            return self.schedule.piece(self.offset)
        return constant([source.weight for source in self.sources])

    def canonical(self) -> dict[str, Any]:
        """What is hashed and stored: everything but the references."""
        fields = self.model_dump(mode="json", exclude_defaults=True, exclude={"sources"})
        return {"format": FORMAT, "sources": [source.canonical() for source in self.sources], **fields}

    def canonical_json(self) -> bytes:
        """The canonical form as bytes, one for each blend."""
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
    def from_json(cls, data: bytes) -> Self:
        """The inverse of `canonical_json`; raises InvalidBlend for another format."""
        fields = json.loads(data)
        found = fields.pop("format", None)
        if found != FORMAT:
            raise InvalidBlend(
                f"This blend has format {found}, this Blender serves format {FORMAT}. "
                "Serve it with the version that made it."
            )
        return cls.model_validate(fields)


def id_of(canonical_json: bytes) -> str:
    """The id of the blend with these bytes."""
    return hashlib.blake2b(canonical_json, digest_size=16).hexdigest()


def blend_source(**fields: Any) -> BlendSource:
    """A source; raises InvalidBlend with a sentence for each field that is wrong."""
    return checked(BlendSource, fields)


def blend_config(
    sources: Sequence[BlendSource], seed: int = 0, schedule: Schedule | None = None, *, pad: bool = False
) -> BlendConfig:
    """A blend of its own, with a schedule where the sources have no weights; raises InvalidBlend."""
    fields = {"sources": tuple(sources), "seed": seed, "pad": pad}
    return checked(BlendConfig, fields | _schedule(schedule, sources))


def updated(
    parent: BlendConfig,
    offset: int,
    weights: Mapping[str, int],
    add: Sequence[BlendSource] = (),
    schedule: Schedule | None = None,
    *,
    pad: bool = False,
) -> BlendConfig:
    """The blend equal to `parent` before step `offset`, with `weights` or a `schedule` from there on.

    `weights` are rows a step by source name; a source it does not name keeps its weight, a weight of zero
    lets a source rest. A schedule replaces every weight. `add` are further sources, behind those of the
    parent, and it pads where either does. Raises InvalidBlend.
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
    return checked(BlendConfig, fields | _schedule(schedule, sources))


def _weighted(source: BlendSource, weight: int) -> BlendSource:
    if weight == source.weight:
        return source
    return blend_source(**{**source.model_dump(), "weight": weight})


def _schedule(schedule: Schedule | None, sources: Sequence[BlendSource]) -> dict[str, BlendSchedule]:
    return {} if schedule is None else {"schedule": blend_schedule(schedule, [one.name for one in sources])}
