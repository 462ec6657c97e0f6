"""A relocated copy of a lake that Spark wrote: every table has its content, and Spark reads and writes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from factory.lake.names import TableName
from factory.lake.place import is_below, metadata_locations
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.lake.relocation.lakes import files, relocation
from tests.small_pipeline import CODE, run_apart
from tests.undisturbed import SmallLake

SORTED = TableName("sorted", CODE)


def contents(lake: Settings) -> dict[str, str]:
    tables = Lake(lake)
    return {str(name): tables.published(name).lineage.content for name in tables.names()}


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
