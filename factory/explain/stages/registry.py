"""The views that trace, diff, export and summary walk, in the order of the pipeline."""

from __future__ import annotations

from factory.explain.stages import clusters, dedup, depsort, filters, images, ingest, packing, synthesis
from factory.explain.stages.document_trace import DocumentTrace
from factory.explain.stages.stage import StageView
from factory.lake.names import TableName

STAGES: list[StageView] = [
    synthesis.VIEW,
    ingest.VIEW,
    images.VIEW,
    clusters.VIEW,
    filters.VIEW,
    dedup.VIEW,
    depsort.VIEW,
    packing.VIEW,
]


def line(trace: DocumentTrace, table: TableName) -> str:
    """Return the line on a document in `table`, from the stage that writes the table."""
    return next((view.line(trace) for view in STAGES if view.stage == table.stage), "")
