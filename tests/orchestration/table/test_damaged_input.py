"""The search for the damaged file of a run's upstream tables ends in its name, or in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.lake import names
from factory.lake.tables import Lake
from factory.orchestration.host.resources import LakeRun
from factory.orchestration.table.damaged_input import damaged_input
from factory.settings import Settings
from tests.explain.lakes import documents

WEB, BOOKS, MISSING = names.raw("web"), names.raw("books"), names.raw("missing")


@pytest.fixture
def run(tmp_path: Path) -> LakeRun:
    lake = Lake(Settings(home=tmp_path))
    documents(lake, "web", "abc")
    documents(lake, "books", "abc")
    return LakeRun(lake, "run")


def data_file(run: LakeRun) -> Path:
    """Return the data file of `raw.books`."""
    (file,) = (run.lake.settings.files.warehouse / "raw" / "books").rglob("*.parquet")
    return file


def test_the_damaged_file_of_the_second_table_is_named(run: LakeRun) -> None:
    assert damaged_input(run, [WEB, BOOKS]) is None
    file = data_file(run)
    file.write_bytes(file.read_bytes()[:-9])
    error = damaged_input(run, [WEB, BOOKS])
    assert file.name in str(error)
    assert f"Table {BOOKS} is damaged" in str(error)


@pytest.mark.invariant(
    "The search for the damaged file of a table accuses no whole file: only what pyarrow cannot read is "
    "damage, and a reader's failure that no file explains is called a failure of the machine. Only a "
    "failure of Spark to read Parquet starts the search, and a search that fails leaves Spark's own error"
    " in place."
)
def test_a_store_that_cannot_be_read_is_logged_and_raises_nothing(
    run: LakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    file = data_file(run)
    file.unlink()
    file.symlink_to(file)  # opening a loop of links is an error of the file system
    with pytest.raises(OSError, match="symbolic links"):
        file.open("rb")
    assert damaged_input(run, [WEB, BOOKS]) is None
    assert f"The files of {BOOKS} could not be searched for damage" in caplog.text


def test_a_table_that_is_gone_is_logged_and_raises_nothing(
    run: LakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    assert damaged_input(run, [MISSING, BOOKS]) is None
    assert f"The files of {MISSING} could not be searched for damage" in caplog.text
