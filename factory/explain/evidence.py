"""What made a rule reject a document: worked out from the snapshots that its verdict was made from.

A verdict records rule, value and limit. The lineage of its table leads to the part of the signals with the
value, from there to the model and to the text, each at the snapshot that was read then. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.expressions import In

from factory.errors import TableNotFound
from factory.explain.stages.document_trace import Rejection
from factory.filters.evidence import Judgement, evidence
from factory.lake.names import TableName
from factory.lake.tables import Lake, Published
from spark_udfs.filters.language_id import LABEL, SCORE

_WORD_OF_RULE = {SCORE: LABEL}  # the column of words beside a rule's number; a category has its own name


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
        for rule, documents in by_rule.items():
            signals = next(self._signals_of(rule), None)
            if signals is not None:
                phrases |= self._phrases(rule, documents, signals)
        return phrases

    def _phrases(
        self, rule: str, documents: Mapping[str, Rejection], signals: Published
    ) -> dict[tuple[str, str], str]:
        """The phrases of one rule, whose values stand in `signals`."""
        words = self._words(rule, list(documents), signals)
        models = [self._model(*pair) for pair in _upstream(signals) if pair[0].namespace == "models"]
        texts = self._texts(list(documents), signals) if models else {}
        phrases = {}
        for doc_id, rejection in documents.items():
            word = words.get(doc_id)
            judgement = Judgement(texts.get(doc_id) or "", rejection.value > rejection.threshold, word)
            parts = [f"detected as `{word}`" if rule == SCORE else f"`{word}`"] if word else []
            parts += [phrase for model in models if judgement.text and (phrase := evidence(model, judgement))]
            if parts:
                phrases[doc_id, rule] = "; ".join(parts)
        return phrases

    def _signals_of(self, rule: str) -> Iterator[Published]:
        """Yield the signals with the values of a rule, those of the last round first."""
        waiting = [(self.verdicts, self.snapshot_id)]
        while waiting:
            table, snapshot_id = waiting.pop(0)
            try:
                version = self.lake.published_at(table, snapshot_id)
            except TableNotFound:
                continue
            if table.namespace == "signals":
                if rule in self.lake.table(table).schema().column_names:
                    yield version
                continue
            upstream = _upstream(version)
            waiting += [pair for pair in upstream if pair[0].namespace in ("signals", "filtered")]

    def _words(self, rule: str, ids: Sequence[str], signals: Published) -> dict[str, str | None]:
        """The words beside the numbers of a rule, by doc_id: detected language or class."""
        column = _WORD_OF_RULE.get(rule, rule)
        if column not in self.lake.table(signals.table).schema().column_names:
            return {}
        rows = self.lake.read(signals.table, ["doc_id", column], In("doc_id", ids), signals.snapshot_id)
        if not pa.types.is_string(rows.schema.field(column).type):
            return {}
        return dict(zip(rows["doc_id"].to_pylist(), rows[column].to_pylist(), strict=True))

    def _texts(self, ids: Sequence[str], signals: Published) -> dict[str, str | None]:
        raw, snapshot_id = next(pair for pair in _upstream(signals) if pair[0].namespace == "raw")
        rows = self.lake.read(raw, ["doc_id", "text"], In("doc_id", ids), snapshot_id)
        return dict(zip(rows["doc_id"].to_pylist(), rows["text"].to_pylist(), strict=True))

    def _model(self, table: TableName, snapshot_id: int) -> pa.Table:
        if (table, snapshot_id) not in self._models:
            self._models[table, snapshot_id] = self.lake.read(table, snapshot_id=snapshot_id)
        return self._models[table, snapshot_id]


def _upstream(version: Published) -> list[tuple[TableName, int]]:
    return [
        (TableName.parse(table), snapshot_id)
        for table, snapshot_id in sorted(version.lineage.upstream.items())
    ]
