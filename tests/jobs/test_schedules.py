"""The nightly schedule."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from factory.orchestration.host.partitions import RANGE_FIRST, RANGE_LAST
from factory.orchestration.host.queue import IN_TURN_TAG
from factory.orchestration.host.resources import REUSE_TAG
from jobs.schedules import nightly
from jobs.sensors import new_input
from jobs.watched import Watched
from spark_udfs.ingest.address import place_of
from tests.jobs.chain import repository, table


def test_a_night_asks_for_what_changed_partitions_first(tmp_path: Path) -> None:
    days = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-04")
    none_yet = dg.DynamicPartitionsDefinition(name="folders")
    assets = [
        table("raw.web", partitions_def=days),
        table("dedup.web", ["raw.web"]),
        table("raw.new", partitions_def=none_yet),
    ]
    (tmp_path / "new").mkdir()
    schedule = nightly(assets, [Watched("new", (place_of(tmp_path / "new"),), none_yet)])
    context = dg.build_schedule_context(
        instance=dg.DagsterInstance.local_temp(str(tmp_path)),
        repository_def=repository(assets, schedules=[schedule]),
        scheduled_execution_time=datetime(2026, 1, 5, 3, tzinfo=UTC),
    )
    partitioned, whole = schedule.evaluate_tick(context).run_requests or ()
    assert partitioned.asset_selection == [dg.AssetKey("raw.web")]
    assert (partitioned.tags[RANGE_FIRST], partitioned.tags[RANGE_LAST]) == ("2026-01-01", "2026-01-03")
    assert whole.asset_selection == [dg.AssetKey("dedup.web")]
    assert {request.tags[tag] for request in (partitioned, whole) for tag in (REUSE_TAG, IN_TURN_TAG)} == {
        "true"
    }
    assert int(partitioned.tags["dagster/priority"]) > int(whole.tags["dagster/priority"])
    assert partitioned.run_key == "2026-01-05T03:00/0"
    (tmp_path / "new" / "first").mkdir()
    keys = [request.asset_selection for request in schedule.evaluate_tick(context).run_requests or ()]
    assert [dg.AssetKey("raw.new")] in keys


def test_the_code_location_has_the_schedule_and_the_sensor() -> None:
    from jobs.definitions import defs

    location = defs.get_repository_def()
    assert [definition.name for definition in location.schedule_defs] == ["nightly"]
    assert [definition.name for definition in location.sensor_defs] == ["new_input"]


def test_the_sensor_says_which_datasets_it_watches(tmp_path: Path) -> None:
    watched = [Watched(name, (place_of(tmp_path),)) for name in ("web", "books")]
    assert "below the paths of `web`, `books` and" in str(new_input([], watched).description)
