"""A page index is a cache: where it cannot be kept, rows are read all the same, and one warning says why."""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blender.catalog.blends import open_blends
from blender.errors import SourceGone
from blender.records import Source
from blender.rows.index import index_files
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.trainer.client import BlenderClient
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, open_reader, packed_rows, write_table

Refuse = Callable[[Path, pytest.MonkeyPatch], None]


def put_a_file_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write_text("not a folder")


def refuse_writes(number: int) -> Refuse:
    """Let every write of an index fail with this number of the operating system, for root too."""

    def refuse(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(path: Path, content: object) -> None:
            raise OSError(number, os.strerror(number), str(path))

        monkeypatch.setattr(index_files, "write_atomically", fail)

    return refuse


REFUSALS: dict[str, tuple[Refuse, str]] = {
    "a full disk": (refuse_writes(errno.ENOSPC), r"written \(No space left on device\)"),
    "a read-only disk": (refuse_writes(errno.EROFS), r"written \(Read-only file system\)"),
    "a folder of another user": (refuse_writes(errno.EACCES), r"written \(Permission denied\)"),
    "a file in place of the folder": (put_a_file_there, r"written \(Not a directory\)"),
}


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_blend_is_served_whole_where_its_page_index_cannot_be_kept(
    refusal: str, lake: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(lake, PROSE, packed_rows("prose", 300), files=[range(150, 300), range(150)])
    blend = open_blends(lake).create([Source(CODE, 2), Source(PROSE, 6)], seed=7).id

    def tokens() -> list[list[list[int]]]:
        with (
            BlenderServer(blend_services(open_blends(lake))) as server,
            BlenderClient(server.address) as client,
        ):
            return [batch.tokens.tolist() for batch in client.fetch(blend)]

    expected, folder = tokens(), lake.files.page_index
    shutil.rmtree(folder)
    refuse, reason = REFUSALS[refusal]
    refuse(folder, monkeypatch)
    caplog.clear()
    assert tokens() == expected
    (warning,) = warnings_of(caplog)
    assert re.search(f"{re.escape(str(folder))} cannot be {reason}", warning)


def test_a_blend_is_created_where_its_page_index_cannot_be_kept(
    lake: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_writes(errno.ENOSPC)(lake.files.page_index, monkeypatch)
    blend = open_blends(lake).create([Source(CODE, 1)]).id
    assert open_blends(lake).get(blend).id == blend
    assert not any(path.is_file() for path in lake.files.page_index.rglob("*"))


def test_an_index_that_cannot_be_read_is_made_again(
    lake: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_reader(lake).read(np.arange(40), ("tokens",))
    folder, read = lake.files.page_index, Path.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if folder in path.parents and arguments[:1] == ("rb",):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    assert open_reader(lake).read(np.arange(40), ("tokens",)) == before
    (warning, *_) = warnings_of(caplog)
    assert f"{folder} cannot be read (Permission denied)" in warning


def test_a_damaged_index_that_cannot_be_deleted_is_not_used(
    lake: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_reader(lake).read(np.arange(40), ("tokens",))
    indexes = [path for path in lake.files.page_index.rglob("*") if path.is_file()]
    for path in indexes:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    refuse_writes(errno.EROFS)(lake.files.page_index, monkeypatch)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    assert open_reader(lake).read(np.arange(40), ("tokens",)) == before
    assert all(path.exists() for path in indexes)


def test_a_data_file_that_cannot_be_read_is_still_a_lost_source(lake: Settings) -> None:
    (file,) = (lake.files.warehouse / "packed" / "code").rglob("*.parquet")
    reader = open_reader(lake)
    file.unlink()
    with pytest.raises(SourceGone, match="a file cannot be read"):
        reader.read(np.arange(40), ("tokens",))
