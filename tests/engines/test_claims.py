"""Two copies of a home over one bucket: one may use it, in every command, until the other takes it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

import obstore
import pytest

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.cli import root
from factory.errors import LakeMoved
from factory.lake.place import read_claim, read_record
from factory.lake.store import object_store as warehouse_store
from factory.lake.tables import Lake
from factory.settings import Settings, settings
from tests.blender.lakes import CODE, load_table, packed_rows, write_table
from tests.cli.command import factory
from tests.cli.every_command import CALLS, answer
from tests.cli.test_copied_lake import state
from tests.engines.processes import ObjectStore
from tests.engines.test_object_store import on_store

pytestmark = pytest.mark.process


@dataclass(frozen=True)
class TwoHomes:
    """A lake in a bucket, a copy of its home, and the id of its blend."""

    original: Settings
    copy: Settings
    blend: str

    def state(self) -> tuple[object, ...]:
        listed = obstore.list(warehouse_store(self.original))
        objects = {entry["path"]: entry["e_tag"] for chunk in listed for entry in chunk}
        return objects, state(self.original.home), state(self.copy.home)


@pytest.fixture(scope="module")
def homes(object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> TwoHomes:
    folder = tmp_path_factory.mktemp("claims")
    bucket = urlparse(object_store.bucket("claims")).netloc
    lake = on_store(object_store, folder / "original", bucket)
    write_table(lake, CODE, packed_rows("code", 8))
    blend = open_blends(lake).create([Source(CODE, weight=1)]).id
    shutil.copytree(lake.home, folder / "copy")
    return TwoHomes(lake, on_store(object_store, folder / "copy", bucket), blend)


@pytest.fixture
def on_the_copy(homes: TwoHomes, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command works on the copied home."""
    for name, value in homes.copy.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(root, "lake_settings", settings)
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.mark.parametrize("call", [*CALLS, ["relocate"]], ids=" ".join)
def test_a_command_refuses_a_second_home_over_a_bucket_and_changes_nothing(
    call: list[str], homes: TwoHomes, on_the_copy: None, tmp_path: Path
) -> None:
    before = homes.state()
    code, sentence = answer(call, homes.copy.home, homes.blend, tmp_path / "file.json")
    assert f"belongs to the lake in {homes.original.home}" in sentence
    assert "`factory relocate --take`" in sentence
    assert (code, sentence.count("\n")) == (LakeMoved.exit_code, 1)
    assert homes.state() == before


def test_a_home_takes_the_bucket_and_shuts_the_other_one_out(
    homes: TwoHomes, on_the_copy: None, tmp_path: Path
) -> None:
    before = load_table(homes.original, CODE).scan().to_arrow()
    taken = factory("relocate", "--take")
    assert taken.exit_code == 0, taken.stderr
    assert f"The lake in {homes.original.home} on" in taken.stdout
    claim, record = read_claim(homes.copy), read_record(homes.copy)
    assert claim is not None
    assert record is not None
    assert (claim.lake, claim.home) == (record.lake, str(homes.copy.home))
    with pytest.raises(LakeMoved, match=r"belongs to the lake in .*/copy"):
        Lake(homes.original).names()
    assert load_table(homes.copy, CODE).scan().to_arrow() == before
    write_table(homes.copy, CODE, packed_rows("code", 9))
    assert open_blends(homes.copy).open(homes.blend).steps == 8
