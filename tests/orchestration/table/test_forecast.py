"""What a run would do to each table, said without running."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from factory.lake.tables import Lake
from factory.orchestration.host.partition_span import Span
from factory.orchestration.host.partitions import batches
from factory.orchestration.table.forecast import forecast
from factory.settings import Settings
from tests.orchestration.table.published import component, publish

LINE: list[dg.AssetsDefinition] = []


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(Settings(home=tmp_path))


@pytest.fixture(autouse=True)
def _declared_last() -> None:
    """Declare the line again: of two assets of a table, the last one declared counts."""
    LINE[:] = [
        component("source"),
        component("upper", "source"),
        component("fitted", "source", lasting=True),
        component("lowest", "upper", "fitted"),
    ]


def said(
    lake: Lake, assets: list[dg.AssetsDefinition], *, reuse: bool, span: Span | None = None, only: str = ""
) -> dict[str, tuple[str, str]]:
    instance = dg.DagsterInstance.ephemeral()
    keys = [key for asset in assets for key in asset.keys if only in key.to_user_string()]
    runs = batches(assets, keys, instance, span)
    found = forecast(lake, assets, runs, instance, reuse=reuse)
    return {forecast_row.table.name: (forecast_row.verdict, forecast_row.reason) for forecast_row in found}


def test_an_empty_lake_makes_everything(lake: Lake) -> None:
    found = said(lake, LINE, reuse=True)
    assert list(found) == ["source", "fitted", "upper", "lowest"]
    assert set(found.values()) == {("make", "it is new")}


def test_what_lasts_stays_when_it_reads_a_new_table(lake: Lake) -> None:
    before = [*LINE[:2], component("model", "source", lasting=True), component("behind", "upper", "model")]
    for asset in before:
        publish(lake, asset, "a")
    now = [*LINE[:2], component("added"), component("model", "source", "added", lasting=True), before[-1]]
    assert said(lake, now, reuse=True) == {
        "source": ("make", "sources are read every time"),
        "added": ("make", "it is new"),
        "model": ("keep", "dedup.added is read now; `factory materialize dedup.model` makes it again"),
        "upper": ("maybe", "dedup.source changes"),
        "behind": ("maybe", "dedup.upper changes"),
    }


def test_tables_behind_a_source_depend_on_its_content(lake: Lake) -> None:
    for asset in LINE:
        publish(lake, asset, "a")
    assert said(lake, LINE, reuse=True) == {
        "source": ("make", "sources are read every time"),
        "fitted": ("keep", ""),
        "upper": ("maybe", "dedup.source changes"),
        "lowest": ("maybe", "dedup.upper changes"),
    }
    assert said(lake, LINE, reuse=True, only="lowest") == {"lowest": ("keep", "")}
    publish(lake, LINE[0], "b")
    assert said(lake, LINE, reuse=False) == {
        "source": ("make", "sources are read every time"),
        "fitted": (
            "keep",
            "dedup.source changed; `factory materialize dedup.fitted` makes it again",
        ),
        "upper": ("make", "it was selected"),
        "lowest": ("make", "it was selected"),
    }
    assert said(lake, LINE, reuse=False, only="fitted") == {"fitted": ("make", "dedup.source changed")}


def test_a_missing_input_is_named(lake: Lake) -> None:
    publish(lake, LINE[0], "a")
    publish(lake, LINE[1], "A")
    changed = component("upper", "source", "other")
    assert said(lake, [component("other"), changed], reuse=True)["upper"] == (
        "make",
        "dedup.other is read now",
    )


def test_partitions_of_the_range_alone_are_compared(lake: Lake) -> None:
    days = dg.StaticPartitionsDefinition(["de", "en", "fr"])
    assets = [component("source", partitions_def=days), component("upper", "source", partitions_def=days)]
    for asset in assets:
        publish(lake, asset, "a")
    found = said(lake, assets, reuse=True, span=("de", "en"))
    assert found["upper"] == ("make", "partition de is new; partition en is new")


def test_a_table_that_grows_may_stay_frozen_when_it_reads_a_new_one(lake: Lake) -> None:
    source = component("source")
    publish(lake, source, "a")
    publish(lake, component("grown_here", "source", growth=2), "a")
    now = [source, component("added"), component("grown_here", "source", "added", growth=2)]
    assert said(lake, now, reuse=True)["grown_here"] == ("maybe", "dedup.added or dedup.source changes")
    assert said(lake, now[1:], reuse=True)["grown_here"] == ("maybe", "dedup.added changes")


def test_growth_beside_the_run_is_named(lake: Lake) -> None:
    small, large = component("small"), component("large")
    for asset in (small, large):
        publish(lake, asset, "a")
    grown = component("grown_beside", "small", "large", growth=2)
    publish(lake, grown, "a")
    publish(lake, large, *"abcdefgh")  # and the table that is frozen until then was not made since
    expected = ("maybe", "dedup.large still differs from what was read")
    assert said(lake, [small, grown], reuse=True)["grown_beside"] == expected
