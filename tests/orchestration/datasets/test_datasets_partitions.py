"""Partitions that a file of datasets declares: by key, by time and by folder."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg
import pytest

from factory.errors import ConfigurationError
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.host.definitions import definitions
from factory.settings import Settings
from jobs.watched import Watched, notice
from spark_udfs.ingest.address import place_of
from tests.jobs.test_sensors import ranges, ticks
from tests.orchestration.declared import assert_refused, declared
from tests.orchestration.runs import failure, run

PARTED = """\
datasets:
  - name: letters
    kind: prose
    format: files
    paths: "letters/{partition}"
    partitions: {by: key, keys: [de, en]}
  - name: web
    kind: prose
    format: jsonl
    paths: ["web/{partition}/a.jsonl"]
    partitions: {by: day, start: 2026-01-01, end: 2026-01-04}
    variants: {long: {limits: {word_count: [200, 100000]}}}
  - name: deliveries
    kind: prose
    format: files
    paths: deliveries
    partitions: {by: folder}
  - {name: plain, kind: prose, format: files, paths: letters}
"""


@pytest.fixture
def parted(folder: Path) -> Path:
    """A folder with everything that PARTED names."""
    for path in ("letters/de", "letters/en", "web", "deliveries/first"):
        (folder / path).mkdir(parents=True)
    return folder


def test_partitions_by_key_time_and_folder_are_dagsters_up_to_the_verdicts(parted: Path) -> None:
    found = declared(parted, PARTED)
    by_table = {key.to_user_string(): asset.partitions_def for asset in found.assets for key in asset.keys}
    letters, web, deliveries = (by_table[f"raw.{name}"] for name in ("letters", "web", "deliveries"))
    assert letters == dg.StaticPartitionsDefinition(["de", "en"])
    assert web == dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-04")
    assert web is not None
    assert list(web.get_partition_keys()) == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert deliveries == dg.DynamicPartitionsDefinition(name="deliveries")
    assert by_table["signals.web"] == by_table["filtered.web__long"] == web
    whole = {by_table[name] for name in ("raw.plain", "dedup.prose_decisions", "packed.letters")}
    assert whole == {None}
    assert dict(found.partitions) == {"letters": letters, "web": web, "deliveries": deliveries}
    definitions(found.assets, Settings(home=parted / "lake"))


def test_the_sensor_sees_the_partitions_of_a_file_each_by_itself(parted: Path) -> None:
    (parted / "web" / "2026-01-02").mkdir()
    (parted / "web" / "2026-01-02" / "a.jsonl").write_text("{}")
    (parted / "web" / "notes.txt").write_text("of no partition")
    found = declared(parted, PARTED)
    watched = [
        Watched(dataset, paths, found.partitions.get(dataset)) for dataset, paths in found.paths.items()
    ]
    place = place_of(parted)
    assert {dataset.name: dataset.inputs() for dataset in watched} == {
        "letters": {key: [place.below(f"letters/{key}".encode())] for key in ("de", "en")},
        "web": {"2026-01-02": [place.below(b"web/2026-01-02/a.jsonl")]},
        "deliveries": {"first": [place.below(b"deliveries/first")]},
        "plain": {"": [place.below(b"letters")]},
    }
    instance = dg.DagsterInstance.ephemeral()
    notice(watched, instance)
    assert instance.get_dynamic_partitions("deliveries") == ["first"]


def test_a_folder_whose_name_is_no_text_is_told_and_not_made_a_partition(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).mkdir()
    of = dg.DynamicPartitionsDefinition(name="deliveries")
    with pytest.raises(ConfigurationError, match=r"the folder b'\\xff' is not UTF-8"):
        notice([Watched("web", (place_of(tmp_path),), of)], dg.DagsterInstance.ephemeral())


def test_a_partition_whose_folder_is_gone_is_no_partition_until_it_is_back(tmp_path: Path) -> None:
    of = dg.DynamicPartitionsDefinition(name="deliveries")
    for name in ("a/mon", "b/tue", "b/.cache", "b/__pycache__"):
        (tmp_path / name).mkdir(parents=True)
    watched = [Watched(name, (place_of(tmp_path / name),), of) for name in ("a", "b")]
    instance = dg.DagsterInstance.ephemeral()
    instance.add_dynamic_partitions("deliveries", ["teu"])  # named once by mistake
    assert notice(watched, instance) == ["deliveries/teu"]
    (tmp_path / "b" / "tue").rmdir()
    assert notice(watched, instance) == ["deliveries/tue"]
    assert instance.get_dynamic_partitions("deliveries") == ["mon"]
    (tmp_path / "b" / "tue").mkdir()
    assert notice(watched, instance) == []
    assert instance.get_dynamic_partitions("deliveries") == ["mon", "tue"]
    (tmp_path / "a").rename(tmp_path / "elsewhere")
    assert notice(watched, instance) == []  # what is not mounted is not gone
    assert instance.get_dynamic_partitions("deliveries") == ["mon", "tue"]


WRONG = [
    ("by: key", "by: ky", "line 6, datasets[0].partitions.by: Unknown value `ky`. Did you mean `key`?"),
    ("by: key, ", "", "line 6, datasets[0].partitions.by: `by` is missing. Add it."),
    ("keys: [de", "kys: [de", "line 6, datasets[0].partitions.keys: `keys` is missing. Add it."),
    ("[de, en]", "[]", "line 6, datasets[0].partitions.keys: It is empty. Give at least one."),
    ("[de, en]", "[de, no]", "line 6, datasets[0].partitions.keys[1]: YAML reads this as False"),
    ("[de, en]", "[de, ../x]", "line 6, datasets[0].partitions.keys: `../x` is not a partition key."),
    ("[de, en]", "[de, de]", "line 6, datasets[0].partitions.keys: `de` is listed twice. Keep one."),
    ("[de, en]", f"[{'d' * 300}]", "line 6, datasets[0].partitions.keys: `dddddddddddddddddddd...` has 300"),
    ("start: 2026-01-01, ", "", "line 11, datasets[1].partitions.start: `start` is missing. Add it."),
    ("start: 2026-01-01", "start: soon", "line 11, datasets[1].partitions.start: `soon` does not fit."),
    ("2026-01-04", "2025-01-04", "line 11, datasets[1].partitions.end: It is not after `start`,"),
    ("by: day", "by: day, keys: [a]", "line 11, datasets[1].partitions.keys: Unknown field `keys`."),
    (
        "{by: folder}",
        "[a]",
        "line 17, datasets[2].partitions: Expected fields with values, found `['a']`.",
    ),
    ("letters/{partition}", "letters", "line 5, datasets[0].paths[0]: `letters` would be read for every"),
    ("paths: deliv", "paths: '{partition}'  # ", "line 16, datasets[2].paths[0]: `{partition}` contains"),
    ("web/{", "wbe/{", "line 10, datasets[1].paths[0]: `wbe/{partition}/a.jsonl` does not exist."),
]


@pytest.mark.parametrize("good, bad, said", WRONG)
def test_what_is_wrong_with_partitions_is_told_with_file_line_and_field(
    parted: Path, good: str, bad: str, said: str
) -> None:
    assert_refused(parted, PARTED, good, bad, said)


@pytest.mark.spark
def test_a_range_of_partitions_is_backfilled_and_a_missing_one_named(
    lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    (tmp_path / "days").mkdir()
    for day in (1, 2, 3):
        (tmp_path / "days" / f"2026-01-0{day}.jsonl").write_text(f'{{"text": "of day {day}"}}\n')
    text = (
        f"datasets:\n- name: {unique}\n  kind: prose\n  format: jsonl\n"
        '  paths: "days/{partition}.jsonl"\n'
        "  partitions: {by: day, start: 2026-01-01, end: 2026-01-05}\n"
    )
    found = declared(tmp_path, text)
    chosen = [dg.AssetKey(f"raw.{unique}{end}") for end in ("", "_rejected")]
    chosen += [dg.AssetKey(f"signals.{unique}"), dg.AssetKey(f"filtered.{unique}")]

    def backfill(first: str, last: str) -> dg.ExecuteInProcessResult:
        return run(lake_settings, *found.assets, selection=chosen, span=(first, last))

    def held() -> dict[str, str]:
        rows = Lake(lake_settings).read(TableName("raw", unique), ["text", "partition"]).to_pylist()
        return {row["partition"]: row["text"] for row in rows}

    assert backfill("2026-01-02", "2026-01-03").success
    assert held() == {"2026-01-02": "of day 2", "2026-01-03": "of day 3"}
    assert Lake(lake_settings).published(TableName("filtered", unique)).rows == 2
    watched = Watched(unique, found.paths[unique], found.partitions[unique])
    assets = [asset for asset in found.assets if asset.keys & set(chosen)]
    look = ticks(dg.DagsterInstance.ephemeral(), watched, *assets, lake=Lake(lake_settings))
    assert look() == []
    assert ranges(look()) == [("2026-01-01", "2026-01-01")]  # the others were made from these files
    said = "my.yaml, line 5, datasets[0].paths: `days/2026-01-04.jsonl` does not exist."
    assert said in failure(backfill("2026-01-01", "2026-01-04"))
    assert held() == {"2026-01-02": "of day 2", "2026-01-03": "of day 3"}
