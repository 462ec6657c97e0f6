"""The view of synthesis: what workers made of a document, and the totals of each job."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from factory.counted import counted
from factory.explain.stages.document_trace import DocumentTrace
from factory.explain.stages.removals import Read
from factory.explain.stages.stage import Figure, Section, StageView, SummaryScope
from factory.lake import names
from factory.lake.names import SYNTHESIS, TableName
from factory.lake.schemas.synthesis import ITEMS

_COLUMNS = ("doc_id", "n_records", "n_refusals")


class SynthesisView(StageView):
    """The jobs that read a dataset, and the job that makes one."""

    stage = SYNTHESIS
    sections = (Section("synthesis", "Synthesis", "dataset"),)

    def follow(self, read: Read, traces: Mapping[str, DocumentTrace]) -> Collection[str]:
        for table in _jobs_on(read):
            for batch in read.batches(table, ITEMS, _COLUMNS, pa.array(traces, pa.string())):
                for row in batch.to_pylist():
                    trace = traces[row["doc_id"]]
                    trace.about[f"made into {table.name}"] = _phrase(row["n_records"], row["n_refusals"])
        return ()

    def figures(self, scope: SummaryScope) -> Iterator[Figure]:
        for dataset in scope.datasets:
            table = names.synthesis(dataset)
            if table in scope.tables and dataset == names.base(dataset):
                rows = scope.lake.read(table, ["n_records", "n_refusals", "seconds"])
                n_records, n_refusals, seconds = (pc.sum(column).as_py() or 0 for column in rows.columns)
                values = {
                    "documents": rows.num_rows,
                    "records": n_records,
                    "refusals": n_refusals,
                    "seconds": round(seconds, 3),
                }
                line = (
                    f"{_phrase(n_records, n_refusals)} of {counted(rows.num_rows, 'document')}, "
                    f"in {seconds:,.1f} s of the workers"
                )
                yield Figure("synthesis", dataset, values, [line])


VIEW = SynthesisView()


def _jobs_on(read: Read) -> Iterator[TableName]:
    """Yield the tables of the jobs that read the documents of a dataset."""
    assert read.dataset is not None
    sources = {str(names.raw(read.dataset)), str(TableName("deduplicated", read.dataset))}
    for table in sorted(read.names):
        if (
            table.namespace == SYNTHESIS
            and read.has_rows(table)
            and sources & read.lake.published(table).lineage.upstream.keys()
        ):
            yield table


def _phrase(n_records: int, n_refusals: int) -> str:
    refusals = f", {counted(n_refusals, 'refusal')}" if n_refusals else ""
    return f"{counted(n_records, 'record')}{refusals}"
