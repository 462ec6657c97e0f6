"""The path of one document through the pipeline, as the stages' views tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from factory.explain.stages.removals import Removal
from factory.lake.names import TableName

UNDER_WAY = "under_way"  # the outcome of a document that no stage removed and no sequence holds


@dataclass(frozen=True)
class Rejection:
    """A rule that a document fails: the measured value and the threshold it breaks.

    The value is None if the document has none and the rule rejects such documents. `evidence` is what in the
    text made the value, where there is something to say.
    """

    rule: str
    value: float | None
    threshold: float
    evidence: str | None = None


@dataclass(frozen=True)
class Side:
    """The part of a dataset that holds a document, and why: its draw is below the share, or not.

    The draw is a hash of the repository or key that `drawn_by` names.
    """

    part: Literal["training", "validation"]
    drawn_by: str
    draw: float
    share: float

    def __str__(self) -> str:
        below = "below" if self.part == "validation" else "not below"
        return f"{self.part}, because its {self.drawn_by} draws {self.draw:.6f}, {below} {self.share:g}"


@dataclass(frozen=True)
class Serving:
    """A step of a blend that serves a piece of a document, or of the text that it had before."""

    blend: str
    offset: int
    epoch: int
    ordinal: int
    of_earlier_text: bool = False


@dataclass(frozen=True)
class StoredStep:
    """A durable batch that holds a step of a blend, `offset`."""

    uri: str
    namespace: str
    """The id of its namespace."""
    step: int
    offset: int


@dataclass
class DocumentTrace:
    """The path of one document through the pipeline.

    `tables` are the tables that hold it, with their snapshots, in pipeline order. `outcome` is `bad_record`,
    the word of a removal (`filtered`, `duplicate`, `repository`, ...), `packed`, `served` or `under_way`, and
    `reason` one sentence on it. A duplicate names the document that it duplicates and the one kept in its
    place; `duplicate_name` and `kept_name` are their sources and keys. `sequences` is the packed table of its
    placements, and `side` says why it is that table, if the dataset has a validation part. `without_value`
    are the rules that it passes without a value; `cluster` is its cluster with a few words. `variants` are
    its traces through the variants of its dataset, by name, and `descendants` the traces of the documents
    that are made from it in other datasets.
    """

    doc_id: str
    dataset: str
    source: str
    key: str
    about: dict[str, Any]
    content_hash: str = ""
    outcome: str = UNDER_WAY
    reason: str = ""
    tables: dict[str, int] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    without_value: list[str] = field(default_factory=list)
    duplicate_of: str | None = None
    duplicate_name: str | None = None
    kept_document: str | None = None
    kept_name: str | None = None
    similarity: float | None = None
    cluster: str = ""
    component: str | None = None
    position: int | None = None
    placements: list[tuple[int, int, int]] = field(default_factory=list)  # (ordinal, doc_offset, length)
    sequences: str = ""
    side: Side | None = None
    servings: list[Serving] = field(default_factory=list)
    stored: list[StoredStep] = field(default_factory=list)
    variants: dict[str, DocumentTrace] = field(default_factory=dict)
    descendants: list[DocumentTrace] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The source and key, as people read them and `factory trace` takes them."""
        return f"{self.source} / {self.key}"

    def in_variant(self, name: str) -> DocumentTrace:
        """Start a trace with the same origin in `variants`."""
        self.variants[name] = DocumentTrace(
            self.doc_id,
            name,
            self.source,
            self.key,
            self.about,
            self.content_hash,
            tables=dict(self.tables),
        )
        return self.variants[name]

    def note(self, table: TableName, snapshot_id: int) -> None:
        """Record a table that holds the document."""
        self.tables[str(table)] = snapshot_id

    def leave(self, removals: Sequence[Removal], sentence: str) -> None:
        """End the trace with the removals by one stage, and a sentence on them; the last removal counts."""
        self.outcome, self.reason = removals[-1].outcome, sentence
        for removal in removals:
            if removal.limit is None:
                self.duplicate_of, self.similarity = removal.partner, removal.value
                self.kept_document = removal.kept_document
            else:
                self.rejections.append(Rejection(removal.reason, removal.value, removal.limit))
