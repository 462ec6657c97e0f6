"""The servers the engines' tests work on: one of each a test process, each test with a database or bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.settings import Settings
from tests.engines.processes import ObjectStore, Postgres, SparkCluster


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave all tests of this folder to `make test-rest`: their servers take most of their time."""
    item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore what opening a Dagster instance sets for the processes to come."""
    for name in ("DAGSTER_HOME", "FACTORY_DAGSTER_URI"):
        monkeypatch.setenv(name, "")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A Postgres."""
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """An S3-compatible store."""
    server = ObjectStore(tmp_path_factory.mktemp("store"))
    yield server
    server.stop()


@pytest.fixture
def settings(object_store: ObjectStore, tmp_path: Path) -> Settings:
    """Settings that lead straight to the store."""
    return Settings(
        home=tmp_path,
        s3_endpoint=object_store.endpoint,
        s3_access_key_id=object_store.key_id,
        s3_secret_access_key=object_store.secret,
    )


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A Spark cluster."""
    server = SparkCluster(tmp_path_factory.mktemp("cluster"))
    yield server
    server.stop()
