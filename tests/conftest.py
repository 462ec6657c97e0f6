"""Fixtures of all tests: one Spark session and one lake per test process, unique table names per test."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from factory.lake.catalog import open_catalog
from factory.settings import Settings
from factory.spark.session import build_session
from tests import reaper

if TYPE_CHECKING:
    from tests.undisturbed import SmallLake

pytest_plugins = ["tests.cpu_budget"]

ROOT = Path(__file__).parents[1]
_EXECUTOR = "spark.executor.extraJavaOptions"
# A JVM of the tests lives for seconds: compiling for speed costs it more CPU than it gains.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1"

reaper.start()

# For every JVM that this process and its children start: drivers, daemons of a cluster, executors.
os.environ.pop("SPARK_HOME", None)  # Spark starts as it does for most users
os.environ.setdefault("SPARK_SUBMIT_OPTS", _SHORT_LIVED)
os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", _SHORT_LIVED)
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--conf '{_EXECUTOR}={_SHORT_LIVED}' pyspark-shell")

# A shell in the background starts tests with interrupts ignored, which every child would inherit; and after a
# run in this process Dagster has SIGTERM do what SIGINT does.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same code gets the same verdict, and a pause of the machine fails no test. The profile `drawn` draws new
# examples in every run, or those of `--hypothesis-seed`.
hypothesis.settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("drawn", hypothesis.settings.get_profile("same"), derandomize=False)
hypothesis.settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options: how often the crash test kills a run, how many files are damaged and
    datasets drawn, where pictures go."""
    parser.addoption("--kill-points", type=int, default=1, help="instants at which one is killed")
    parser.addoption("--kill-seed", type=int, default=20, help="seed of those instants")
    parser.addoption("--damages", type=int, default=15, help="files that the test of damages breaks")
    parser.addoption("--damage-seed", type=int, default=14, help="seed of those damages")
    parser.addoption("--tiny-datasets", type=int, default=4, help="tiny datasets that run through the chain")
    parser.addoption("--tiny-seed", type=int, default=28, help="seed of their texts")
    parser.addoption("--page-files", type=int, default=100, help="files drawn to read their pages")
    parser.addoption("--batch-seeds", type=int, default=60, help="interleavings of producers and readers")
    parser.addoption("--batch-kills", type=int, default=3, help="kills of processes of durable batches")
    parser.addoption("--batch-seed", type=int, default=31, help="seed of those kills")
    parser.addoption("--pictures", type=Path, help="folder for pictures of the UI")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the files with tests that take minutes, so that no worker is left alone with one at the end."""
    long_files = {item.path for item in items if item.get_closest_marker("long") is not None}
    items.sort(key=lambda item: item.path not in long_files)


@pytest.fixture(scope="session")
def kill_points(request: pytest.FixtureRequest) -> int:
    """The number of random instants at which the crash test kills a run."""
    return int(request.config.getoption("--kill-points"))


@pytest.fixture(scope="session")
def kill_seed(request: pytest.FixtureRequest) -> int:
    """The seed of those instants."""
    return int(request.config.getoption("--kill-seed"))


@pytest.fixture(scope="session")
def n_damages(request: pytest.FixtureRequest) -> int:
    """The number of files that the test of damages breaks."""
    return int(request.config.getoption("--damages"))


@pytest.fixture(scope="session")
def damage_seed(request: pytest.FixtureRequest) -> int:
    """The seed of those damages."""
    return int(request.config.getoption("--damage-seed"))


@pytest.fixture(scope="session")
def n_tiny_datasets(request: pytest.FixtureRequest) -> int:
    """The number of tiny datasets that run through the whole chain."""
    return int(request.config.getoption("--tiny-datasets"))


@pytest.fixture(scope="session")
def tiny_seed(request: pytest.FixtureRequest) -> int:
    """The seed of their texts."""
    return int(request.config.getoption("--tiny-seed"))


@pytest.fixture(scope="session")
def n_page_files(request: pytest.FixtureRequest) -> int:
    """The number of Parquet files that the test of page layouts draws."""
    return int(request.config.getoption("--page-files"))


@pytest.fixture(scope="session")
def batch_seeds(request: pytest.FixtureRequest) -> int:
    """The number of seeds whose interleavings of producers and readers are run."""
    return int(request.config.getoption("--batch-seeds"))


@pytest.fixture(scope="session")
def batch_kills(request: pytest.FixtureRequest) -> int:
    """The number of kills and pauses of processes that write and read batches."""
    return int(request.config.getoption("--batch-kills"))


@pytest.fixture(scope="session")
def batch_seed(request: pytest.FixtureRequest) -> int:
    """The seed of those kills."""
    return int(request.config.getoption("--batch-seed"))


@pytest.fixture
def pictures(request: pytest.FixtureRequest) -> Path | None:
    """The folder for pictures of the UI; None unless `--pictures` names one."""
    folder: Path | None = request.config.getoption("--pictures")
    return folder


@pytest.fixture(scope="session")
def lake_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings of the test process's own embedded lake."""
    return Settings(
        home=tmp_path_factory.mktemp("lake"),
        spark_master="local[2]",  # every machine has two cores
        spark_driver_memory="2g",  # several test processes share a machine
        spark_shuffle_partitions=3,  # odd and small, so that no test depends on its order
    )


@pytest.fixture(scope="session")
def spark(lake_settings: Settings) -> Iterator[SparkSession]:
    """The one SparkSession of the test process, on its lake."""
    session = build_session(lake_settings)
    # Generating and compiling code for a handful of rows takes a fifth of a test's time. Runs in processes of
    # their own (`tests.small_pipeline`, the walk, the engines) generate code as users' runs do.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """A lake of the small pipeline that no test changes."""
    from tests.undisturbed import undisturbed_lake  # Dagster, which few of the tests load

    return undisturbed_lake(tmp_path_factory)


@pytest.fixture
def catalog(lake_settings: Settings) -> Catalog:
    """The PyIceberg catalog of the test process's lake."""
    return open_catalog(lake_settings)


@pytest.fixture
def unique() -> str:
    """A table name that no other test uses."""
    return f"t{uuid.uuid4().hex[:12]}"
