"""`factory blend create` stores the blend of a file, without a server."""

from __future__ import annotations

import re
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import GenericError
from typer.testing import Result

from blender.catalog.blends import open_blends
from blender.records import Source
from blender.trainer.local import LocalBlender
from factory.cli import root
from factory.settings import Settings
from tests.blender.lakes import make_lake
from tests.blender.picture_tables import documents, write_pictures
from tests.terminal import in_columns

WRITTEN = """\
seed: 7
sources:
  - {table: packed.code, weight: 2, oversample: true, shuffle: row}
  - {table: packed.prose, weight: 6}
"""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A lake with `packed.code` (40 rows) and `packed.prose` (300 rows), that the command works on."""
    made = make_lake(tmp_path / "lake", code=40, prose=300)
    monkeypatch.setattr(root, "lake_settings", lambda: made)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "blend.yaml"
    written.write_text(WRITTEN)
    return written


def create(*arguments: str) -> Result:
    return in_columns(140, "blend", "create", *arguments)


def test_the_blend_of_a_file_is_the_one_a_client_creates(lake: Settings, file: Path) -> None:
    sources = [
        Source("packed.code", weight=2, oversample=True, shuffle="row"),
        Source("packed.prose", weight=6),
    ]
    created = create(str(file))
    (stored,) = open_blends(lake).list()
    assert created.stdout == f"{stored.id}\n"
    assert stored.id == LocalBlender(lake).create(sources, seed=7).id
    assert f"Blend {stored.id} has 50 steps." in created.stderr
    assert "packed.prose" in created.stderr


def test_a_narrow_terminal_shows_every_figure(lake: Settings, file: Path) -> None:
    shown = in_columns(80, "blend", "create", str(file)).stderr
    assert re.search(r"^ packed\.prose +300 +6 ", shown, re.MULTILINE)
    assert "…" not in shown


def test_creating_again_gives_the_same_id(lake: Settings, file: Path) -> None:
    assert create(str(file)).stdout == create(str(file)).stdout != ""
    assert len(open_blends(lake).list()) == 1


def test_a_blend_that_cannot_be_created_is_one_sentence(lake: Settings, file: Path) -> None:
    file.write_text(WRITTEN.replace("packed.prose", "packed.poetry"))
    refused = create(str(file))
    assert (refused.exit_code, refused.stdout) == (5, "")
    assert "no table `packed.poetry`" in refused.stderr
    assert open_blends(lake).list() == []


def test_a_blend_without_a_step_is_refused(lake: Settings, file: Path) -> None:
    file.write_text(WRITTEN.replace("oversample: true, ", "").replace("weight: 2", "weight: 41"))
    refused = create(str(file))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "`packed.code` has 40 rows, and the first step needs 41. Take fewer rows" in refused.stderr
    assert open_blends(lake).list() == []


def test_an_update_that_changes_no_step_is_refused(lake: Settings, file: Path) -> None:
    blend = create(str(file)).stdout.strip()  # of 50 steps, as many as the prose lasts
    for first in (50, 2000):
        refused = in_columns(140, "blend", "update", blend, "--from", str(first), "--weight", "packed.code=1")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "ends at step 50, which needs 6 rows of source `packed.prose` and has 0 left" in refused.stderr
    weights = ("--weight", "packed.code=1", "--weight", "packed.prose=0")
    assert in_columns(140, "blend", "update", blend, "--from", "50", *weights).exit_code == 0  # it goes on
    assert len(open_blends(lake).list()) == 2


def test_a_lake_that_cannot_be_written_is_one_sentence_with_its_folder(
    lake: Settings, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blend = create(str(file)).stdout.strip()
    file.write_text(WRITTEN.replace("seed: 7", "seed: 8"))
    folder = lake.files.warehouse / "blends"
    for reason in ("Read-only file system (os error 30)", "No space left on device (os error 28)"):

        def fail(store: object, path: str, *content: object, reason: str = reason, **options: object) -> None:
            raise GenericError(
                f"Generic LocalFileSystem error: Unable to open file {path}: {reason}\n\nDebug"
            )

        monkeypatch.setattr(obstore, "put", fail)
        update = ("update", blend, "--from", "3", "--weight", "packed.code=1")
        for command in (("retire", blend), ("create", str(file)), update):
            refused = in_columns(140, "blend", *command)
            assert (refused.exit_code, refused.stdout) == (3, "")
            (sentence,) = refused.stderr.splitlines()
            assert sentence.startswith(f"The folder {folder} cannot be written ({reason.split(' (')[0]}). ")


def test_a_source_with_pictures_delivers_them_unless_the_file_names_columns(
    lake: Settings, tmp_path: Path
) -> None:
    write_pictures(lake, documents(4))
    file = tmp_path / "pictures.yaml"
    for columns, names in [("", ("tokens", "images")), (", columns: [tokens]", ("tokens",))]:
        file.write_text(f"sources: [{{table: packed.pictures, weight: 1{columns}}}]\n")
        name = create(str(file)).stdout.strip()
        (source,) = open_blends(lake).open(name).config.sources
        assert source.columns == names
