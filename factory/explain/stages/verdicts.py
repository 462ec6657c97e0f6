"""The view of a stage that judges documents by rules, in a table of verdicts (`FILTERED`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from factory.explain.stages import rounds
from factory.explain.stages.document_trace import DocumentTrace
from factory.explain.stages.removals import Read, removals_of
from factory.explain.stages.stage import Figure, Section, StageView, SummaryScope, count_by, counts_figure
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.filters import FILTERED, WITHOUT_VALUE
from factory.lake.tables import Published
from factory.suggestions import quoted


@dataclass(frozen=True)
class VerdictView(StageView):
    """The view of a `stage` with verdicts in `namespace`, a table a dataset.

    A document that fails a rule has the outcome `outcome`; `section` of the summary counts documents by rule.
    """

    stage: str
    namespace: str
    outcome: str
    section: Section

    @property
    def sections(self) -> Sequence[Section]:  # type: ignore[override]
        return self.section, rounds.SECTION

    def follow(self, read: Read, traces: Mapping[str, DocumentTrace]) -> Collection[str]:
        rejected = []
        for table in self._tables(read):
            columns = ["doc_id", "kept", *self._without_value(read, table)]
            for batch in read.batches(table, FILTERED, columns, pa.array(traces, pa.string())):
                for row in batch.to_pylist():
                    traces[row["doc_id"]].note(table, read.snapshot(table))
                    traces[row["doc_id"]].without_value += row.get(WITHOUT_VALUE) or []
                    rejected += [] if row["kept"] else [row["doc_id"]]
        return rejected

    def removals(self, read: Read, ids: pa.Array | None) -> Iterator[pa.RecordBatch]:
        for table in self._tables(read):
            for batch in read.batches(table, FILTERED, ["doc_id", "rejections"], ids, kept=False):
                rejections = batch["rejections"]
                failed = pc.list_flatten(rejections)
                yield removals_of(
                    doc_id=batch["doc_id"].take(pc.list_parent_indices(rejections)),
                    outcome=self.outcome,
                    reason=pc.struct_field(failed, "rule"),
                    value=pc.struct_field(failed, "value"),
                    limit=pc.struct_field(failed, "threshold"),
                )

    def line(self, trace: DocumentTrace) -> str:
        n_failed = len(trace.rejections) if trace.outcome == self.outcome else 0
        if n_failed:
            return f"fails {n_failed} rule(s)"
        without = f", without a value of {quoted(trace.without_value)}" if trace.without_value else ""
        return f"passes every rule{without}"

    def tables(self, scope: SummaryScope, dataset: str) -> Sequence[TableName]:
        return (names.verdicts(scope.tables, dataset, self.namespace),)

    def count(self, scope: SummaryScope, published: Published) -> tuple[int | None, int]:
        verdicts = scope.lake.read(published.table, ["kept"])["kept"]
        return None, int(pc.sum(verdicts).as_py() or 0)

    def figures(self, scope: SummaryScope) -> Iterator[Figure]:
        for dataset in scope.datasets:
            table = names.verdicts(scope.tables, dataset, self.namespace)
            if table in scope.tables:
                rejections = scope.lake.read(table, ["rejections"])["rejections"].combine_chunks()
                rules = pc.struct_field(pc.list_flatten(rejections), "rule")
                counts = count_by(pa.table({"rule": rules}), "rule")
                yield counts_figure(self.section.name, dataset, counts)
                figure = rounds.removed_by_round(scope, dataset, table)
                yield from [figure] if figure is not None else []

    def _without_value(self, read: Read, table: TableName) -> list[str]:
        """The column of rules without a value, if the verdicts have it, as of this version on."""
        return [WITHOUT_VALUE] if read.has_rows(table) and WITHOUT_VALUE in read.columns(table) else []

    def _tables(self, read: Read) -> Sequence[TableName]:
        """The tables of verdicts: of the dataset that is read, or else of every dataset."""
        if read.dataset is None:
            return read.tables(self.namespace)
        return [names.verdicts(read.names, read.dataset, self.namespace)]
