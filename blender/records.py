"""Plain records that the core, the client and `factory trace` share; they need no library.

The fields of a record that travels have the names of its message's fields in `blender.proto`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

ShuffleKind = Literal["none", "window", "page", "page_window", "row"]


@dataclass(frozen=True)
class Segment:
    """A stretch of a document inside a row; `doc_offset` and `length` in tokens."""

    doc_id: str
    doc_offset: int
    length: int


@dataclass(frozen=True)
class ExplainedRow:
    """The origin of a row of a step; `row` is its position in the step."""

    row: int
    source: str
    table: str
    ordinal: int
    epoch: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class RowPosition:
    """A position at which a blend serves a row of a source: step, position in the step, and epoch."""

    offset: int
    row: int
    epoch: int


@dataclass(frozen=True)
class Source:
    """One table of a blend and how to read it; the server checks it (`blender.spec.source`).

    At most one of `snapshot`, `branch` and `tag`; without them Blender pins the published main. A blend on
    record has each source's snapshot and content.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}  # where it is read from a file

    table: str
    """The table, `namespace.name`."""
    weight: int = 0
    """Rows in every step. Zero pauses the source; in a blend with a schedule it is zero throughout."""
    name: str = ""
    """The source's name, unique in the blend: the table's name unless given. It keys the shuffle."""
    oversample: bool = False
    """Whether another epoch begins when the rows are used up; otherwise the blend ends there."""
    shuffle: ShuffleKind = "none"
    """Order of an epoch: ordinals as they are, rows permuted in windows of consecutive ordinals, pages
    permuted, rows permuted in windows of permuted pages, or all rows permuted; with a new key each epoch."""
    page_rows: int = 0
    """Consecutive ordinals per page, for `page` and `page_window`, wherever files are cut."""
    window_pages: int = 0
    """Pages whose rows are permuted together, for `page_window`."""
    window_rows: int = 0
    """Consecutive ordinals that are permuted together, for `window`."""
    validation: bool = False
    """Whether the blend may mix the rows of this validation table with those of training tables."""
    live: bool = False
    """Whether the table grows; Blender then waits for rows that do not exist yet. A live source is read once,
    in its own order or in windows."""
    columns: tuple[str, ...] = ("tokens",)
    """Columns to deliver. `tokens` brings `segment_lengths` with it where the table has `segments`."""
    snapshot: int | None = None
    """Read this snapshot."""
    branch: str | None = None
    """Read the head of this branch."""
    tag: str | None = None
    """Read the snapshot with this tag."""
    content: str = ""
    """Content fingerprint of the snapshot; of a live source, the table's UUID. Blender fills it in."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.table)


class Knot(NamedTuple):
    """The proportions at a step of the blend, by source name and of any sum."""

    offset: int
    proportions: Mapping[str, float]


@dataclass(frozen=True)
class Schedule:
    """Shares of a step that change along the steps, in place of weights.

    `knots` are pairs of a step of the blend and its proportions, in ascending order (see `Knot`); a source
    that a knot does not name has no share. The first knot's proportions also hold before it, the last knot's
    for ever after. Between two knots `stepped` keeps the earlier one's, `linear` follows a straight line and
    `cosine` half a wave; `constant` has a single knot.
    """

    rows_per_step: int
    knots: tuple[tuple[int, Mapping[str, float]], ...]
    kind: str = "linear"


@dataclass(frozen=True)
class BlendRecord:
    """A blend on record; `parent` is empty and `offset` 0 unless it is an update."""

    id: str
    sources: tuple[Source, ...]
    seed: int
    parent: str
    offset: int
    retired: bool
    schedule: Schedule | None = None
    pad: bool = False


@dataclass(frozen=True)
class DescribedSource:
    """A source of an open blend.

    For a live source, `rows` and the snapshot are as Blender last saw them. `steps` is how many steps its
    rows last; None if they never run out. The rest is None where the table does not say: `tokenizer`
    identifies the tokenizer that made the tokens, `tokenizer_table` was its table then, and `vocabulary` is
    the size of its vocabulary; `sequence_length` is the tokens of a full row, `tokens` the tokens of all
    rows. By the last weights or the last knot, `token_share` is the source's share of a step's tokens, and
    `padding` the share of its rows that is padding once they are as long as the blend's longest.
    """

    source: Source
    rows: int
    steps: int | None = None
    tokenizer: str | None = None
    tokenizer_table: str | None = None
    sequence_length: int | None = None
    tokens: int | None = None
    token_share: float | None = None
    padding: float | None = None
    vocabulary: int | None = None


@dataclass(frozen=True)
class DescribedPiece:
    """Weights, in the order of the sources, that hold from step `offset` on; empty for a schedule."""

    offset: int
    weights: tuple[int, ...]
    rows_per_step: int


@dataclass(frozen=True)
class Description:
    """An open blend; `steps` is its length, None if it never ends; `padding` is a share of a step."""

    blend: str
    sources: tuple[DescribedSource, ...]
    pieces: tuple[DescribedPiece, ...]
    steps: int | None = None
    pad: bool = False
    padding: float | None = None
