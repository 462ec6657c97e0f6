"""What made a rule reject a document: worked out from the snapshots that its verdict was made from.

A verdict records rule, value and limit. The lineage of its table leads to the part of the signals with the
value, from there to the model and to the text, each at the snapshot that was read then, partition by
partition. Nothing is stored. Where a snapshot has expired or a text is lost, the phrase says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.expressions import In

from factory.errors import DamagedFile, SourceChanged, TableNotFound, first_line
from factory.explain.cluster_evidence import cluster_phrases
from factory.explain.stages.document_trace import Rejection
from factory.filters.evidence import Judgement, evidence
from factory.lake.names import TableName
from factory.lake.tables import Lake
from spark_udfs.filters.language_id import LABEL, SCORE

_WORD_OF_RULE = {SCORE: LABEL}  # the column of words beside a rule's number; a category has its own name


@dataclass(frozen=True)
class _Version:
    """A snapshot of a table, and the snapshots that the rows of one partition were made from."""

    table: TableName
    snapshot_id: int
    upstream: Sequence[tuple[TableName, int]]


@dataclass(frozen=True)
class Evidence:
    """What made the rejections of a table of verdicts, at one snapshot."""

    lake: Lake
    verdicts: TableName
    snapshot_id: int
    _models: dict[tuple[TableName, int], pa.Table] = field(default_factory=dict, init=False, repr=False)

    def phrases(self, rejections: Mapping[str, Sequence[Rejection]]) -> dict[tuple[str, str], str]:
        """Return phrases by (doc_id, rule) for `rejections`, by doc_id; a rule without evidence has none."""
        phrases: dict[tuple[str, str], str] = {}
        by_rule: dict[str, dict[str, Rejection]] = {}
        for doc_id, failures in rejections.items():
            for rejection in failures:
                by_rule.setdefault(rejection.rule, {})[doc_id] = rejection
        partitions = self._partitions(list(rejections))
        for rule, documents in by_rule.items():
            for partition in sorted(set(partitions.values()), key=str):
                of_partition = {
                    doc_id: rejection
                    for doc_id, rejection in documents.items()
                    if partitions.get(doc_id) == partition
                }
                if of_partition:
                    phrases |= self._phrases_or_why_none(rule, of_partition, partition)
        return phrases

    def _partitions(self, ids: Sequence[str]) -> dict[str, str | None]:
        """The partition of each verdict, by doc_id: each was made from snapshots of its own."""
        rows = self.lake.read(self.verdicts, ["doc_id", "partition"], In("doc_id", ids), self.snapshot_id)
        return dict(zip(rows["doc_id"].to_pylist(), rows["partition"].to_pylist(), strict=True))

    def _phrases_or_why_none(
        self, rule: str, documents: Mapping[str, Rejection], partition: str | None
    ) -> dict[tuple[str, str], str]:
        try:
            signals = next(self._signals_of(rule, partition), None)
            return {} if signals is None else self._phrases(rule, documents, signals)
        except (TableNotFound, DamagedFile, SourceChanged) as error:  # the rest of the report stands
            why = f"what made it cannot be told: {first_line(error)}"
            return {(doc_id, rule): why for doc_id in documents}

    def _phrases(
        self, rule: str, documents: Mapping[str, Rejection], signals: _Version
    ) -> dict[tuple[str, str], str]:
        """The phrases of one rule with values in `signals`."""
        documents = {doc_id: failure for doc_id, failure in documents.items() if failure.value is not None}
        words = self._words(rule, list(documents), signals)
        models = [self._model(*pair) for pair in signals.upstream if pair[0].namespace == "models"]
        texts = self._texts(list(documents), signals) if models else {}
        of_clusters = cluster_phrases(self.lake, signals.upstream, list(documents))
        phrases = {}
        for doc_id, rejection in documents.items():
            word = words.get(doc_id)
            above = rejection.value is not None and rejection.value > rejection.threshold
            judgement = Judgement(texts.get(doc_id) or "", above, word)
            parts = [f"detected as `{word}`" if rule == SCORE else f"`{word}`"] if word else []
            parts += [phrase for model in models if judgement.text and (phrase := evidence(model, judgement))]
            parts += [of_clusters[doc_id]] if doc_id in of_clusters else []
            if parts:
                phrases[doc_id, rule] = "; ".join(parts)
        return phrases

    def _signals_of(self, rule: str, partition: str | None) -> Iterator[_Version]:
        """Yield the signals with the values of a rule, the last round's first."""
        waiting = [(self.verdicts, self.snapshot_id)]
        while waiting:
            version = self._version(*waiting.pop(0), partition)
            if version.table.namespace == "signals":
                if rule in self.lake.table(version.table).schema().column_names:
                    yield version
                continue
            waiting += [pair for pair in version.upstream if pair[0].namespace in ("signals", "filtered")]

    def _version(self, table: TableName, snapshot_id: int, partition: str | None) -> _Version:
        """The rows of a partition in a snapshot, or all; raises TableNotFound if it has expired."""
        lineage = self.lake.published_at(table, snapshot_id).lineage
        if partition is not None:
            lineage = self.lake.partitions(table, snapshot_id).lineage.get(partition, lineage)
        upstream = [
            (TableName.parse(name), upstream_id) for name, upstream_id in sorted(lineage.upstream.items())
        ]
        return _Version(table, snapshot_id, upstream)

    def _words(self, rule: str, ids: Sequence[str], signals: _Version) -> dict[str, str | None]:
        """The words that go with the numbers of a rule, by doc_id: detected language or class."""
        column = _WORD_OF_RULE.get(rule, rule)
        if column not in self.lake.table(signals.table).schema().column_names:
            return {}
        rows = self.lake.read(signals.table, ["doc_id", column], In("doc_id", ids), signals.snapshot_id)
        if not pa.types.is_string(rows.schema.field(column).type):
            return {}
        return dict(zip(rows["doc_id"].to_pylist(), rows[column].to_pylist(), strict=True))

    def _texts(self, ids: Sequence[str], signals: _Version) -> dict[str, str | None]:
        raw, snapshot_id = next(pair for pair in signals.upstream if pair[0].namespace == "raw")
        self.lake.published_at(raw, snapshot_id)
        rows = self.lake.read(raw, ["doc_id", "text"], In("doc_id", ids), snapshot_id)
        return dict(zip(rows["doc_id"].to_pylist(), rows["text"].to_pylist(), strict=True))

    def _model(self, table: TableName, snapshot_id: int) -> pa.Table:
        if (table, snapshot_id) not in self._models:
            self.lake.published_at(table, snapshot_id)
            self._models[table, snapshot_id] = self.lake.read(table, snapshot_id=snapshot_id)
        return self._models[table, snapshot_id]
