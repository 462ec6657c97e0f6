"""The view of a stage on its tables: the interface that trace, diff, export and summary walk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from factory.errors import TableNotFound
from factory.explain.stages.document_trace import DocumentTrace
from factory.explain.stages.removals import Read, Removal
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.rejected import count_rejected
from factory.lake.tables import Lake, Published


@dataclass(frozen=True)
class Section:
    """A part of the summary: its name in JSON, its title for people, and a heading of its subjects, if any.

    Neighboring sections of one title share a table.
    """

    name: str
    title: str
    heading: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure of a section: of a dataset or a dedup group, as plain values and as lines for people."""

    section: str
    subject: str
    values: Any
    lines: Sequence[str]


@dataclass(frozen=True)
class SummaryScope:
    """The lake, datasets and dedup groups of a summary; rejected records are counted once a dataset."""

    lake: Lake
    datasets: Sequence[str]
    groups: Sequence[str] = ()
    tables: frozenset[TableName] = frozenset()
    _rejected: dict[str, dict[str, int]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def in_lake(cls, lake: Lake, datasets: Sequence[str], groups: Sequence[str] = ()) -> SummaryScope:
        """The summary's subjects, with the tables that the lake has."""
        return cls(lake, datasets, groups, frozenset(lake.names()))

    def rejected(self, dataset: str) -> dict[str, int]:
        """Return the rejected records of a dataset by reason; none if its asset writes no such table."""
        base = names.base(dataset)
        if base not in self._rejected:
            try:
                self._rejected[base] = count_rejected(self.lake, names.rejected(base))
            except TableNotFound:
                self._rejected[base] = {}
        return self._rejected[base]


class StageView(Protocol):
    """The view of a stage on its tables; a stage with nothing to say inherits a method."""

    stage: str
    """The name of the stage, as in `factory.lake.names`."""

    sections: Sequence[Section] = ()
    """The sections of the summary that `figures` fills."""

    def follow(self, read: Read, traces: Mapping[str, DocumentTrace]) -> Collection[str]:
        """Note the stage's tables that hold the documents of `traces` (by doc_id), and the facts they record.

        Returns the ids of the documents that the stage may have removed.
        """
        return traces.keys()

    def removals(self, read: Read, ids: pa.Array | None) -> Iterator[pa.RecordBatch]:
        """Yield rows of `REMOVALS`: of the documents `ids`, with sentences, or of all, without."""
        yield from ()

    def survivors(self, read: Read) -> Iterator[pa.RecordBatch]:
        """Yield `doc_id` and `reason` of the documents that a stage decides to keep for good."""
        yield from ()

    def explain(self, removals: Sequence[Removal]) -> str:
        """Return one sentence on the removals of a document."""
        rules = [
            _failure(removal.reason, removal.value, removal.limit)
            for removal in removals
            if removal.limit is not None
        ]
        if rules:
            return f"rejected by {len(rules)} rule(s): {', '.join(rules)}"
        return removals[0].sentence or removals[0].reason

    def line(self, trace: DocumentTrace) -> str:
        """Return the text behind one of the stage's tables in a trace for people, perhaps empty."""
        return ""

    def tables(self, scope: SummaryScope, dataset: str) -> Sequence[TableName]:
        """Return the tables of the stage through which the documents of a dataset pass."""
        return ()

    def count(self, scope: SummaryScope, published: Published) -> tuple[int | None, int]:
        """Return the rows into and out of one of these tables; None for all rows of the previous table."""
        return None, published.rows

    def figures(self, scope: SummaryScope) -> Iterator[Figure]:
        """Yield the stage's figures of the datasets and groups."""
        yield from ()


def removed(view: StageView, read: Read, ids: Collection[str]) -> dict[str, list[Removal]]:
    """Return the removals by a stage of those `ids` that it removed, by doc_id."""
    by_document: dict[str, list[Removal]] = defaultdict(list)
    if not ids:
        return by_document
    for batch in view.removals(read, pa.array(ids, pa.string())):
        for row in batch.to_pylist():
            by_document[row["doc_id"]].append(Removal(**row))
    return by_document


def count_by(rows: pa.Table, column: str) -> dict[str, int]:
    """Return how many rows have each value of `column`, most first."""
    counts = pc.value_counts(rows[column].combine_chunks()).to_pylist()
    return {
        str(pair["values"]): pair["counts"]
        for pair in sorted(counts, key=lambda pair: (-pair["counts"], str(pair["values"])))
    }


def counts_figure(section: str, subject: str, counts: Mapping[str, int]) -> Figure:
    """A figure of counts by word, in one line."""
    line = ", ".join(f"{word} {count:,}" for word, count in counts.items())
    return Figure(section, subject, dict(counts), [line or "none"])


def _failure(rule: str, measurement: float | None, limit: float) -> str:
    if measurement is None:
        return f"{rule} has no value (`missing: keep` would let it pass)"
    return f"{rule} is {' (limit '.join(_apart(measurement, limit))})"


def _apart(measurement: float, limit: float) -> tuple[str, str]:
    """Return a measurement and its limit with as many digits as tell them apart."""
    pairs = ((f"{measurement:.{digits}g}", f"{limit:.{digits}g}") for digits in range(6, 18))
    return next((pair for pair in pairs if pair[0] != pair[1]), (f"{measurement:g}", f"{limit:g}"))
