"""What a blend is: its sources, their weights and its seed, under an id that is the hash of all of it.

The id is a hash of the canonical JSON: fields that hold their default are left out (so a field added
later changes no id that exists), references to snapshots too, and every source carries the content
fingerprint of its table instead. The same data on two machines makes the same blend, whatever the
snapshot ids are. What is hashed decides every row of the blend; a default must therefore never change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from blender.errors import InvalidBlend
from blender.mixture import MAX_OFFSET, MAX_ROWS_PER_STEP, ConstantPiece
from blender.shuffle import Shuffle

FORMAT = 1  # of the order of rows: mixture, shuffle and their keys. Another order is another format.

PROVENANCE = ("offset", "source", "ordinal", "epoch")  # columns every batch has
SEGMENT_LENGTHS = "segment_lengths"  # column that comes with `tokens`: lengths of the documents in a row

_REFERENCE = ("snapshot", "branch", "tag")

_Model = TypeVar("_Model", bound=BaseModel)


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
    shuffle: Literal["none", "page", "page_window", "row"] = "none"
    """Order of an epoch: ordinals as they are, pages permuted, rows permuted in windows of permuted pages, or
    all rows permuted; with a new key each epoch."""
    page_rows: int = Field(0, ge=0)
    """Consecutive ordinals that are a page, for `page` and `page_window`, however files are cut."""
    window_pages: int = Field(0, ge=0)
    """Pages whose rows are permuted together, for `page_window`."""
    columns: tuple[str, ...] = ("tokens",)
    """Columns to deliver. `tokens` brings `segment_lengths` with it where the table has `segments`."""
    content: str = ""
    """Content fingerprint of the snapshot; filled when the blend is made."""

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
        for size, kinds in (("page_rows", ("page", "page_window")), ("window_pages", ("page_window",))):
            if self.shuffle in kinds and not getattr(self, size):
                raise ValueError(f"Shuffle `{self.shuffle}` needs `{size}`, at least 1. Give it.")
            if self.shuffle not in kinds and getattr(self, size):
                raise ValueError(f"Shuffle `{self.shuffle}` takes no `{size}`. Leave it out.")
        return self

    @property
    def order(self) -> Shuffle:
        """The order of an epoch."""
        return Shuffle(self.shuffle, self.page_rows, self.window_pages)

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
    seed: int = Field(0, ge=0, lt=1 << 64)
    """Seed of every shuffle."""
    parent: str = ""
    """For an update, the blend that holds before step `offset`."""
    offset: int = Field(0, ge=0, le=MAX_OFFSET)
    """For an update, the step from which `sources` hold."""

    @model_validator(mode="after")
    def _sources_make_a_step(self) -> Self:
        names = [source.name for source in self.sources]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"Two sources are called `{repeated[0]}`. Give one of them another `name`.")
        total = sum(source.weight for source in self.sources)
        if not 0 < total <= MAX_ROWS_PER_STEP:
            raise ValueError(
                f"The weights sum to {total} rows a step. Use at least 1 and at most {MAX_ROWS_PER_STEP:,}."
            )
        if self.offset and not self.parent:
            raise ValueError(
                f"Offset {self.offset} is given without a parent. Only an update begins at an offset."
            )
        return self

    @property
    def weights(self) -> tuple[int, ...]:
        """Rows a step of each source."""
        return tuple(source.weight for source in self.sources)

    def canonical(self) -> dict[str, Any]:
        """What is hashed and stored: everything but the references."""
        fields = self.model_dump(mode="json", exclude_defaults=True, exclude={"sources"})
        return {"format": FORMAT, "sources": [source.canonical() for source in self.sources], **fields}

    def canonical_json(self) -> bytes:
        """The canonical form as bytes, one for each blend."""
        text = json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode()

    @property
    def id(self) -> str:
        """32 hexadecimal digits; raises InvalidBlend while a source has no content fingerprint."""
        for source in self.sources:
            if not source.content:
                raise InvalidBlend(f"Source `{source.name}` is not pinned. Create the blend through Blender.")
        return hashlib.blake2b(self.canonical_json(), digest_size=16).hexdigest()

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


def blend_source(**fields: Any) -> BlendSource:
    """A source; raises InvalidBlend with a sentence for each field that is wrong."""
    return _checked(BlendSource, fields)


def blend_config(sources: Sequence[BlendSource], seed: int = 0) -> BlendConfig:
    """A blend of its own; raises InvalidBlend."""
    return _checked(BlendConfig, {"sources": tuple(sources), "seed": seed})


def updated(
    parent: BlendConfig, offset: int, weights: Mapping[str, int], add: Sequence[BlendSource] = ()
) -> BlendConfig:
    """The blend equal to `parent` before step `offset` and with `weights` from there on.

    `weights` are rows a step by source name; a source it does not name keeps its weight, a weight of zero
    lets a source rest. `add` are further sources, behind those of the parent. Raises InvalidBlend.
    """
    known = {source.name for source in parent.sources}
    unknown = sorted(set(weights) - known)
    if unknown:
        raise InvalidBlend(
            f"The blend has no source `{unknown[0]}`. Its sources: {', '.join(sorted(known))}."
        )
    kept = [
        blend_source(**{**source.model_dump(), "weight": weights.get(source.name, source.weight)})
        for source in parent.sources
    ]
    fields = {"sources": (*kept, *add), "seed": parent.seed, "parent": parent.id, "offset": offset}
    return _checked(BlendConfig, fields)


def pieces(history: Sequence[BlendConfig]) -> tuple[list[ConstantPiece], list[int]]:
    """The pieces of a blend and their first steps, from its first ancestor to itself.

    An update at an offset replaces whatever its ancestors planned from there on.
    """
    n_sources = len(history[-1].sources)
    knots: list[tuple[int, tuple[int, ...]]] = []
    for config in history:
        while knots and knots[-1][0] >= config.offset:
            knots.pop()
        knots.append((config.offset, config.weights))
    rows = [weights + (0,) * (n_sources - len(weights)) for _, weights in knots]
    return [ConstantPiece(weights) for weights in rows], [start for start, _ in knots]


def _checked(model: type[_Model], fields: Mapping[str, Any]) -> _Model:
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        raise InvalidBlend(" ".join(_sentence(problem) for problem in error.errors())) from error


def _sentence(problem: Any) -> str:
    reason = problem.get("ctx", {}).get("error")
    if reason is not None:
        return str(reason)
    field = ".".join(str(part) for part in problem["loc"]) or "blend"
    return f"`{field}` is {problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}."
