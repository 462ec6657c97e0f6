"""A run reads the files of its sources and the tables that it does not make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import DataFrame

from factory.lake.names import TableName
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.orchestration.host.input_size import input_bytes
from factory.orchestration.table.table_asset import table_asset
from factory.settings import Settings
from tests.orchestration.table.published import component, publish

SOURCE, BEHIND = component("source"), component("upper", "source")


def raw_table(name: str, **options: Any) -> dg.AssetsDefinition:
    """The raw table of a dataset, which no test makes."""

    @table_asset(namespace="raw", name=name, asset_group="test", schema=RAW, **options)
    def documents() -> DataFrame:
        raise AssertionError

    return documents


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(Settings(home=tmp_path / "home"))


def size(lake: Lake, *assets: dg.AssetsDefinition, only: dg.AssetsDefinition | None = None) -> int | None:
    selected = None if only is None else only.keys
    return input_bytes(assets, lake, selected, dg.DagsterInstance.ephemeral())


def test_the_files_of_a_source_count_and_not_its_table(lake: Lake, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text("12345")
    assert size(lake, raw_table("web", files=lambda _: [folder, folder / "missing"])) == 15


def test_a_source_may_say_its_size(lake: Lake) -> None:
    assert (
        size(lake, raw_table("web", input_bytes=lambda: 7), raw_table("books", input_bytes=lambda: 4)) == 11
    )


def test_the_size_is_unknown_if_one_source_does_not_say_it(lake: Lake) -> None:
    assert size(lake, raw_table("web", input_bytes=lambda: 7), raw_table("books")) is None


def test_a_table_counts_unless_the_run_makes_it(lake: Lake) -> None:
    publish(lake, SOURCE, "a")
    stored = lake.published(TableName("dedup", "source")).size_bytes
    assert stored
    assert size(lake, SOURCE, BEHIND, only=BEHIND) == stored
    assert size(lake, SOURCE, BEHIND) == 0  # the table of a declaration in memory has no size of its own


def test_a_table_that_is_missing_counts_as_empty(lake: Lake) -> None:
    assert size(lake, SOURCE, BEHIND, only=BEHIND) == 0
