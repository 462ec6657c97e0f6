"""A stage of the tests, in one file: it drops documents of few characters, and registers its own faces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.explain.stages import filters, registry
from factory.explain.stages.stage import Section
from factory.explain.stages.verdicts import VerdictView
from factory.lake.names import STAGE_OF_NAMESPACE, TableName
from factory.lake.schemas.filters import FILTERED
from factory.orchestration.chain.link import Chain, staying
from factory.orchestration.table.charts.counting import counts
from factory.orchestration.table.charts.registry import CHARTS

BREVITY = "brevity"
CHART = f"{BREVITY}.kept"
SCHEMA = replace(FILTERED, chart=CHART)
VIEW = VerdictView(
    BREVITY, namespace=BREVITY, outcome="too_short", section=Section(BREVITY, "Short documents")
)


def verdicts(documents: DataFrame, least: int) -> DataFrame:
    """The verdict on every document: FILTERED."""
    n_characters = F.length("text").cast("double")
    rejection = {"rule": F.lit("characters"), "value": n_characters, "threshold": F.lit(float(least))}
    rejections = F.array(F.struct(*(column.alias(name) for name, column in rejection.items())))
    return documents.select(
        "doc_id",
        (n_characters >= least).alias("kept"),
        F.filter(rejections, lambda failed: failed["value"] < least).alias("rejections"),
        "partition",
    )


@dataclass(frozen=True)
class Brevity:
    """Drop documents of fewer than `least` characters."""

    least: int

    def extend(self, chain: Chain) -> Chain:
        @chain.table_asset(
            namespace=BREVITY,
            name=chain.dataset,
            schema=SCHEMA,
            upstream=chain.upstream,
            config={"least": self.least},
        )
        def judged(documents: DataFrame, **earlier: DataFrame) -> DataFrame:
            """The verdicts by length."""
            return verdicts(staying(documents, earlier), self.least)

        return chain.adding(judged, verdicts=TableName(BREVITY, chain.dataset))


@contextmanager
def registered() -> Iterator[None]:
    """Register the stage behind the filters."""
    STAGE_OF_NAMESPACE[BREVITY] = BREVITY
    CHARTS[CHART] = counts("kept", "documents by whether they are long enough")
    registry.STAGES.insert(registry.STAGES.index(filters.VIEW) + 1, VIEW)
    try:
        yield
    finally:
        registry.STAGES.remove(VIEW)
        del CHARTS[CHART]
        del STAGE_OF_NAMESPACE[BREVITY]
