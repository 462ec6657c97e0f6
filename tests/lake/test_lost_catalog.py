"""An embedded lake without its catalog is refused as long as its warehouse holds tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from obstore.store import LocalStore

from factory.errors import DamagedFile
from factory.lake import lost_catalog
from factory.lake.catalog import open_catalog
from factory.lake.lock import writing
from factory.lake.lost_catalog import require_catalog_file
from factory.lake.place import require_place
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.blender.lakes import CODE, make_lake, packed_rows, write_table


def test_a_missing_catalog_is_named_with_a_table_and_the_remedy(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", code=1)
    lake.files.catalog_database.unlink()
    with pytest.raises(DamagedFile) as raised:
        Lake(lake).names()
    assert str(raised.value) == (
        f"The lake in {lake.home} has lost its catalog: {lake.files.catalog_database} is missing, but the "
        f"warehouse {lake.warehouse_uri} holds tables such as packed/code. Restore catalog.db from a backup "
        "of the lake, or set FACTORY_HOME to another folder."
    )
    with pytest.raises(DamagedFile, match="is missing"), writing(lake, "a test"):
        pass
    assert not lake.files.catalog_database.exists()


@pytest.mark.parametrize("content", ["empty database", "no bytes"])
def test_an_empty_catalog_in_place_of_a_lost_one_is_refused(tmp_path: Path, content: str) -> None:
    lake = make_lake(tmp_path / "lake", code=1)
    new = Settings(home=tmp_path / "new")
    Lake(new).names()
    empty = new.files.catalog_database.read_bytes() if content == "empty database" else b""
    lake.files.catalog_database.write_bytes(empty)
    with pytest.raises(DamagedFile, match=r"catalog\.db names no table, but .* such as packed/code"):
        Lake(lake).names()


def test_a_restored_catalog_opens_the_lake(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", code=1)
    before = Lake(lake).names()
    backup = lake.files.catalog_database.rename(tmp_path / "catalog.db")
    with pytest.raises(DamagedFile):
        require_place(lake)
    backup.rename(lake.files.catalog_database)
    assert Lake(lake).names() == before


def test_a_lake_that_was_killed_while_it_was_made_is_new(tmp_path: Path) -> None:
    lake = Settings(home=tmp_path / "lake")
    Lake(lake).names()
    lake.files.catalog_database.unlink()
    assert Lake(lake).names() == []


def test_a_lake_whose_last_table_was_dropped_stays_open(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", code=1)
    open_catalog(lake).drop_table(CODE)  # as a table with damaged metadata is before it is made again
    assert Lake(lake).names() == []


def test_a_new_home_over_the_tables_of_a_deleted_one_stays_open(tmp_path: Path) -> None:
    lake = Settings(home=tmp_path / "lake", cache=tmp_path, warehouse=str(tmp_path / "warehouse"))
    write_table(lake, CODE, packed_rows("code", 1))
    shutil.rmtree(lake.home)
    for _ in range(2):
        assert Lake(lake).names() == []
    lake.files.catalog_database.unlink()
    with pytest.raises(DamagedFile, match="is missing"):
        Lake(lake).names()


def test_a_lake_with_a_catalog_does_not_search_its_warehouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = make_lake(tmp_path / "lake", code=1)
    monkeypatch.setattr(lost_catalog, "_table_folder", lambda _: pytest.fail("the warehouse was searched"))
    assert Lake(lake).names()


def test_a_store_is_searched_for_tables_as_a_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = make_lake(tmp_path / "lake", code=1)
    lake.files.catalog_database.unlink()
    monkeypatch.setattr(lost_catalog, "local_path", lambda _: None)
    monkeypatch.setattr(lost_catalog, "object_store", lambda _: LocalStore(prefix=lake.files.warehouse))
    with pytest.raises(DamagedFile, match="holds tables such as packed/code"):
        require_catalog_file(lake)
    (lake.files.warehouse / "packed" / "code" / "metadata").rename(tmp_path / "metadata")
    require_catalog_file(lake)
