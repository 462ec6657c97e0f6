"""A lake whose warehouse was copied into a bucket, or to another bucket, is relocated to that bucket."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlparse

import obstore
import pytest

from blender.catalog.moved_progress import move_progress
from factory.errors import LakeMoved
from factory.lake.place import require_place
from factory.lake.relocation.relocate import relocate
from factory.lake.store import object_store as warehouse_store
from factory.settings import Settings
from tests.blender.lakes import PROSE, append_rows
from tests.engines.processes import ObjectStore
from tests.engines.test_object_store import on_store
from tests.lake.relocation.lakes import contents, files, make_history, served

pytestmark = pytest.mark.process


def upload(source: Settings, target: Settings) -> None:
    """Copy all objects of a warehouse but its claim; checksum files belong to folders."""
    read, write = warehouse_store(source), warehouse_store(target)
    for chunk in obstore.list(read):
        for entry in chunk:
            if not entry["path"].endswith((".crc", "claim.json")):
                obstore.put(write, entry["path"], obstore.get(read, entry["path"]).bytes())


def relocated(lake: Settings) -> None:
    relocate(lake, take=False, settle=lambda moved: move_progress(lake, moved), observe=lambda *_step: None)


def test_a_lake_moves_from_a_folder_to_a_bucket_and_to_another_one(
    object_store: ObjectStore, tmp_path: Path, unique: str
) -> None:
    buckets = [urlparse(object_store.bucket(f"{unique}-{number}")).netloc for number in range(2)]
    original = make_history(tmp_path / "folder")
    original_contents, batches = contents(original), served(original)
    before = files(original.home)
    lake = original
    for number, bucket in enumerate(buckets):
        moved = on_store(object_store, tmp_path / f"home {number}", bucket)
        shutil.copytree(lake.home, moved.home, ignore=shutil.ignore_patterns("warehouse"))
        upload(lake, moved)
        with pytest.raises(LakeMoved, match="was copied or moved"):
            require_place(moved)
        relocated(moved)
        assert contents(moved) == original_contents
        assert served(moved) == batches
        stored = [entry["path"] for chunk in obstore.list(warehouse_store(moved)) for entry in chunk]
        n_avro = sum(path.endswith(".avro") for path in stored)
        assert n_avro == sum(path.endswith(".avro") for path in before)  # the old ones are gone
        lake = moved
    append_rows(lake, PROSE, 12, 13)
    assert contents(lake) != original_contents
    assert files(original.home) == before
