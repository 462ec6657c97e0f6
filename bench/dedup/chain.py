"""The deduplication of parts of a corpus, asset by asset, as in production.

For every named part: its documents as a raw table, verdicts that keep all of them, and the assets of a dedup
group up to the decisions (the group's other assets measure and sweep). They run in one process and one
session, on a lake of their own.
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
from factory.lake import names
from factory.lake.schemas import FILTERED, RAW
from factory.lake.tables import Lake
from factory.orchestration.asset.table_asset import table_asset
from factory.orchestration.chain.dedup_group import dedup_group
from factory.orchestration.host.definitions import definitions
from factory.settings import Settings

TABLES = ("bags", "vocabulary", "signatures", "buckets", "edges", "components", "decisions")


@dataclass(frozen=True)
class Part:
    """Some documents of the corpus, under the name of their dataset."""

    name: str
    files: Sequence[str]


class Chain:
    """The assets of several parts, run one part after the other."""

    def __init__(self, parts: Sequence[Part], config: DedupConfig, own: Settings) -> None:
        self._own = own
        groups = {
            part.name: dedup_group(part.name, [part.name], kind="code", config=config) for part in parts
        }
        assets = [it for part in parts for it in (*_given(part), *groups[part.name].assets)]
        self._definitions = definitions(assets, own)

    def run(self, part: str, progress: Console) -> dict[str, Span]:
        """Deduplicate a part; return the cost of its tables by name."""
        keys = [names.raw(part), names.filtered(part), *(names.dedup(part, it) for it in TABLES)]
        chosen = [dg.AssetKey(table.identifier) for table in keys]
        meter = run(self._definitions, self._own, chosen, progress)
        spans = {span.name: span for span in meter.spans}
        return {table: spans[str(names.dedup(part, table))] for table in TABLES}

    def table(self, part: str, name: str, columns: Sequence[str]) -> pa.Table:
        """Columns of one of `TABLES`."""
        return Lake(self._own).read(names.dedup(part, name), list(columns))

    def stored(self, part: str, name: str | None = None) -> int:
        """Bytes of the data files of one of `TABLES`, or of the raw table."""
        table = Lake(self._own).table(names.dedup(part, name) if name else names.raw(part))
        return sum(task.file.file_size_in_bytes for task in table.scan().plan_files())


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
