"""Other limits are decided from the numbers alone: no text is read, and no signal measured again."""

from __future__ import annotations

import re
from collections.abc import Mapping

import dagster as dg
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from factory.filters.rounds import Round
from factory.filters.stage import decide, measure, signals_schema
from factory.lake import names
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.lake_spark.read import read_at
from factory.orchestration.host.resources import REUSE_TAG, resources
from factory.orchestration.table.table_asset import table_asset
from factory.settings import Settings

pytestmark = pytest.mark.spark

TEXTS = {
    "short": "one two three",
    "long": "The rain went on and on in the house. " * 9,
    "numbers": "1 2 3\n" * 30,
}
RULES = Round(
    rules=("gopher_quality", "c4"),
    languages=("en",),
    predicates={"stars": {"at_least": 10}, "license": ["MIT"]},
)


def assets(dataset: str, chosen: Round) -> list[dg.AssetsDefinition]:
    """A source and the two tables of the filters, as `refine` declares them."""

    @table_asset(namespace="raw", name=dataset, asset_group="test", schema=RAW)
    def raw(context, pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
        rows = [
            dict.fromkeys(RAW.names)
            | {"doc_id": doc_id, "source": "s", "key": doc_id, "text": text, "content_hash": doc_id}
            | {"n_bytes": len(text), "media_type": "text/plain", "stars": 11, "license": "MIT"}
            for doc_id, text in TEXTS.items()
        ]
        return pyspark.spark_session.createDataFrame(rows, from_arrow_schema(RAW.columns))

    built = chosen.build()

    @table_asset(
        namespace="signals",
        name=dataset,
        asset_group="test",
        schema=signals_schema(built),
        upstream={"documents": names.raw(dataset)},
    )
    def signals(documents: DataFrame) -> DataFrame:
        return measure(documents, built)

    @table_asset(
        namespace="filtered",
        name=dataset,
        asset_group="test",
        schema=FILTERED,
        upstream={"signals": names.signals(dataset)},
        config={"rules": [repr(rule) for rule in built]},
    )
    def filtered(signals: DataFrame) -> DataFrame:
        return decide(signals, built)

    return [raw, signals, filtered]


def run(settings: Settings, made: list[dg.AssetsDefinition]) -> None:
    result = dg.materialize(
        made,
        resources=resources(settings),
        tags={REUSE_TAG: "true"},
        run_config={"loggers": {"console": {"config": {"log_level": "ERROR"}}}},
    )
    assert result.success


def kept(lake: Lake, dataset: str) -> set[str]:
    return set(lake.read(names.filtered(dataset), ["doc_id"], "kept = true")["doc_id"].to_pylist())


@pytest.mark.invariant("Changing a threshold reads `signals` and no text.")
def test_another_limit_is_decided_from_signals_that_stay_as_they_are(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    lake = Lake(lake_settings)
    run(lake_settings, assets(unique, RULES))
    measured = lake.published(names.signals(unique)).snapshot_id
    decided = lake.published(names.filtered(unique)).snapshot_id
    assert kept(lake, unique) == {"long"}
    others: list[Mapping[str, object]] = [
        {"languages": ("en", "de"), "limits": {"word_count": [0, 50], "language_score": 0.9}},
        {"predicates": {"stars": {"at_least": 12}, "license": {"none_of": ["GPL-*"]}}},
    ]
    for other in others:
        changed = Round.model_validate({**dict(RULES), **other})
        run(lake_settings, assets(unique, changed))
        assert lake.published(names.signals(unique)).snapshot_id == measured
        again = lake.published(names.filtered(unique)).snapshot_id
        assert again != decided
        decided = again
    run(lake_settings, assets(unique, changed))
    assert lake.published(names.filtered(unique)).snapshot_id == decided  # nothing changed, nothing made


def test_a_further_rule_is_measured(spark: SparkSession, lake_settings: Settings, unique: str) -> None:
    run(lake_settings, assets(unique, Round(rules=("word_count",))))
    measured = Lake(lake_settings).published(names.signals(unique)).snapshot_id
    run(lake_settings, assets(unique, Round(rules=("word_count", "stop_words"))))
    assert Lake(lake_settings).published(names.signals(unique)).snapshot_id != measured


@pytest.mark.invariant("Changing a threshold reads `signals` and no text.")
def test_deciding_scans_only_the_columns_of_the_chosen_rules(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    run(lake_settings, assets(unique, RULES))
    published = Lake(lake_settings).published(names.signals(unique))
    chosen = Round(rules=("word_count",), languages=("en",), predicates={"license": ["MIT"]}).build()
    decided = decide(read_at(spark, names.signals(unique), published.snapshot_id), chosen)
    plan = decided._jdf.queryExecution().executedPlan().toString()
    scans = re.findall(r"BatchScan (\S+)\[(.*?)\]", plan)
    assert len(scans) == 1
    [(table, columns)] = scans
    assert table.endswith(f"signals.{unique}")
    assert {column.split("#")[0] for column in columns.split(", ")} == {
        *("doc_id", "word_count", "language_score", "detected_language", "license", "partition")
    }
