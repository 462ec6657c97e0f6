"""The plain records that the core, the client and `factory trace` share; no library is behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """A stretch of a document inside a row; `doc_offset` and `length` in tokens."""

    doc_id: str
    doc_offset: int
    length: int


@dataclass(frozen=True)
class ExplainedRow:
    """Where a row of a step comes from; `row` is its place in the step."""

    row: int
    source: str
    table: str
    ordinal: int
    epoch: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Place:
    """A step that serves a row: the row's place in the step and the epoch it belongs to."""

    offset: int
    row: int
    epoch: int


@dataclass(frozen=True)
class Source:
    """A source as a client asks for it, and as the server reports it back (pinned, with its content).

    `weight` is rows in every step, 0 in a blend that has a schedule. At most one of `snapshot`, `branch` and
    `tag`; none means the published main. The server checks all of it; `blender.spec.config.BlendSource` says
    what each field means.
    """

    table: str
    weight: int = 0
    name: str = ""
    oversample: bool = False
    shuffle: str = "none"
    page_rows: int = 0
    window_pages: int = 0
    window_rows: int = 0
    live: bool = False
    columns: tuple[str, ...] = ("tokens",)
    snapshot: int | None = None
    branch: str | None = None
    tag: str | None = None
    content: str = ""


@dataclass(frozen=True)
class Schedule:
    """Shares of a step that change along the steps, in place of weights.

    `knots` are (step of the blend, proportions by source name), ascending; proportions have any sum, a source
    that is not named has none. Before the first knot its proportions hold, after the last one those of the
    last. In between, `stepped` keeps those of the knot before, `linear` goes straight to the next and
    `cosine` along half a wave; `constant` has one knot.
    """

    rows_per_step: int
    knots: tuple[tuple[int, Mapping[str, float]], ...]
    kind: str = "linear"


@dataclass(frozen=True)
class BlendRecord:
    """A blend on record; `parent` is empty and `offset` 0 for a blend that is no update."""

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
    """A source of an open blend; `steps` its rows last, None where they always do.

    Of a live source `snapshot` and `rows` are what the Blender last saw. `tokenizer` is the identity of what
    made the tokens and `tokenizer_table` where it was then; `tokens` are those of all rows, `token_share`
    is the source's part in those of a step and `padding` the share that its rows lack to be as long as the
    longest of the blend, both by the last weights or the last knot. None where the table does not say.
    """

    name: str
    table: str
    snapshot: int
    content: str
    rows: int
    weight: int
    oversample: bool
    shuffle: str
    page_rows: int
    window_pages: int
    window_rows: int
    live: bool
    columns: tuple[str, ...]
    steps: int | None
    tokenizer: str | None = None
    tokenizer_table: str | None = None
    sequence_length: int | None = None
    tokens: int | None = None
    token_share: float | None = None
    padding: float | None = None


@dataclass(frozen=True)
class DescribedPiece:
    """Weights (in the order of the sources) that hold from step `offset` on; none for a schedule."""

    offset: int
    weights: tuple[int, ...]
    rows_per_step: int


@dataclass(frozen=True)
class Description:
    """An open blend; `steps` is its length, None where it never ends; `padding` is a share of a step."""

    blend: str
    sources: tuple[DescribedSource, ...]
    pieces: tuple[DescribedPiece, ...]
    steps: int | None
    pad: bool = False
    padding: float | None = None
