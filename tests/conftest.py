"""Fixtures all tests share: one Spark and one lake a test process, unique table names a test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from factory.lake.catalog import open_catalog
from factory.settings import Settings
from factory.spark import build_session

ROOT = Path(__file__).parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the tests that take minutes first, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session")
def lake_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings of the test process's own embedded lake."""
    return Settings(
        home=tmp_path_factory.mktemp("lake"),
        spark_master="local[2]",  # two cores are what every machine has
        spark_driver_memory="2g",  # several test processes share a machine
        spark_shuffle_partitions=3,  # odd and small: order must not come from it
    )


@pytest.fixture(scope="session")
def spark(lake_settings: Settings) -> Iterator[SparkSession]:
    """The one SparkSession of the test process, on its lake."""
    session = build_session(lake_settings)
    yield session
    session.stop()


@pytest.fixture
def catalog(lake_settings: Settings) -> Catalog:
    """The PyIceberg catalog of the test process's lake."""
    return open_catalog(lake_settings)


@pytest.fixture
def unique() -> str:
    """A name no other test uses, fit for a table."""
    return f"t{uuid.uuid4().hex[:12]}"
