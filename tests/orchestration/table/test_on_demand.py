"""Tables that only people read: made when they are asked for, or from a size on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.host.history import tables_left_out
from factory.orchestration.host.partitions import batches
from factory.orchestration.host.resources import NAMED_TAG, REUSE_TAG, resources
from factory.orchestration.table import progress
from factory.orchestration.table.checks import alarm
from factory.orchestration.table.declaration import OnDemand
from factory.orchestration.table.forecast import forecast
from factory.settings import Settings
from tests.orchestration.runs import COLUMNS, component_table
from tests.orchestration.table.published import component, publish

THREE = OnDemand(TableName("dedup", "counted"), 3, "text")
CHAIN = [
    component("source"),
    component("counted", "source"),
    component("edges", "counted"),
    component("reported", "counted", "edges", on_demand=THREE),
]
TOO_FEW = "made from 3 texts on, and there are 2"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake of all tables but the one on demand."""
    lake = Lake(Settings(home=tmp_path))
    for asset in CHAIN[:-1]:
        publish(lake, asset, "a", "b")
    return lake


def verdict(
    lake: Lake, first: str = "counted", *, named: Sequence[str] = (), reuse: bool = True
) -> tuple[str, str]:
    """What a dry run of the chain from a table on says of `dedup.reported`."""
    instance = dg.DagsterInstance.ephemeral()
    keys = [key for asset in CHAIN for key in asset.keys]
    keys = keys[keys.index(dg.AssetKey(f"dedup.{first}")) :]
    runs = batches(CHAIN, keys, instance, None)
    named_tables = [TableName("dedup", name) for name in named]
    forecasts = forecast(lake, CHAIN, runs, instance, reuse=reuse, named_tables=named_tables)
    return next(
        (forecast.verdict, forecast.reason) for forecast in forecasts if forecast.table.name == "reported"
    )


def test_too_few_rows_leave_it_out(lake: Lake) -> None:
    assert verdict(lake) == ("leave", TOO_FEW)
    publish(lake, CHAIN[1], "a")
    publish(lake, CHAIN[2], "a")
    assert verdict(lake) == ("leave", "made from 3 texts on, and there is 1")


def test_enough_rows_make_it_like_any_other(lake: Lake) -> None:
    for asset in CHAIN[1:3]:
        publish(lake, asset, "a", "b", "c")
    assert verdict(lake) == ("make", "it is new")
    assert verdict(lake, "source") == ("maybe", "dedup.counted has 3 texts")  # there may be fewer then
    publish(lake, CHAIN[3], "a")
    assert verdict(lake) == ("keep", "")


def test_its_name_or_a_run_without_its_upstream_makes_it(lake: Lake) -> None:
    assert verdict(lake, named=["reported"]) == ("make", "it is new")
    assert verdict(lake, named=["edges"]) == ("leave", TOO_FEW)
    assert verdict(lake, "reported") == ("make", "it is new")


def test_it_is_uncertain_while_the_rows_are_not_counted(lake: Lake) -> None:
    assert verdict(lake, "source") == ("maybe", "dedup.counted has 3 texts (2 now)")  # it is read again
    empty = Lake(Settings(home=lake.settings.home / "empty"))
    assert verdict(empty, "source") == ("maybe", "dedup.counted has 3 texts")


def damage(lake: Lake, name: str) -> None:
    file = max((lake.settings.files.warehouse / "dedup" / name).rglob("*.metadata.json"))
    file.write_bytes(file.read_bytes()[:-100])


def test_it_stays_while_a_table_upstream_is_made_again(lake: Lake) -> None:
    publish(lake, CHAIN[3], "a")
    damage(lake, "edges")
    word, reason = verdict(lake)
    assert (word, reason.startswith("dedup.edges is damaged, and it shows snapshot ")) == ("keep", True)
    damage(lake, "reported")
    assert verdict(lake)[0] == "make"


def test_a_damaged_table_is_made_at_any_size(lake: Lake) -> None:
    publish(lake, CHAIN[3], "a")
    damage(lake, "reported")
    assert verdict(lake) == verdict(lake, "source") == ("make", "it is damaged")


def test_it_is_uncertain_while_the_counted_table_is_damaged(lake: Lake) -> None:
    damage(lake, "counted")
    assert verdict(lake, "source") == ("maybe", "dedup.counted has 3 texts")


def test_what_is_there_stays_and_says_what_it_shows(lake: Lake) -> None:
    publish(lake, CHAIN[3], "a")
    assert verdict(lake) == ("keep", "")
    shown = lake.published(TableName("dedup", "counted")).snapshot_id
    publish(lake, CHAIN[1], "a", "d")
    publish(lake, CHAIN[2], "a", "b")
    assert verdict(lake) == (
        "keep",
        f"dedup.counted changed, and it shows snapshot {shown} of dedup.counted; "
        "`factory materialize dedup.reported` makes it again",
    )
    assert verdict(lake, named=["reported"]) == ("make", "dedup.counted changed")


def chain(name: str, rows: int) -> list[dg.AssetsDefinition]:
    """A source of `rows` rows, and a table on demand that counts them, with a check."""
    table = TableName("dedup", name)

    @component_table(name=name)
    def source(pyspark: Any) -> DataFrame:
        made: DataFrame = pyspark.spark_session.createDataFrame([(f"{n}", "1") for n in range(rows)], COLUMNS)
        return made

    @component_table(
        name=f"{name}_reported",
        upstream={"rows": table},
        on_demand=OnDemand(table, 3, "text"),
        checks=[alarm("few", "int(count(1) > 1)", "There is one row at most.", "doc_id")],
    )
    def reported(rows: DataFrame) -> DataFrame:
        return rows

    return [source, reported]


class Run:
    """A run of a chain: what Dagster recorded, and how the table on demand ended."""

    def __init__(
        self,
        settings: Settings,
        assets: Sequence[dg.AssetsDefinition],
        named: str = "",
        selection: Sequence[str] | None = None,
    ) -> None:
        self.instance = dg.DagsterInstance.ephemeral()
        events: list[progress.Progress] = []
        with progress.listening(events.append):
            self.result = dg.materialize(
                assets,
                selection=selection,
                instance=self.instance,
                resources=resources(settings),
                tags={NAMED_TAG: named, REUSE_TAG: "true"},
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            )
        self.end = [event for event in events if event.asset.endswith("_reported")][-1]

    @property
    def warnings(self) -> list[str]:
        return [check.check_name for check in self.result.get_asset_check_evaluations() if not check.passed]

    @property
    def left_out(self) -> dict[str, str]:
        return {str(table): why for table, why in tables_left_out(self.instance, self.result.run_id).items()}


@pytest.mark.invariant(
    "A table that is made on demand is left out only where it is too small and nobody asked for it."
)
@pytest.mark.spark
def test_a_run_leaves_it_out_makes_it_and_keeps_it(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    table, lake = TableName("dedup", f"{unique}_reported"), Lake(lake_settings)
    few = Run(lake_settings, chain(unique, rows=2))
    assert few.result.success
    assert (few.end.phase, few.end.rows, few.end.reason) == ("left out", 2, "made from 3 texts on")
    assert few.left_out == {str(table): "2 texts, made from 3 texts on, or if it is selected by name"}
    assert (few.warnings, lake.exists(table)) == ([], False)

    named = Run(lake_settings, chain(unique, rows=2), named=str(table))
    assert (named.end.phase, named.end.rows, named.warnings, named.left_out) == ("published", 2, ["few"], {})
    first = lake.published(table).snapshot_id

    kept = Run(lake_settings, chain(unique, rows=1))
    assert (kept.end.phase, kept.end.rows) == ("reused", 2)
    assert f"dedup.{unique} changed, and it shows snapshot" in kept.end.reason
    assert lake.published(table).snapshot_id == first

    many = Run(lake_settings, chain(unique, rows=3))
    assert (many.end.phase, many.end.rows, many.warnings) == ("published", 3, ["few"])


@pytest.mark.spark
def test_a_run_of_it_alone_makes_it_and_a_damaged_one_is_made_again(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    table = TableName("dedup", f"{unique}_reported")
    assets = chain(unique, rows=2)
    assert Run(lake_settings, assets).end.phase == "left out"
    assert Run(lake_settings, assets, selection=[f"dedup.{unique}_reported"]).end.phase == "published"
    file = max((lake_settings.files.warehouse / "dedup" / table.name).rglob("*.metadata.json"))
    file.write_bytes(file.read_bytes()[:-100])
    again = Run(lake_settings, assets)
    assert (again.end.phase, again.end.reason) == ("published", "it is damaged")


@pytest.mark.spark
def test_its_checks_run_alone_and_write_nothing(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    table, lake = TableName("dedup", f"{unique}_reported"), Lake(lake_settings)
    assets = chain(unique, rows=2)

    def run_check(name: str) -> dg.ExecuteInProcessResult:
        check = dg.AssetCheckKey(dg.AssetKey(str(table)), name)
        return dg.materialize(
            assets,
            selection=dg.AssetSelection.checks(check),
            instance=dg.DagsterInstance.ephemeral(),
            resources=resources(lake_settings),
            raise_on_error=False,
        )

    assert not run_check("few").success
    Run(lake_settings, assets, named=str(table))
    before = lake.published(table).snapshot_id
    for name, passed in {"few": False, "unique_doc_id": True}.items():
        result = run_check(name)
        assert result.success
        checks = result.get_asset_check_evaluations()
        assert [(check.check_name, check.passed) for check in checks] == [(name, passed)]
    assert lake.published(table).snapshot_id == before
