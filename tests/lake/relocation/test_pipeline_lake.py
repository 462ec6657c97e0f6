"""A relocated copy of a lake that Spark wrote: every table has its content, and Spark reads and writes it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from factory.lake.catalog import spark_properties
from factory.lake.names import TableName
from factory.lake.place import is_below, metadata_locations
from factory.lake.schemas.dedup import COMPONENTS
from factory.lake.tables import Lake
from factory.lake_spark.audit import spark_schema
from factory.settings import Settings
from tests.lake.relocation.lakes import copy_of, files, relocated, relocation
from tests.small_pipeline import CODE, run_apart
from tests.undisturbed import SmallLake

MOVED = TableName("dedup", "moved")
SORTED = TableName("sorted", CODE)


def contents(lake: Settings) -> dict[str, str]:
    tables = Lake(lake)
    return {str(name): tables.published(name).lineage.content for name in tables.names()}


@pytest.fixture
def session_of(spark: SparkSession) -> Iterator[Callable[[Settings], SparkSession]]:
    """Sessions of the Spark of the tests on other lakes."""

    def session_of(lake: Settings) -> SparkSession:
        session = spark.newSession()
        for name, value in spark_properties(lake).items():
            session.conf.set(name, value)
        return session

    yield session_of
    spark.createDataFrame([], "doc_id string")  # makes the session of the tests the active one again


@pytest.mark.spark
def test_spark_reads_and_writes_a_relocated_table(
    session_of: Callable[[Settings], SparkSession], tmp_path: Path
) -> None:
    original = Settings(home=tmp_path / "lake")
    Lake(original).create(MOVED, COMPONENTS)
    add_row(session_of(original), "a")
    copy = copy_of(original, tmp_path / "the copy")
    before = files(original.files.warehouse)
    relocated(copy)
    spark = session_of(copy)
    add_row(spark, "b")
    assert sorted(row.doc_id for row in spark.table(f"lake.{MOVED}").collect()) == ["a", "b"]
    assert sorted(Lake(copy).read(MOVED, ["doc_id"])["doc_id"].to_pylist()) == ["a", "b"]
    assert all(is_below(location, copy.warehouse_uri) for location in metadata_locations(copy))
    assert files(original.files.warehouse) == before


def add_row(spark: SparkSession, doc_id: str) -> None:
    row = pa.Table.from_pylist([{"doc_id": doc_id, "component": doc_id}], schema=COMPONENTS.columns)
    spark.createDataFrame(row, spark_schema(COMPONENTS)).writeTo(f"lake.{MOVED}").append()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(1_800)
def test_spark_reads_and_writes_a_relocated_lake_and_leaves_the_original(
    undisturbed: SmallLake, tmp_path: Path
) -> None:
    original = undisturbed.settings
    copy = original.model_copy(update={"home": tmp_path / "the copy"})
    shutil.copytree(original.home, copy.home, ignore=shutil.ignore_patterns("page-index", "spark"))
    tables = original.files.warehouse / "sorted", original.files.warehouse / "depsort"
    before = [files(folder) for folder in tables]
    done = relocation(copy)
    assert done.returncode == 0, done.stderr
    assert contents(copy) == contents(original)
    Lake(copy).table(SORTED).delete()  # a commit without lineage, so that the next run makes the table again
    ran = run_apart(undisturbed.corpus, copy, "--select", str(SORTED))
    assert ran.returncode == 0, ran.stderr
    assert contents(copy) == contents(original)
    assert Lake(copy).published(SORTED).snapshot_id != Lake(original).published(SORTED).snapshot_id
    assert all(is_below(location, copy.warehouse_uri) for location in metadata_locations(copy))
    assert [files(folder) for folder in tables] == before
