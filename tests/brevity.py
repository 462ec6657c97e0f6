"""A stage of the tests, in one file: it drops documents of few characters, and registers its own faces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.explain.stages import filters, registry
from factory.explain.stages.stage import Section
from factory.explain.stages.verdicts import VerdictView
from factory.frozen_model import FrozenModel
from factory.lake.names import STAGE_OF_NAMESPACE, TableName
from factory.lake.schemas.filters import FILTERED
from factory.orchestration.chain.link import Chain, Link, staying
from factory.orchestration.declare.filters import FiltersPart
from factory.orchestration.declare.ingest_dataset import PartFields
from factory.orchestration.declare.part import Declared, Entry, Part
from factory.orchestration.declare.registry import PARTS
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


class BrevityOptions(FrozenModel):
    """The options of the stage."""

    least: int = Field(ge=1, description="fewest characters of a document")


class BrevityFields(PartFields):
    """The field of a dataset or variant."""

    brevity: BrevityOptions | None = Field(default=None, description="drop short documents")


class BrevityPart(Part):
    """The stage in a datasets file: an option of datasets and variants."""

    dataset = BrevityFields
    variant = BrevityFields

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:  # noqa: ARG002
        options = entry.inherited_fields(BrevityFields).brevity
        return [Brevity(options.least)] if options else ()

    def comment(self, kind: str) -> Iterator[str]:
        yield f"# brevity: {{least: 200}} # drop short documents of {kind}"


PART = BrevityPart()


@contextmanager
def registered() -> Iterator[None]:
    """Register the stage behind the filters."""
    STAGE_OF_NAMESPACE[BREVITY] = BREVITY
    CHARTS[CHART] = counts("kept", "documents by whether they are long enough")
    registry.STAGES.insert(registry.STAGES.index(filters.VIEW) + 1, VIEW)
    PARTS.insert([type(part) for part in PARTS].index(FiltersPart) + 1, PART)
    try:
        yield
    finally:
        PARTS.remove(PART)
        registry.STAGES.remove(VIEW)
        del CHARTS[CHART]
        del STAGE_OF_NAMESPACE[BREVITY]
