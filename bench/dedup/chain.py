"""The deduplication of parts of a corpus, asset by asset, as in production.

For every named part: its documents as a raw table, verdicts that keep all documents, every asset of a dedup
group, including its reports, and the deduplicated documents. They run in one process and one session, on a
lake of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.console import Console

from bench.pipeline.measure import run
from bench.processes import Span
from factory.dedup.config import DedupConfig
from factory.filters.rounds import Round
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.orchestration.chain.dedup.group import DedupGroup, dedup_group
from factory.orchestration.chain.refine import refine
from factory.orchestration.host.definitions import definitions
from factory.orchestration.keys import key_of, table_of
from factory.orchestration.table.table_asset import table_asset
from factory.settings import Settings

DEDUPLICATED = "deduplicated"


@dataclass(frozen=True)
class Part:
    """Some documents of the corpus, under the name of their dataset."""

    name: str
    files: Sequence[str]


class Chain:
    """The assets of several parts, run one part after the other."""

    def __init__(self, parts: Sequence[Part], config: DedupConfig, own: Settings) -> None:
        self._own = own
        counted = {
            part.name: counted_assets(dedup_group(part.name, [part.name], kind="code", config=config))
            for part in parts
        }
        self._tables = {name: [_table(asset) for asset in assets] for name, assets in counted.items()}
        assets = [it for part in parts for it in (*_given(part), *counted[part.name])]
        self._definitions = definitions(assets, own)

    def run(self, part: str, progress: Console) -> dict[str, Span]:
        """Deduplicate a part; return the cost of its tables by name, in the order in which they were made."""
        counted = {str(table): short_name(table, part) for table in self._tables[part]}
        keys = [names.raw(part), names.filtered(part), *self._tables[part]]
        chosen = [key_of(table) for table in keys]
        meter = run(self._definitions, self._own, chosen, progress, named_tables=self._tables[part])
        spans = {counted[span.name]: span for span in meter.spans if span.name in counted}
        assert len(spans) == len(counted), f"These tables have no cost: {set(counted.values()) - set(spans)}"
        return spans

    def table(self, part: str, name: str, columns: Sequence[str]) -> pa.Table:
        """Columns of a table of the part's group."""
        return Lake(self._own).read(names.dedup(part, name), list(columns))

    def stored(self, part: str, name: str | None = None) -> int:
        """Bytes of the data files of a table of the part's group, or of the raw table."""
        table = Lake(self._own).table(names.dedup(part, name) if name else names.raw(part))
        return sum(task.file.file_size_in_bytes for task in table.scan().plan_files())


def counted_assets(group: DedupGroup) -> list[dg.AssetsDefinition]:
    """The assets whose cost counts: the whole group, and the deduplicated documents of its datasets."""
    selected = [
        asset
        for dataset in group.datasets
        for asset in refine(dataset, dedup_group=group, rounds=[Round()], tokenizer="none")
        if key_of(TableName(DEDUPLICATED, dataset)) in asset.keys
    ]
    return [*group.assets, *selected]


def short_name(table: TableName, group: str) -> str:
    """The name of a table without the name of its group."""
    return table.name.removeprefix(f"{group}_") if table.namespace == "dedup" else table.namespace


def _table(asset: dg.AssetsDefinition) -> TableName:
    return table_of(asset.key)


def _given(part: Part) -> tuple[dg.AssetsDefinition, dg.AssetsDefinition]:
    """The raw table of a part, and verdicts that keep everything."""

    @table_asset(namespace="raw", name=part.name, asset_group="given", schema=RAW)
    def documents(pyspark: Any) -> DataFrame:
        """The documents of the corpus."""
        read: DataFrame = pyspark.spark_session.read.parquet(*part.files)
        return read

    @table_asset(
        namespace="filtered",
        name=part.name,
        asset_group="given",
        schema=FILTERED,
        upstream={"documents": names.raw(part.name)},
    )
    def verdicts(documents: DataFrame) -> DataFrame:
        """Verdicts that keep every document."""
        return documents.select("doc_id", F.lit(True).alias("kept"))

    return documents, verdicts


def total(spans: Mapping[str, Span]) -> Span:
    """The sum over a part's tables."""
    summed = Span("total")
    for span in spans.values():
        summed.add(span)
    return summed


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The power of the size with which costs grow, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def fixed_cost(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The cost of no documents, on the line through the costs of the two smallest of ascending sizes."""
    slope = (costs[1] - costs[0]) / (sizes[1] - sizes[0])
    return costs[0] - slope * sizes[0]
