"""The assets of a dedup group on a real lake: what `--changed` makes again when the group grows."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from factory.dedup.config import DedupConfig
from factory.lake import names
from factory.lake.schemas import FILTERED, RAW
from factory.lake.tables import Lake
from factory.orchestration.asset.table_asset import table_asset
from factory.orchestration.chain.dedup_group import (
    OF_BAGS,
    OF_SIGNATURES,
    OF_VOCABULARY,
    DedupGroup,
    dedup_group,
)
from factory.orchestration.host.resources import REUSE_TAG, resources
from factory.settings import Settings
from tests.dedup.bagged import located_bags
from tests.dedup.corpus import arrow, corpus

ROWS = corpus(12, seed=9)
QUARTER = len(ROWS) // 4

pytestmark = pytest.mark.spark


def dataset(name: str, rows: Sequence[dict[str, object]]) -> list[dg.AssetsDefinition]:
    """`raw` and `filtered` of a dataset, in which every document is kept."""

    @table_asset(namespace="raw", name=name, group_name="test", schema=RAW)
    def documents(context, pyspark):  # type: ignore[no-untyped-def]
        return pyspark.spark_session.createDataFrame(arrow(list(rows)).drop_columns(["dataset"]))

    @table_asset(
        namespace="filtered",
        name=name,
        group_name="test",
        schema=FILTERED,
        upstream={"documents": names.raw(name)},
    )
    def verdicts(documents):  # type: ignore[no-untyped-def]
        nothing = "CAST(array() AS array<struct<rule string, value double, threshold double>>) rejections"
        return documents.selectExpr("doc_id", "true kept", nothing, "partition")

    return [documents, verdicts]


class Lakeside:
    """Runs of a group whose datasets and settings a test changes."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings, self.name, self.lake = settings, name, Lake(settings)

    def run(
        self, datasets: dict[str, Sequence[dict[str, object]]], reuse: bool = True, **config: object
    ) -> DedupGroup:
        chosen = DedupConfig(kind="code", **config)  # type: ignore[arg-type]
        group = dedup_group(self.name, list(datasets), kind="code", config=chosen)
        sources = [asset for name, rows in datasets.items() for asset in dataset(name, rows)]
        wanted = ("bags", "vocabulary", "signatures", "buckets", "edges", "components", "decisions")
        done = dg.materialize(
            [*sources, *group.assets],
            selection=[
                *(key for asset in sources for key in asset.keys),
                *(dg.AssetKey(names.dedup(self.name, part).identifier) for part in wanted),
            ],
            resources=resources(self.settings),
            tags={REUSE_TAG: "true"} if reuse else {},
            run_config={"loggers": {"console": {"config": {"log_level": "ERROR"}}}},
        )
        assert done.success
        return group

    def snapshot(self, part: str) -> int:
        return self.lake.published(names.dedup(self.name, part)).snapshot_id

    def rows(self, part: str) -> list[dict[str, object]]:
        found = self.lake.read(names.dedup(self.name, part)).to_pylist()
        return sorted(found, key=lambda row: str(row["doc_id"]))


@pytest.fixture
def lakeside(spark: SparkSession, lake_settings: Settings, unique: str) -> Lakeside:
    return Lakeside(lake_settings, unique)


def test_a_joining_dataset_changes_no_vocabulary_and_no_signature(lakeside: Lakeside, unique: str) -> None:
    first = {f"{unique}_a": ROWS[QUARTER:]}
    lakeside.run(first)
    counted, before = lakeside.snapshot("vocabulary"), lakeside.rows("signatures")
    lakeside.run(first | {f"{unique}_b": ROWS[:QUARTER]})
    assert lakeside.snapshot("vocabulary") == counted
    signed = {row["content_hash"]: row["signature"] for row in lakeside.rows("signatures")}
    assert {row["content_hash"]: row["signature"] for row in before}.items() < signed.items()
    assert {row["dataset"] for row in lakeside.rows("decisions")} == {f"{unique}_a", f"{unique}_b"}


def test_a_group_that_has_doubled_is_counted_and_signed_again(lakeside: Lakeside, unique: str) -> None:
    lakeside.run({f"{unique}_a": ROWS[:QUARTER]})
    counted, version = lakeside.snapshot("vocabulary"), lakeside.rows("signatures")[0]["version"]
    lakeside.run({f"{unique}_a": ROWS})
    assert lakeside.snapshot("vocabulary") != counted
    assert version not in {row["version"] for row in lakeside.rows("signatures")}


def test_another_threshold_signs_nothing_again(lakeside: Lakeside, unique: str) -> None:
    datasets = {f"{unique}_a": ROWS}
    lakeside.run(datasets)
    before = {part: lakeside.snapshot(part) for part in ("vocabulary", "signatures", "decisions")}
    lakeside.run(datasets, threshold=0.9, sweep=(0.95,))
    after = {part: lakeside.snapshot(part) for part in before}
    assert after["decisions"] != before.pop("decisions")
    assert after.items() > before.items()


def test_the_tables_that_read_texts_depend_on_all_settings_they_read(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from factory.dedup.bags import bags
    from factory.dedup.signatures import signatures
    from factory.dedup.vocabulary import vocabulary

    documents, config, read = spark.createDataFrame(arrow(ROWS)), DedupConfig(kind="code"), set[str]()

    def noting(self: DedupConfig, name: str) -> object:
        if name in type(self).model_fields:
            read.add(name)
        return object.__getattribute__(self, name)

    monkeypatch.setattr(DedupConfig, "__getattribute__", noting, raising=False)
    bags(documents, config)
    assert read == OF_BAGS
    made = located_bags(documents, config)
    read.clear()
    counted = vocabulary(made, config)
    assert read | OF_BAGS == OF_VOCABULARY  # it is kept while its bags change a little
    read.clear()
    signatures(documents, made, counted, config)
    assert read == OF_SIGNATURES
