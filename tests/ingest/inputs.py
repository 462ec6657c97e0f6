"""Inputs of readers: a file of given content, archives of given members, and the rows that come of them."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from spark_udfs.ingest.files import Input
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.rows import Origin

Rows = list[dict[str, Any]]
ORIGIN = Origin("web")


def source(folder: Path | str, name: str | bytes, origin: Origin = ORIGIN) -> Input:
    """The file `name` below `folder`, as readers take it."""
    return Input(origin, LocalFiles.at(folder), os.fsencode(name))


def read(
    reader: Callable[..., Iterator[dict[str, Any]]],
    name: str,
    content: bytes,
    *given: Any,
    origin: Origin = ORIGIN,
    **options: Any,
) -> Rows:
    """The rows that a reader gives of a file of this name and content."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        return list(reader(source(folder, name, origin), *given, **options))


def rejected(rows: Rows) -> Rows:
    return [row for row in rows if "reason" in row]


def texts(rows: Rows) -> list[str]:
    return [row["text"] for row in rows if "reason" not in row]


def zipped(members: Mapping[str, bytes]) -> bytes:
    """A zip archive of a folder and members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("folder")
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(
    members: Mapping[str, bytes], *odd: tarfile.TarInfo, format: int = tarfile.DEFAULT_FORMAT
) -> bytes:
    """A tar archive of a folder, members and headers without data."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as archive:
        archive.addfile(header("folder", tarfile.DIRTYPE))
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in odd:
            archive.addfile(info)
    return buffer.getvalue()


def picture(format: str = "PNG", mode: str = "RGB", size: tuple[int, int] = (30, 20), **save: Any) -> bytes:
    """A picture of one color, as the bytes of a file."""
    buffer = io.BytesIO()
    Image.new(mode, size, 1).save(buffer, format, **save)
    return buffer.getvalue()


def header(name: str, kind: bytes) -> tarfile.TarInfo:
    """The header of a member that is no regular file; a link leads to `a.py`."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "a.py"
    return info
