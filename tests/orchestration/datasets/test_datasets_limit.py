"""A dataset with a limit in a datasets file: its sentences, and what its table says."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from factory.lake import names
from factory.lake.schemas.ingest import LIMIT
from factory.lake.tables import Lake
from factory.orchestration.datasets.check import check
from factory.orchestration.datasets.file import datasets_file
from factory.orchestration.declare.located_yaml import LocatedYaml
from factory.orchestration.table import progress
from factory.settings import Settings
from tests.orchestration.declared import declared, refusal
from tests.orchestration.runs import run

TEXT = "datasets: [{name: NAME, kind: prose, format: jsonl, paths: FILE, limit: 2}]\n"


def write(folder: Path, name: str = "a.jsonl", lines: int = 3) -> None:
    (folder / name).write_text("".join(f'{{"text": "{name} {number}"}}\n' for number in range(lines)))


@pytest.mark.parametrize(
    "limit, sentence",
    [
        ("0", "limit: `0` does not fit. It should be greater than or equal to 1."),
        ("{word_count: 5}", "limit: It is a number of records. Limits of rules are `limits`."),
        ("many", "limit: `many`"),
    ],
)
def test_a_wrong_limit_is_told_with_its_line(tmp_path: Path, limit: str, sentence: str) -> None:
    write(tmp_path)
    text = TEXT.replace("NAME", "web").replace("FILE", "a.jsonl").replace("limit: 2", f"limit: {limit}")
    assert f"my.yaml, line 1, datasets[0].{sentence}" in refusal(tmp_path, text)


def test_a_dataset_from_another_takes_its_limit_from_there(tmp_path: Path) -> None:
    write(tmp_path)
    text = """datasets:
- {name: pages, kind: prose, format: jsonl, paths: a.jsonl, group: pages}
- {name: main, kind: prose, format: html, from: pages, limit: 5}
"""
    assert refusal(tmp_path, text) == (
        "my.yaml, line 3, datasets[1].limit: It reads every text of `pages`. Give `pages` the limit."
    )


def test_a_limit_decides_the_documents_and_check_says_so(tmp_path: Path) -> None:
    write(tmp_path)
    text = TEXT.replace("NAME", "web").replace("FILE", "a.jsonl")
    (tmp_path / "my.yaml").write_text(text)
    [limited] = LocatedYaml.read(tmp_path / "my.yaml").build(datasets_file()).datasets
    assert limited.reading()["limit"] == 2
    assert [dataset.limit for dataset in check(tmp_path / "my.yaml").datasets] == [2]


@pytest.mark.spark
def test_a_table_says_its_limit_and_is_made_again_without_one(
    lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    write(tmp_path)
    text = TEXT.replace("NAME", unique).replace("FILE", "a.jsonl")
    lake, table = Lake(lake_settings), names.raw(unique)

    def notes_of(text: str) -> list[tuple[str, str]]:
        events: list[progress.Progress] = []
        keys = [dg.AssetKey(f"raw.{unique}{end}") for end in ("", "_rejected")]
        with progress.listening(events.append):
            assert run(lake_settings, *declared(tmp_path, text).assets, selection=keys, reuse=True).success
        return [(event.reason, event.note) for event in events if event.phase == "published"]

    assert notes_of(text) == [("", "the first 2 records")]
    assert (lake.published(table).rows, lake.published(table).properties[LIMIT]) == (2, "2")
    assert notes_of(text.replace(", limit: 2", "")) == [("limit 2 -> none", "")]
    assert lake.published(table).rows == 3
    assert LIMIT not in lake.published(table).properties


@pytest.mark.spark
def test_each_partition_has_the_limit(lake_settings: Settings, unique: str, tmp_path: Path) -> None:
    for name in ("de", "en"):
        write(tmp_path, f"{name}.jsonl")
    text = TEXT.replace("NAME", unique).replace("FILE", '"{partition}.jsonl"')
    text = text.replace("limit: 2", "limit: 2, partitions: {by: key, keys: [de, en]}")
    keys = [dg.AssetKey(f"raw.{unique}{end}") for end in ("", "_rejected")]
    result = run(lake_settings, *declared(tmp_path, text).assets, selection=keys, span=("de", "en"))
    assert result.success
    rows = Lake(lake_settings).read(names.raw(unique), ["text"])["text"].to_pylist()
    assert sorted(rows) == ["de.jsonl 0", "de.jsonl 1", "en.jsonl 0", "en.jsonl 1"]
    [event] = [
        materialization
        for materialization in result.asset_materializations_for_node(f"raw__{unique}")
        if materialization.partition == "de"
    ][:1]
    assert event.metadata["limit"].value == "the first 2 records"
