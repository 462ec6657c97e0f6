"""Documents from the members of zip and tar archives, each read within a limit, nothing unpacked to disk.

A member's key is `archive!/member`, its path the member's own. Folders are no input; links, encrypted
and odd members are rejected like the odd files of a folder. Where an archive breaks off or expands beyond
bounds, one more rejected record stands for what was not read. Archives inside archives are not opened.
"""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from lzma import LZMAError
from types import SimpleNamespace
from typing import BinaryIO, NamedTuple

from spark_udfs.ingest_compression import bomb, content, most_bytes
from spark_udfs.ingest_files import MAX_TEXT_BYTES, Input, decode, opened
from spark_udfs.ingest_languages import kind_of
from spark_udfs.ingest_rows import BadRecord, Row, document, rejection

ZIP_EXTENSIONS = (".zip", ".whl", ".jar")
# What the two libraries raise for bytes that are no archive of theirs, or one they cannot read.
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    EOFError,
    zlib.error,
    LZMAError,
    ValueError,
    NotImplementedError,
)
_ENCRYPTED = 0x1  # flag of a zip member
_TAR_BLOCK = 512  # a tar archive ends with blocks of zeros


class Member(NamedTuple):
    """A member that is no folder: its size as the archive says, its data, or why it cannot be a document.

    A member above the limit has neither: it is not read.
    """

    name: str
    n_bytes: int
    data: bytes
    trouble: BadRecord | None


def archive_file(source: Input, max_bytes: int = MAX_TEXT_BYTES) -> Iterator[Row]:
    """One row a member of a zip (told by the name) or tar archive, and one more if the archive breaks."""
    n_bytes = 0
    seen: Counter[str] = Counter()
    is_zip = source.key.lower().endswith(ZIP_EXTENSIONS)
    try:
        with opened(source) as file:
            n_bytes = os.fstat(file.fileno()).st_size
            try:
                members = (
                    _zip_members(file, max_bytes) if is_zip else _tar_members(file, source.key, max_bytes)
                )
                for member in members:
                    seen[member.name] += 1
                    yield _row(source, member, seen[member.name], max_bytes)
            except _BROKEN as error:
                raise _corrupt(error) from None
    except BadRecord as bad:
        yield rejection(source.origin, source.key, bad, n_bytes)


def _row(source: Input, member: Member, occurrence: int, max_bytes: int) -> Row:
    name = member.name.encode("utf-8", "backslashreplace").decode()
    key = f"{source.key}!/{name}"
    trouble = member.trouble
    if occurrence > 1:
        key = f"{key}#{occurrence}"
        trouble = BadRecord("name_taken", "The archive holds an earlier member of this name.")
    elif name != member.name:
        trouble = BadRecord("name_not_utf8", "The member's name is no UTF-8.")
    elif name.startswith("/") or ".." in name.split("/"):
        trouble = BadRecord("outside", "The member's name leads out of the archive.")
    elif member.n_bytes > max_bytes and trouble is None:
        detail = f"The member is longer than {max_bytes:,} bytes."
        trouble = BadRecord("too_large", detail, f"byte {max_bytes}")
    if trouble:
        return rejection(source.origin, key, trouble, member.n_bytes)
    kind = kind_of(name)
    try:
        text = decode(member.data, name)
        return document(
            source.origin, key, text, media_type=kind.media_type, language=kind.language, path=name
        )
    except BadRecord as bad:
        return rejection(source.origin, key, bad, member.n_bytes, member.data)


def _corrupt(error: Exception) -> BadRecord:
    cause = " ".join(str(error).split()) or type(error).__name__
    return BadRecord("corrupt", f"The archive cannot be read further: {cause}.")


def _zip_members(file: BinaryIO, max_bytes: int) -> Iterator[Member]:
    left = most_bytes(os.fstat(file.fileno()).st_size)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            trouble, data = None, b""
            if stat.S_ISLNK(info.external_attr >> 16):
                trouble = BadRecord("link", "The member is a symbolic link, and links are not followed.")
            elif info.flag_bits & _ENCRYPTED:
                trouble = BadRecord("encrypted", "The member is encrypted.")
            elif info.file_size <= max_bytes:
                left -= info.file_size
                if left < 0:
                    raise bomb()
                try:
                    data = archive.read(info)  # never more than `file_size` bytes
                except _BROKEN as error:  # the directory still says where the other members are
                    trouble = _corrupt(error)
            yield Member(info.filename, info.file_size, data, trouble)


def _tar_members(file: BinaryIO, name: str, max_bytes: int) -> Iterator[Member]:
    read, tail = content(file, name), b""

    def remembering(n_bytes: int) -> bytes:
        nonlocal tail
        data = read(n_bytes)
        tail = (tail + data)[-_TAR_BLOCK:]
        return data

    with tarfile.open(fileobj=SimpleNamespace(read=remembering), mode="r|") as archive:
        for info in archive:
            if info.isdir():
                continue
            trouble, data = None, b""
            if info.issym() or info.islnk():
                trouble = BadRecord("link", "The member is a link, and links are not followed.")
            elif not info.isfile():
                trouble = BadRecord("not_a_file", "The member is a pipe or a device, not a file.")
            elif info.size <= max_bytes and (member := archive.extractfile(info)):
                data = member.read()
            yield Member(info.name, info.size, data, trouble)
    if any(tail):  # cut off between two members, which `tarfile` takes for the end
        raise BadRecord("corrupt", "The archive does not end as a tar archive does.")
