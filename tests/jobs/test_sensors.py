"""The sensor of new input, tick by tick on real files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import dagster as dg
import pytest
from dagster._utils.tags import TagConcurrencyLimitsCounter  # what the queue asks

from factory.ingest.state import listing, state
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.host.instance import open_instance
from factory.orchestration.host.partitions import RANGE_FIRST, RANGE_LAST
from factory.orchestration.host.queue import IN_TURN_TAG
from factory.orchestration.host.resources import REUSE_TAG
from factory.orchestration.table.declaration import OnDemand
from factory.settings import Settings
from jobs.sensors import downstream, new_input
from jobs.watched import Watched
from spark_udfs.ingest.address import place_of
from tests.jobs.chain import publish, repository, table

FOLDERS = dg.DynamicPartitionsDefinition(name="folders")
DAYS = dg.DailyPartitionsDefinition("2025-01-01", end_date="2026-01-01")
LETTERS = dg.StaticPartitionsDefinition(list("abcdef"))
Tick = Callable[[], list[dg.RunRequest]]


def ticks(
    instance: dg.DagsterInstance,
    watched: Watched | list[Watched],
    *assets: dg.AssetsDefinition,
    lake: Lake | None = None,
) -> Tick:
    """A function that evaluates the sensor once more and returns its requests; the default lake is empty."""
    datasets = [watched] if isinstance(watched, Watched) else watched
    home = (
        lake.settings
        if lake is not None
        else Settings(home=Path(datasets[0].paths[0].display()).parents[1] / "lake")
    )
    sensor = new_input(assets, datasets, lake_settings=home)
    location = repository(assets, sensors=[sensor])
    cursor: list[str | None] = [None]

    def tick() -> list[dg.RunRequest]:
        context = dg.build_sensor_context(instance=instance, cursor=cursor[0], repository_def=location)
        found = sensor(context)
        assert isinstance(found, dg.SensorResult)
        cursor[0] = found.cursor
        for request in found.dynamic_partitions_requests or ():
            instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        requests = list(found.run_requests or ())
        assert len({request.run_key for request in requests}) == len(requests)  # else Dagster drops one
        return requests

    return tick


def selected(request: dg.RunRequest) -> list[str]:
    return sorted(key.to_user_string() for key in request.asset_selection or ())


def ranges(requests: list[dg.RunRequest]) -> list[tuple[str, str] | None]:
    """The first and last partition of each request, None without partitions."""
    return [
        (request.partition_key, request.partition_key)
        if request.partition_key
        else (request.tags[RANGE_FIRST], request.tags[RANGE_LAST])
        if RANGE_FIRST in request.tags
        else None
        for request in requests
    ]


def make_inputs(folder: Path, keys: Iterable[str]) -> None:
    """Write a file of its own into the folder of each key."""
    for key in keys:
        (folder / key).mkdir(parents=True)
        (folder / key / "a.txt").write_text(key)


@pytest.fixture
def instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.ephemeral()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "input").mkdir()
    return tmp_path / "input"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(Settings(home=tmp_path / "lake"))


def test_a_change_asks_once_for_the_dataset_and_what_is_made_from_it(
    instance: dg.DagsterInstance, folder: Path
) -> None:
    (folder / "a.txt").write_text("one")
    tick = ticks(
        instance,
        Watched("web", (place_of(folder),)),
        table("raw.web", side_tables=["rejected"]),
        table("filtered.web", ["raw.web"]),
        table("raw.books"),
        table("packed.all", ["filtered.web", "raw.books"]),
    )
    assert tick() == []  # seen, and perhaps still being written
    (first,) = tick()
    assert selected(first) == ["filtered.web", "packed.all", "raw.web", "raw.web_rejected"]
    assert first.tags[REUSE_TAG] == "true"
    assert tick() == []
    (folder / "below").mkdir()
    (folder / "below" / "b.txt").write_text("two")
    assert tick() == []
    (second,) = tick()
    assert second.run_key != first.run_key


def test_a_file_that_grows_is_waited_for(instance: dg.DagsterInstance, folder: Path) -> None:
    tick = ticks(instance, Watched("web", (place_of(folder),)), table("raw.web"))
    for number in range(3):
        with (folder / "growing").open("a") as file:
            file.write(f"line {number}\n")
        assert tick() == []
    assert len(tick()) == 1


def test_an_input_that_becomes_what_it_was_asks_again(instance: dg.DagsterInstance, folder: Path) -> None:
    file = folder / "a.txt"
    tick = ticks(instance, Watched("web", (place_of(file),)), table("raw.web"))
    asked = []
    for text in ("one", "three", "one"):
        file.write_text(text)
        os.utime(file, (1, 1))
        assert tick() == []
        asked += tick()
    assert len({request.run_key for request in asked}) == 3


def test_a_new_folder_is_a_new_partition_and_the_others_are_left_alone(
    instance: dg.DagsterInstance, folder: Path, lake: Lake
) -> None:
    for name in ("de", "en"):
        (folder / name).mkdir()
        (folder / name / "a.txt").write_text(name)
    raw = table("raw.web", partitions_def=FOLDERS)
    tick = ticks(
        instance,
        Watched("web", (place_of(folder),), FOLDERS),
        raw,
        table("filtered.web", ["raw.web"], FOLDERS),
        table("dedup.web", ["filtered.web"]),
        lake=lake,
    )
    tick()
    partitioned, whole = requests = tick()
    assert ranges(requests) == [("de", "en"), None]
    assert selected(partitioned) == ["filtered.web", "raw.web"]
    assert selected(whole) == ["dedup.web"]
    assert int(partitioned.tags["dagster/priority"]) > int(whole.tags.get("dagster/priority", "0"))
    publish(lake, raw, {key: state([folder / key]) for key in ("de", "en")})
    (folder / "fr").mkdir()
    (folder / "fr" / "a.txt").write_text("fr")
    tick()
    assert ranges(tick()) == [("fr", "fr"), None]
    assert instance.get_dynamic_partitions("folders") == ["de", "en", "fr"]


def test_a_change_asks_again_for_partitions_whose_run_failed(
    instance: dg.DagsterInstance, folder: Path, lake: Lake
) -> None:
    raw = table("raw.web", partitions_def=LETTERS)
    tick = ticks(instance, Watched("web", (place_of(folder),), LETTERS), raw, lake=lake)

    def change(key: str) -> list[tuple[str, str] | None]:
        with (folder / key / "a.txt").open("a") as file:
            file.write("more")
        assert tick() == []
        return ranges(tick())

    make_inputs(folder, "abc")
    tick()
    assert ranges(tick()) == [("a", "c")]
    run = dg.DagsterRun("job", tags={"dagster/sensor_name": "new_input"}, status=dg.DagsterRunStatus.STARTED)
    instance.add_run(run)
    assert change("b") == [("b", "b")]
    assert tick() == []
    instance.report_run_failed(run)
    assert ranges(tick()) == [("a", "c")]  # what failed while the run of the change was under way
    assert tick() == []  # once, whether or not it fails again
    assert change("b") == [("b", "b"), ("a", "a"), ("c", "c")]
    publish(lake, raw, {"a": state([folder / "a"]), "b": "another", "c": ""})  # c: the source says no state
    assert change("a") == [("a", "a"), ("b", "b")]
    publish(lake, raw, {key: state([folder / key]) for key in "ab"})
    assert change("c") == [("c", "c")]


def test_a_new_partition_is_not_in_the_run_of_one_that_failed(
    instance: dg.DagsterInstance, folder: Path, lake: Lake
) -> None:
    raw = table("raw.web", partitions_def=DAYS)
    tick = ticks(
        instance, Watched("web", (place_of(folder),), DAYS), raw, table("dedup.web", ["raw.web"]), lake=lake
    )
    make_inputs(folder, ["2025-01-04"])
    (folder / "2025-01-05").mkdir()
    assert tick() == []
    assert ranges(tick()) == [("2025-01-04", "2025-01-05"), None]
    publish(lake, raw, {"2025-01-04": state([folder / "2025-01-04"])})  # the day without files never succeeds
    for day in ("2025-01-06", "2025-01-07"):
        make_inputs(folder, [day])
        assert tick() == []
        assert ranges(tick()) == [(day, day), ("2025-01-05", "2025-01-05"), None]
        publish(lake, raw, {day: state([folder / day])})


@pytest.mark.invariant(
    "The sensor requests one run per range of changed partitions, and none for files that the "
    "tables were made of."
)
@pytest.mark.parametrize(
    "partitions, keys, expected",
    [
        (DAYS, DAYS.get_partition_keys(), [("2025-01-01", "2025-12-31")]),
        (DAYS, ["2025-02-27", "2025-02-28", "2025-03-01"], [("2025-02-27", "2025-03-01")]),
        (LETTERS, "abdf", [("a", "b"), ("d", "d"), ("f", "f")]),
        (FOLDERS, "acbx", [("a", "b"), ("x", "x")]),
    ],
    ids=[
        "a year of days",
        "over the end of a month",
        "letters with gaps",
        "folders by the order they came in",
    ],
)
def test_new_partitions_are_as_few_runs_as_they_have_ranges(
    instance: dg.DagsterInstance,
    folder: Path,
    partitions: dg.PartitionsDefinition[str],
    keys: Iterable[str],
    expected: list[tuple[str, str]],
) -> None:
    instance.add_dynamic_partitions("folders", ["a", "c", "b", "gone"])
    make_inputs(folder, keys)
    tick = ticks(
        instance,
        Watched("web", (place_of(folder),), partitions),
        table("raw.web", partitions_def=partitions),
        table("dedup.web", ["raw.web"]),
    )
    tick()
    assert ranges(tick()) == [*expected, None]
    assert tick() == []


def test_changes_of_several_datasets_are_one_run_of_the_tables_without_partitions(
    instance: dg.DagsterInstance, folder: Path
) -> None:
    make_inputs(folder, ["web", "books"])
    tick = ticks(
        instance,
        [Watched(name, (place_of(folder / name),)) for name in ("web", "books")],
        table("raw.web"),
        table("raw.books"),
        table("packed.all", ["raw.web", "raw.books"]),
    )
    tick()
    (request,) = tick()
    assert selected(request) == ["packed.all", "raw.books", "raw.web"]


@pytest.mark.invariant(
    "The sensor requests one run per range of changed partitions, and none for files that the "
    "tables were made of."
)
@pytest.mark.parametrize("partitions", [None, DAYS, FOLDERS], ids=["whole", "days", "folders"])
def test_the_first_look_asks_for_nothing_where_tables_were_made_from_the_same_files(
    instance: dg.DagsterInstance, folder: Path, lake: Lake, partitions: dg.PartitionsDefinition[str] | None
) -> None:
    keys = ["2025-01-01", "2025-01-02", "2025-01-03"]
    make_inputs(folder, keys)
    inputs = {key: state([folder / key]) for key in keys} if partitions else {"": state([folder])}
    assets = [
        table("raw.web", partitions_def=partitions),
        table("filtered.web", ["raw.web"], partitions),
        table("dedup.web", ["filtered.web"]),
    ]
    for asset in assets:
        publish(lake, asset, inputs)
    tick = ticks(instance, Watched("web", (place_of(folder),), partitions), *assets, lake=lake)
    assert [tick() for _ in range(3)] == [[], [], []]
    if partitions is FOLDERS:
        assert instance.get_dynamic_partitions("folders") == keys
    (folder / keys[1] / "b.txt").write_text("new")
    assert tick() == []
    assert ranges(tick()) == ([(keys[1], keys[1])] if partitions else []) + [None]


@pytest.mark.parametrize("lacking", ["raw.web", "filtered.web", "dedup.web"])
def test_the_first_look_asks_for_what_a_table_lacks(
    instance: dg.DagsterInstance, folder: Path, lake: Lake, lacking: str
) -> None:
    """A killed run may have made the raw table alone, and a raw table of an older release has no state."""
    keys = list("abc")
    make_inputs(folder, keys)
    inputs = {key: state([folder / key]) for key in keys}
    assets = [
        table("raw.web", partitions_def=LETTERS),
        table("filtered.web", ["raw.web"], LETTERS),
        table("dedup.web", ["filtered.web"]),
    ]
    for asset, name in zip(assets, ("raw.web", "filtered.web", "dedup.web"), strict=True):
        if name != "dedup.web" or lacking != name:
            publish(lake, asset, {"a": inputs["a"]} if name == lacking else inputs)
    tick = ticks(instance, Watched("web", (place_of(folder),), LETTERS), *assets, lake=lake)
    assert tick() == []
    assert ranges(tick()) == [("a", "c") if lacking == "dedup.web" else ("b", "c"), None]


def test_the_first_look_asks_for_no_table_that_a_run_may_leave_out(
    instance: dg.DagsterInstance, folder: Path, lake: Lake
) -> None:
    make_inputs(folder, "a")
    assets = [table("raw.web"), table("dedup.web", ["raw.web"])]
    for asset in assets:
        publish(lake, asset, {"": state([folder])})
    on_demand = OnDemand(TableName("raw", "web"), 3, "text")
    report = table("dedup.report", ["dedup.web"], on_demand=on_demand)
    tick = ticks(instance, Watched("web", (place_of(folder),), None), *assets, report, lake=lake)
    assert [tick(), tick()] == [[], []]


def test_the_first_look_asks_for_files_that_changed_since_they_were_read(
    instance: dg.DagsterInstance, folder: Path, lake: Lake
) -> None:
    make_inputs(folder, "ab")
    asset = table("raw.web", partitions_def=LETTERS)
    publish(lake, asset, {key: state([folder / key]) for key in "ab"})
    (folder / "b" / "a.txt").write_text("changed")
    tick = ticks(instance, Watched("web", (place_of(folder),), LETTERS), asset, lake=lake)
    assert tick() == []
    assert ranges(tick()) == [("b", "b")]


def test_tables_of_all_partitions_wait_for_every_partitions_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    make_inputs(tmp_path / "web", ["de", "en"])
    with open_instance(Settings(home=tmp_path / "lake")) as instance:
        watched = Watched("web", (place_of(tmp_path / "web"),), FOLDERS)
        tick = ticks(
            instance,
            watched,
            table("raw.web", partitions_def=FOLDERS),
            table("dedup.web", ["raw.web"]),
        )
        tick()
        first, *rest = [dg.DagsterRun(job_name="pipeline", tags=request.tags) for request in tick()]
        assert rest
        queue = instance.get_concurrency_config().run_queue_config
        assert queue is not None
        assert {"key": IN_TURN_TAG, "value": "true", "limit": 1} in queue.tag_concurrency_limits
        begun = TagConcurrencyLimitsCounter(queue.tag_concurrency_limits, [first])
        assert all(begun.is_blocked(run) for run in rest)
        asked_by_hand = dg.DagsterRun(job_name="pipeline")
        assert not begun.is_blocked(asked_by_hand)


def test_a_corpus_without_files_says_so(instance: dg.DagsterInstance) -> None:
    web = [table("raw.web")]
    sensor = new_input(web, [])
    location = repository(web, sensors=[sensor])
    context = dg.build_sensor_context(instance=instance, repository_def=location)
    assert "No dataset" in str(sensor.evaluate_tick(context).skip_message)


def test_downstream_holds_what_is_written_together() -> None:
    assets = [
        table("packed.web", ["raw.web_rejected"], side_tables=["placements"]),
        table("raw.web", side_tables=["rejected"]),
    ]
    assert len(downstream(assets, dg.AssetKey("raw.web"))) == 4


def test_a_changed_list_asks_for_all_that_is_made_from_it(instance: dg.DagsterInstance, folder: Path) -> None:
    (folder / "pages").mkdir()
    blocked = folder / "blocked.csv"
    blocked.write_text("a.org")
    tick = ticks(
        instance,
        Watched("web", (place_of(folder / "pages"),)),
        table("raw.web"),
        table("facts.web_rows", files=[blocked]),
        table("facts.web", ["raw.web", "facts.web_rows"]),
        table("filtered.web", ["raw.web", "facts.web"]),
        table("raw.books"),
    )
    assert tick() == []
    (first,) = tick()  # of both
    assert selected(first) == ["facts.web", "facts.web_rows", "filtered.web", "raw.web"]
    blocked.write_text("a.org\nb.org")
    assert tick() == []
    (request,) = tick()
    assert selected(request) == ["facts.web", "facts.web_rows", "filtered.web"]
    assert request.tags[REUSE_TAG] == "true"
    assert tick() == []


def test_a_changed_list_asks_for_every_partition_after_its_own_table(
    instance: dg.DagsterInstance, folder: Path
) -> None:
    words = folder / "words.txt"
    words.write_text("one")
    make_inputs(folder / "days", ["a", "b", "c"])
    tick = ticks(
        instance,
        Watched("web", (place_of(folder / "days"),), FOLDERS),
        table("raw.web", partitions_def=FOLDERS),
        table("models.words", files=[words]),
        table("filtered.web", ["raw.web", "models.words"], partitions_def=FOLDERS),
        table("packed.web", ["filtered.web"]),
    )
    assert tick() == []
    tick()
    words.write_text("one\ntwo")
    assert tick() == []
    own, partitions, whole = tick()
    assert selected(own) == ["models.words"]
    assert selected(partitions) == ["filtered.web"]
    assert ranges([partitions]) == [("a", "c")]
    assert selected(whole) == ["models.words", "packed.web"]
    priorities = [int(request.tags.get("dagster/priority", "0")) for request in (own, partitions, whole)]
    assert priorities == sorted(priorities, reverse=True)


def test_a_list_that_its_table_was_made_from_asks_for_nothing(
    instance: dg.DagsterInstance, folder: Path, lake: Lake
) -> None:
    words = folder / "words.txt"
    words.write_text("one")
    assets = [
        table("models.words", files=[words]),
        table("raw.web"),
        table("filtered.web", ["raw.web", "models.words"]),
    ]
    for asset in assets:
        publish(lake, asset, {})
    unrecorded = ticks(instance, [], *assets, lake=lake)
    assert unrecorded() == []
    assert len(unrecorded()) == 1  # a table without a listing may be outdated
    publish(lake, assets[0], {}, listings={"": listing([words]).to_text()})
    tick = ticks(instance, [], *assets, lake=lake)
    assert tick() == tick() == []
    words.unlink()
    words.write_text("two")
    assert tick() == []
    (request,) = tick()
    assert selected(request) == ["filtered.web", "models.words"]
