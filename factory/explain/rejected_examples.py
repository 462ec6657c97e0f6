"""A few rejected documents of each rule, with the evidence in their texts, for a data team to read first."""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass

from pyiceberg.expressions import In

from factory.explain.evidence import Evidence
from factory.explain.stages.document_trace import Rejection
from factory.lake import names
from factory.lake.files.stream import stream
from factory.lake.names import TableName
from factory.lake.schemas.filters import FILTERED
from factory.lake.tables import Lake

N_EXAMPLES = 2  # of a rule


@dataclass(frozen=True)
class RejectedExample:
    """A document that a rule rejected, with number, limit and evidence; `key` is empty if its row is gone."""

    rule: str
    doc_id: str
    key: str
    measurement: float | None
    threshold: float
    evidence: str


def rejected_examples(lake: Lake, verdicts: TableName, snapshot_id: int) -> list[RejectedExample]:
    """Return the documents of the least ids, which are hashes, of each rule of a table of verdicts."""
    by_rule: dict[str, list[tuple[str, float | None, float]]] = defaultdict(list)
    columns = FILTERED.columns
    projection = columns.empty_table().select(["doc_id", "rejections"]).schema
    for batch in stream(lake.table(verdicts), snapshot_id, projection):
        for row in batch.to_pylist():
            for failure in row["rejections"] or []:
                documents = by_rule[failure["rule"]]
                documents.append((row["doc_id"], failure["value"], failure["threshold"]))
        for rule, documents in by_rule.items():
            by_rule[rule] = heapq.nsmallest(N_EXAMPLES, documents)
    rejections: dict[str, list[Rejection]] = defaultdict(list)
    for rule, documents in sorted(by_rule.items()):
        for doc_id, number, threshold in documents:
            rejections[doc_id].append(Rejection(rule, number, threshold))
    phrases = Evidence(lake, verdicts, snapshot_id).phrases(rejections)
    keys = _keys(lake, verdicts, list(rejections))
    return [
        RejectedExample(
            rule, doc_id, keys.get(doc_id, ""), number, threshold, phrases.get((doc_id, rule), "")
        )
        for rule, documents in sorted(by_rule.items())
        for doc_id, number, threshold in documents
    ]


def _keys(lake: Lake, verdicts: TableName, ids: list[str]) -> dict[str, str]:
    raw = names.raw(verdicts.name)
    if not ids or raw not in lake.names():
        return {}
    rows = lake.read(raw, ["doc_id", "key"], In("doc_id", ids))
    return dict(zip(rows["doc_id"].to_pylist(), rows["key"].to_pylist(), strict=True))
