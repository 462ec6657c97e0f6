"""A lake knows the place it was made at, and a warehouse outside its home the home that may use it."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from factory.errors import DamagedFile, LakeMoved
from factory.lake.lock import writing
from factory.lake.place import (
    CLAIM,
    WarehouseClaim,
    file_server,
    is_below,
    read_claim,
    read_record,
    record_place,
    require_place,
    take_claim,
)
from factory.lake.relocation.relocate import relocate
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.blender.lakes import make_lake


def older(settings: Settings) -> Settings:
    """The lake as a release without records left it."""
    settings.files.lake_record.unlink()
    return settings


def test_a_lake_records_its_place_when_it_is_made_and_keeps_its_id(tmp_path: Path) -> None:
    lake = Settings(home=tmp_path / "lake")
    require_place(lake)
    assert read_record(lake) is None
    Lake(lake).names()
    record = read_record(lake)
    assert record is not None
    assert (len(record.lake), record.warehouse) == (32, lake.warehouse_uri)
    with writing(lake, "a test"):
        assert read_record(lake) == record


def test_a_lake_is_refused_where_it_was_not_made(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", code=1)
    (tmp_path / "lake").rename(tmp_path / "moved")
    with pytest.raises(LakeMoved, match="was copied or moved"):
        Lake(Settings(home=tmp_path / "moved")).names()
    (tmp_path / "moved").rename(tmp_path / "lake")
    assert Lake(Settings(home=tmp_path / "lake")).names()


def test_another_warehouse_than_the_recorded_one_is_refused(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", code=1)
    with pytest.raises(LakeMoved, match="its warehouse is s3://bucket/w"):
        require_place(Settings(home=tmp_path / "lake", warehouse="s3://bucket/w"))


def test_links_to_the_lake_are_its_place(tmp_path: Path) -> None:
    make_lake(tmp_path / "disk" / "lake", code=1)
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    require_place(Settings(home=tmp_path / "link" / "lake"))
    require_place(Settings(home=tmp_path / "disk" / ".." / "link" / "lake"))
    (tmp_path / "disk").rename(tmp_path / "other disk")  # the recorded path leads there by a link
    (tmp_path / "disk").symlink_to(tmp_path / "other disk")
    require_place(Settings(home=tmp_path / "other disk" / "lake"))


def test_a_lake_made_through_a_link_stays_valid_when_the_link_follows_it(tmp_path: Path) -> None:
    for name in ("disk", "other"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "disk")
    lake = make_lake(link / "lake", code=1)
    shutil.copytree(tmp_path / "disk" / "lake", tmp_path / "other" / "lake")
    with pytest.raises(LakeMoved):
        require_place(Settings(home=tmp_path / "other" / "lake"))
    link.unlink()
    link.symlink_to(tmp_path / "other")
    require_place(lake)
    with pytest.raises(LakeMoved):
        require_place(Settings(home=tmp_path / "disk" / "lake"))


def test_an_older_lake_gets_its_record_at_its_next_run(tmp_path: Path) -> None:
    lake = older(make_lake(tmp_path / "lake", code=1))
    Lake(lake).names()
    assert read_record(lake) is None
    with writing(lake, "a test"):
        record = read_record(lake)
    assert record is not None
    assert record.warehouse == lake.warehouse_uri


@pytest.mark.parametrize("original_stays", [True, False])
def test_a_copy_of_an_older_lake_gets_no_record(tmp_path: Path, original_stays: bool) -> None:
    lake = older(make_lake(tmp_path / "lake", code=1))
    shutil.copytree(lake.home, tmp_path / "copy")
    if not original_stays:
        shutil.rmtree(lake.home)
    copy = Settings(home=tmp_path / "copy")
    with pytest.raises(LakeMoved, match=str(tmp_path / "lake")), writing(copy, "a test"):
        pass
    assert not copy.files.lake_record.exists()


def test_one_table_elsewhere_refuses_an_older_lake(tmp_path: Path) -> None:
    lake = older(make_lake(tmp_path / "lake", code=1, prose=1))
    with sqlite3.connect(lake.files.catalog_database) as catalog:
        catalog.execute(
            "update iceberg_tables set metadata_location = 'file:/old/metadata/0.metadata.json' "
            "where table_name = 'prose'"
        )
    with pytest.raises(LakeMoved, match="paths to file:/old/metadata"):
        record_place(lake)


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", code=1)
    lake.files.lake_record.write_text("{")
    with pytest.raises(DamagedFile, match=r"lake\.json"):
        require_place(lake)


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
@pytest.mark.parametrize("folder", ["lake", "a lake with blanks", "über"])
def test_every_spelling_of_a_location_is_below_its_warehouse(
    tmp_path: Path, scheme: str, folder: str
) -> None:
    warehouse = f"file://{tmp_path / folder}"
    assert is_below(f"{scheme}{tmp_path / folder}/raw/web/0.json", warehouse)
    assert not is_below(f"{scheme}{tmp_path / folder}2/raw/web/0.json", warehouse)
    assert not is_below("s3://bucket/raw/web/0.json", warehouse)


def outside(tmp_path: Path, home: str) -> Settings:
    return Settings(home=tmp_path / home, warehouse=str(tmp_path / "warehouse"))


def test_a_warehouse_outside_its_home_admits_one_home_until_another_takes_it(tmp_path: Path) -> None:
    first, second = outside(tmp_path, "first"), outside(tmp_path, "second")
    Lake(first).names()
    claim, record = read_claim(first), read_record(first)
    assert claim is not None
    assert record is not None
    assert (claim.lake, claim.home) == (record.lake, str(first.home))
    with pytest.raises(LakeMoved, match=r"belongs to the lake in .*/first on .*`factory relocate --take`"):
        Lake(second).names()
    assert not second.home.exists() or read_record(second) is None
    shutil.copytree(first.home, second.home)
    with pytest.raises(LakeMoved, match=r"not to the one in .*/second"):
        Lake(second).names()
    take_claim(second, record.lake)
    Lake(second).names()
    with pytest.raises(LakeMoved, match=r"belongs to the lake in .*/second"):
        Lake(first).names()


def test_one_of_many_new_homes_gets_a_warehouse_that_all_open_at_once(tmp_path: Path) -> None:
    homes = [outside(tmp_path, f"home{number}") for number in range(8)]
    start = threading.Barrier(len(homes))

    def opened(home: Settings) -> bool:
        start.wait()
        try:
            Lake(home).names()
        except LakeMoved:
            return False
        return True

    with ThreadPoolExecutor(len(homes)) as threads:
        winners = [home for home, won in zip(homes, threads.map(opened, homes), strict=True) if won]
    claim = read_claim(homes[0])
    assert claim is not None
    assert [str(home.home) for home in winners] == [claim.home]


def test_a_copied_home_is_refused_over_the_warehouse_of_its_original(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", code=1)
    shutil.copytree(lake.home, tmp_path / "copy")
    with pytest.raises(LakeMoved, match=r"belongs to the lake in .*/lake on"):
        Lake(Settings(home=tmp_path / "copy", warehouse=str(lake.files.warehouse))).names()


def test_a_home_restored_on_another_machine_keeps_its_own_warehouse(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", code=1)
    record = read_record(lake)
    assert record is not None
    theirs = WarehouseClaim(lake=record.lake, machine="elsewhere", home=str(lake.home))
    (lake.files.warehouse / CLAIM).write_text(theirs.model_dump_json())
    assert Lake(lake).names()
    with writing(lake, "a test"):
        claim = read_claim(lake)
    assert claim == theirs.model_copy(update={"machine": socket.gethostname()})


def test_a_home_of_the_same_name_on_another_machine_is_another_home(tmp_path: Path) -> None:
    lake = outside(tmp_path, "home")
    Lake(lake).names()
    claim = read_claim(lake)
    assert claim is not None
    theirs = WarehouseClaim(lake=claim.lake, machine="elsewhere", home=claim.home)
    (tmp_path / "warehouse" / CLAIM).write_text(theirs.model_dump_json())
    with pytest.raises(LakeMoved, match="on elsewhere"):
        require_place(lake)


MOUNTS = {
    "/": "/dev/sda1",
    "/home": "nas:/export/home",
    "/home/scratch": "tmpfs",
    "/mnt/c": "C:\\",
    "/mnt/share": "//server/share",
    "/lustre": "10.0.0.1@tcp:/fs",
}


@pytest.mark.parametrize(
    "home, server",
    [
        ("/home/me/.factory", "nas:/export/home"),
        ("/home", "nas:/export/home"),
        ("/homes/me/.factory", None),
        ("/home/scratch/.factory", None),
        ("/mnt/c/.factory", None),
        ("/mnt/share/lake", "//server/share"),
        ("/lustre/lake", "10.0.0.1@tcp:/fs"),
    ],
)
def test_a_home_on_a_file_server_is_one_home_on_every_machine(home: str, server: str | None) -> None:
    assert file_server(Path(home), MOUNTS) == server


def test_a_warehouse_that_has_lost_its_claim_is_opened_by_no_copy_of_its_home(tmp_path: Path) -> None:
    lake, copy = outside(tmp_path, "home"), outside(tmp_path, "copy")
    Lake(lake).names()
    shutil.copytree(lake.home, copy.home)
    (tmp_path / "warehouse" / CLAIM).unlink()
    for home in (lake, copy):
        for using in (require_place, record_place):
            with pytest.raises(LakeMoved, match=r"has lost its claim\.json, .* `factory relocate --take`"):
                using(home)
    assert read_claim(lake) is None
    relocate(copy, take=True, settle=lambda files: None, observe=lambda *_: None)
    Lake(copy).names()
    with pytest.raises(LakeMoved, match=r"belongs to the lake in .*/copy"):
        Lake(lake).names()


@pytest.mark.parametrize("name", ["home/lake.json", "warehouse/claim.json"])
def test_a_folder_in_place_of_a_record_is_named(tmp_path: Path, name: str) -> None:
    lake = outside(tmp_path, "home")
    Lake(lake).names()
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(DamagedFile, match=rf"{name}, which says where the lake was made, is a folder"):
        require_place(lake)


def test_a_home_made_again_continues_under_its_claim(tmp_path: Path) -> None:
    lake = outside(tmp_path, "home")
    Lake(lake).names()
    claim = read_claim(lake)
    shutil.rmtree(lake.home)
    Lake(lake).names()
    record = read_record(lake)
    assert claim is not None
    assert record is not None
    assert (read_claim(lake), record.lake) == (claim, claim.lake)


def test_records_hold_what_their_page_says(tmp_path: Path) -> None:
    lake = outside(tmp_path, "home")
    Lake(lake).names()
    assert set(json.loads(lake.files.lake_record.read_text())) == {"lake", "warehouse"}
    assert set(json.loads((tmp_path / "warehouse" / CLAIM).read_text())) == {"lake", "machine", "home"}


def test_a_lake_on_servers_has_no_place(tmp_path: Path) -> None:
    servers = Settings(
        home=tmp_path, catalog="postgres", catalog_uri="postgresql://h/db", warehouse="s3://bucket/w"
    )
    require_place(servers)
    record_place(servers)
    assert list(tmp_path.iterdir()) == []
