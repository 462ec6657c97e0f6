"""The sensor of new input, tick by tick on real files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from dagster._utils.tags import TagConcurrencyLimitsCounter  # what the queue asks

from factory.orchestration.host.instance import IN_TURN_TAG, open_instance
from factory.orchestration.host.resources import REUSE_TAG
from factory.settings import Settings
from jobs.sensors import Watched, downstream, new_input, state
from tests.jobs.chain import repository, table

FOLDERS = dg.DynamicPartitionsDefinition(name="folders")
Tick = Callable[[], list[dg.RunRequest]]


def ticks(instance: dg.DagsterInstance, watched: Watched, *assets: dg.AssetsDefinition) -> Tick:
    """A function that evaluates the sensor once more and gives what it asks for."""
    sensor = new_input(assets, [watched])
    location = repository(assets, sensors=[sensor])
    cursor: list[str | None] = [None]

    def tick() -> list[dg.RunRequest]:
        context = dg.build_sensor_context(instance=instance, cursor=cursor[0], repository_def=location)
        found = sensor(context)
        assert isinstance(found, dg.SensorResult)
        cursor[0] = found.cursor
        for request in found.dynamic_partitions_requests or ():
            instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        return list(found.run_requests or ())

    return tick


def selected(request: dg.RunRequest) -> list[str]:
    return sorted(key.to_user_string() for key in request.asset_selection or ())


@pytest.fixture
def instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.ephemeral()


def test_a_change_asks_once_for_the_dataset_and_what_is_made_from_it(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("one")
    tick = ticks(
        instance,
        Watched("web", (tmp_path,)),
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
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "b.txt").write_text("two")
    assert tick() == []
    (second,) = tick()
    assert second.run_key != first.run_key


def test_a_file_that_grows_is_waited_for(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    tick = ticks(instance, Watched("web", (tmp_path,)), table("raw.web"))
    for number in range(3):
        with (tmp_path / "growing").open("a") as file:
            file.write(f"line {number}\n")
        assert tick() == []
    assert len(tick()) == 1


def test_an_input_that_becomes_what_it_was_asks_again(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    tick = ticks(instance, Watched("web", (file,)), table("raw.web"))
    asked = []
    for text in ("one", "three", "one"):
        file.write_text(text)
        os.utime(file, (1, 1))
        assert tick() == []
        asked += tick()
    assert len({request.run_key for request in asked}) == 3


def test_a_new_folder_is_a_new_partition_and_the_others_are_left_alone(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    for name in ("de", "en"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    tick = ticks(
        instance,
        Watched("web", (tmp_path,), FOLDERS),
        table("raw.web", partitions_def=FOLDERS),
        table("filtered.web", ["raw.web"], FOLDERS),
        table("dedup.web", ["filtered.web"]),
    )
    tick()
    *partitions, whole = tick()
    assert [request.partition_key for request in partitions] == ["de", "en"]
    assert all(selected(request) == ["filtered.web", "raw.web"] for request in partitions)
    assert (selected(whole), whole.partition_key) == (["dedup.web"], None)
    assert int(partitions[0].tags["dagster/priority"]) > int(whole.tags.get("dagster/priority", "0"))
    (tmp_path / "fr").mkdir()
    (tmp_path / "fr" / "a.txt").write_text("fr")
    tick()
    assert [request.partition_key for request in tick()] == ["fr", None]
    assert instance.get_dynamic_partitions("folders") == ["de", "en", "fr"]


def test_tables_of_all_partitions_wait_for_every_partitions_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    for name in ("de", "en"):
        (tmp_path / "web" / name).mkdir(parents=True)
    with open_instance(Settings(home=tmp_path / "lake")) as instance:
        watched = Watched("web", (tmp_path / "web",), FOLDERS)
        tick = ticks(
            instance,
            watched,
            table("raw.web", partitions_def=FOLDERS),
            table("dedup.web", ["raw.web"]),
        )
        tick()
        first, *rest = [dg.DagsterRun(job_name="pipeline", tags=of.tags) for of in tick()]
        queue = instance.get_concurrency_config().run_queue_config
        assert queue is not None
        assert queue.tag_concurrency_limits == [{"key": IN_TURN_TAG, "limit": 1}]
        begun = TagConcurrencyLimitsCounter(queue.tag_concurrency_limits, [first])
        assert [begun.is_blocked(of) for of in rest] == [True, True]
        asked_by_hand = dg.DagsterRun(job_name="pipeline")
        assert not begun.is_blocked(asked_by_hand)


def test_the_state_sees_names_sizes_and_times_and_no_link(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    os.utime(file, (1, 1))
    states = [state([tmp_path])]
    os.utime(file, (2, 2))
    states.append(state([tmp_path]))
    file.write_text("four")
    os.utime(file, (2, 2))
    states.append(state([tmp_path]))
    file.rename(tmp_path / "b")
    states.append(state([tmp_path]))
    assert len(set(states)) == 4
    (tmp_path / "loop").symlink_to(tmp_path)
    assert state([tmp_path]) == state([tmp_path]) != states[-1]
    assert state([tmp_path / "absent"]) != state([])


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
