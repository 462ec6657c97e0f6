"""The chart and the figures that Dagster shows of a table; its schema names them as `stage.name`.

filtered.*                kept, rejected: documents; by rule, documents that pass or fail it without a value
clusters.*_coarse         cells, and how evenly documents are spread over them
clusters.*_verdicts       documents by verdict, and the share that the rates remove
clusters.*_balance        evenness before and after, and missing documents
dedup.*_decisions         kept, duplicates: documents; documents of dropped topics count as neither
dedup.*_repositories      the same of repositories
tokenized.*               tokens, and how even lengths are in tokens and in bytes
synthesis.*               documents, records, refusals: what workers made of how many documents
packed.*                  tokens, fill: the share of the room in all sequences
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pyarrow as pa

from factory.errors import ConfigurationError
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.orchestration.table.charts import (
    clusters,
    dedup,
    depsort,
    filters,
    images,
    ingest,
    models,
    packing,
    synthesis,
)
from factory.orchestration.table.charts.counting import Chart, by_partition, quantiles
from factory.orchestration.table.charts.totals import Figures, no_figures

STAGES = {
    "ingest": ingest,
    "images": images,
    "filters": filters,
    "clusters": clusters,
    "dedup": dedup,
    "depsort": depsort,
    "models": models,
    "packing": packing,
    "synthesis": synthesis,
}
CHARTS = {
    f"{stage}.{name}": chart for stage, module in STAGES.items() for name, chart in module.CHARTS.items()
}
FIGURES = {
    f"{stage}.{name}": figures for stage, module in STAGES.items() for name, figures in module.FIGURES.items()
}

T = TypeVar("T")


def chart_of(table: TableName, schema: TableSchema) -> Chart:
    """Return the chart that a schema names; without a name quantiles of its numbers, else rows by partition.

    Raises ConfigurationError for an unknown name.
    """
    if schema.chart:
        return _named(table, "chart", schema.chart, CHARTS)
    numbers = [field.name for field in schema.columns if pa.types.is_float64(field.type)]
    return quantiles(*numbers) if numbers else by_partition


def figures_of(table: TableName, schema: TableSchema) -> Figures:
    """Return the figures that a schema names, or none; raises ConfigurationError for an unknown name."""
    return _named(table, "figures", schema.figures, FIGURES) if schema.figures else no_figures


def _named(table: TableName, kind: str, name: str, registered: Mapping[str, T]) -> T:
    if name not in registered:
        raise ConfigurationError(
            f"The schema of {table} names {kind} `{name}`, and there is none. Name one of "
            f"{', '.join(sorted(registered))}, or leave the name out."
        )
    return registered[name]
