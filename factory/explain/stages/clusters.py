"""The view of clusters: the cluster of a document with its words, and the verdicts on all clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa
from pyiceberg.expressions import In

from factory.explain.stages.document_trace import DocumentTrace
from factory.explain.stages.removals import Read
from factory.explain.stages.stage import Figure, Section, StageView, SummaryScope, counts_figure
from factory.explain.upstream import made_of
from factory.lake import names
from factory.lake.names import CLUSTERS, TableName
from factory.lake.schemas.clusters import CLUSTERS as CLUSTER_ROWS

_WORDS = 6  # of a cluster in a line


class ClustersView(StageView):
    """The clusters of documents; the rounds that read their verdicts remove them."""

    stage = CLUSTERS
    sections = (Section("clusters", "Documents by the verdict on their cluster", "dataset"),)

    def follow(self, read: Read, traces: Mapping[str, DocumentTrace]) -> Collection[str]:
        assert read.dataset is not None
        table = _clusters_of(read, read.dataset)
        columns = ("doc_id", "cell", "cluster", "distance")
        for batch in read.batches(table, CLUSTER_ROWS, columns, pa.array(traces, pa.string())):
            words = _words(read, table, set(batch["cluster"].to_pylist()))
            for row in batch.to_pylist():
                trace = traces[row["doc_id"]]
                trace.note(table, read.snapshot(table))
                trace.cluster = (
                    f"cluster {row['cluster']} of cell {row['cell']}{words.get(row['cluster'], '')}"
                )
        return ()

    def line(self, trace: DocumentTrace) -> str:
        return trace.cluster

    def figures(self, scope: SummaryScope) -> Iterator[Figure]:
        for dataset in scope.datasets:
            table = names.clusters(dataset, "verdicts")
            if table in scope.tables:
                rows = scope.lake.read(table, ["verdict", "n_documents"])
                sums = rows.group_by("verdict").aggregate([("n_documents", "sum")])
                counts = dict(
                    zip(sums["verdict"].to_pylist(), sums["n_documents_sum"].to_pylist(), strict=True)
                )
                yield counts_figure("clusters", dataset, counts)


VIEW = ClustersView()


def _clusters_of(read: Read, dataset: str) -> TableName:
    """The clusters of a dataset's documents: its own, or its base's if its verdicts are made from them."""
    own, of_base = names.clusters(dataset), names.clusters(names.base(dataset))
    verdicts = names.verdicts(read.names, dataset)
    if own in read.names or of_base not in read.names or not read.has_rows(verdicts):
        return own
    upstream = made_of(read.lake, verdicts, read.snapshot(verdicts))
    return of_base if any(table == of_base for table, _ in upstream) else own


def _words(read: Read, clusters: TableName, numbers: Collection[int]) -> dict[int, str]:
    """The words of clusters, by number, as the end of a line."""
    losses = clusters.suffixed("losses")
    if not read.has_rows(losses):
        return {}
    rows = read.lake.read(losses, ["cluster", "terms"], In("cluster", numbers), read.snapshot(losses))
    return {
        row["cluster"]: f" ({', '.join(row['terms'][:_WORDS])})" for row in rows.to_pylist() if row["terms"]
    }
