"""The documents that enter and leave between two tables, each with its rule or reason."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from factory.explain.evidence import Evidence
from factory.explain.named_state import BEFORE, StateName
from factory.explain.stages.document_trace import Rejection
from factory.explain.table_version import TableVersion
from factory.lake.tables import Lake


@dataclass(frozen=True)
class Example:
    """A document with its reason: value and limit of a rule, or the document it duplicates and the kept one.

    `repository` is a sentence on the removal of its whole repository, `evidence` a phrase on the words or
    letters behind the value of a rule.
    """

    doc_id: str
    source: str | None
    key: str | None
    n_bytes: int | None
    value: float | None
    threshold: float | None
    duplicate_of: str | None
    kept_document: str | None
    repository: str | None
    evidence: str | None = None


@dataclass(frozen=True)
class Cause:
    """A rule or reason: `documents` it moves, and `alone`, documents that no other cause moves."""

    cause: str
    documents: int
    alone: int
    share: float
    n_bytes: int
    examples: list[Example]


@dataclass(frozen=True)
class Moved:
    """The documents that only one of the tables has; `share` is relative to that table."""

    documents: int
    share: float
    n_bytes: int
    causes: list[Cause]


@dataclass(frozen=True)
class State:
    """A table at a snapshot."""

    table: str
    snapshot: str  # text, because many JSON readers round numbers above 2^53
    documents: int


@dataclass(frozen=True)
class Diff:
    """Two states, the documents that leave the first and the documents that enter the second."""

    left: State
    right: State
    stay: int
    leave: Moved
    enter: Moved


def diff(lake: Lake, left: str, right: str | None, n: int) -> Diff:
    """Compare two tables, with `n` examples of each cause.

    Without `right`, compare the state that `left` names, or else the previous one, with the table as it is. A
    document leaves for a reason of the second table, and enters for a reason of the first. Raises the errors
    of `TableVersion`.
    """
    table, at, _ = left.partition("@")
    for name in filter(None, (left, right)):
        StateName.parse(name)  # before a table is read
    first = TableVersion.of(lake, left if at or right is not None else f"{left}@{BEFORE}")
    second = TableVersion.of(lake, table if right is None else right)
    before, after = first.documents(), second.documents()
    gone = before.filter(pc.invert(pc.is_in(before, after)))
    new = after.filter(pc.invert(pc.is_in(after, before)))
    return Diff(
        left=State(str(first.table), str(first.snapshot_id), len(before)),
        right=State(str(second.table), str(second.snapshot_id), len(after)),
        stay=len(before) - len(gone),
        leave=_moved(gone, of=first, against=second, total=len(before), n=n),
        enter=_moved(new, of=second, against=first, total=len(after), n=n),
    )


def _moved(ids: pa.Array, *, of: TableVersion, against: TableVersion, total: int, n: int) -> Moved:
    """The documents `ids` of one side, by the other side's reasons against them."""
    about, causes = of.about(ids), against.causes(ids)
    per_document = causes.group_by("doc_id").aggregate([("cause", "count")])
    rows = causes.join(about, "doc_id").join(per_document, "doc_id")
    alone = pc.cast(pc.equal(rows["cause_count"], 1), pa.int64())
    counted = (
        rows.append_column("alone", alone)
        .group_by("cause")
        .aggregate([("doc_id", "count"), ("alone", "sum"), ("n_bytes", "sum")])
        .sort_by([("doc_id_count", "descending"), ("cause", "ascending")])
    )
    return Moved(
        documents=len(ids),
        share=_share(len(ids), total),
        n_bytes=pc.sum(about["n_bytes"]).as_py() or 0,
        causes=[
            Cause(
                cause=row["cause"],
                documents=row["doc_id_count"],
                alone=row["alone_sum"],
                share=_share(row["doc_id_count"], total),
                n_bytes=row["n_bytes_sum"] or 0,
                examples=_examples(rows.filter(pc.equal(rows["cause"], row["cause"])), n, against),
            )
            for row in counted.to_pylist()
        ],
    )


def _examples(rows: pa.Table, n: int, against: TableVersion) -> list[Example]:
    """The `n` documents of the least ids, which are hashes."""
    fields = [name for name in Example.__dataclass_fields__ if name != "evidence"]
    first = rows.sort_by("doc_id").slice(0, n)
    examples = [Example(**row) for row in first.select(fields).to_pylist()]
    rejections = {
        example.doc_id: [Rejection(cause, example.value, example.threshold)]
        for example, cause in zip(examples, first["cause"].to_pylist(), strict=True)
        if example.value is not None and example.threshold is not None
    }
    phrases = {
        doc_id: phrase
        for table, snapshot_id in against.verdicts()
        for (doc_id, _), phrase in Evidence(against.lake, table, snapshot_id).phrases(rejections).items()
    }
    return [replace(example, evidence=phrases.get(example.doc_id)) for example in examples]


def _share(part: int, total: int) -> float:
    return part / total if total else 0.0
