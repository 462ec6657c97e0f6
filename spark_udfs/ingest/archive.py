"""Documents from the members of zip and tar archives, each read within a limit, nothing unpacked to disk.

A member's key is `archive!/member`, its path the member's own. Folders are skipped. Links, encrypted members,
special files and nested archives are rejected. If an archive breaks off, expands beyond bounds or holds too
many members, one more rejected record represents the unread rest.
"""

from __future__ import annotations

import errno
import re
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from lzma import LZMAError
from typing import BinaryIO

from spark_udfs.ingest.bounds import MAX_MEMBERS, MAX_TEXT_BYTES, MAX_ZIP_DIRECTORY_BYTES, most_bytes
from spark_udfs.ingest.compression import COMPRESSIONS, bomb, content
from spark_udfs.ingest.file_types import kind_of
from spark_udfs.ingest.files import Input, decode, file_document, key_of, opened
from spark_udfs.ingest.place import size_of
from spark_udfs.ingest.rows import BadRecord, Row, rejection
from spark_udfs.ingest.tar import TarMember, tar_members
from spark_udfs.ingest.zip import zip_data

ZIP_EXTENSIONS = (".zip", ".whl", ".jar")
# What the library raises for bytes that are not a zip, or a zip it cannot read.
_BROKEN = (zipfile.BadZipFile, EOFError, zlib.error, LZMAError, ValueError, NotImplementedError)
_ENCRYPTED, _UTF8 = 0x1, 0x800  # flags of a zip member
NESTED = (*ZIP_EXTENSIONS, ".tar", ".tgz", ".7z", ".rar", *(f".tar{suffix}" for suffix in COMPRESSIONS))
# The directory's size in an end record.
_DIRECTORY_SIZE = re.compile(rb"PK\x05\x06(?=.{8}(.{4}))|PK\x06\x06(?=.{36}(.{8}))", re.DOTALL)
_ZIP_TAIL = (1 << 16) + 1024  # the end record, its comment, and the records of 64 bits before it


def archive_file(source: Input, max_bytes: int = MAX_TEXT_BYTES) -> Iterator[Row]:
    """Yield one row per member of a zip (by its name) or tar archive, and one for a damaged rest."""
    n_bytes = 0
    seen: Counter[bytes] = Counter()
    is_zip = source.key.lower().endswith(ZIP_EXTENSIONS)
    try:
        with opened(source) as file:
            n_bytes = size_of(file)
            try:
                members = (
                    _zip_members(file, max_bytes)
                    if is_zip
                    else tar_members(content(file, source.shown, source.first_bytes), max_bytes, NESTED)
                )
                for member in members:
                    if len(seen) == MAX_MEMBERS:
                        detail = (
                            f"The archive holds more than {MAX_MEMBERS:,} members; the others were not read."
                        )
                        raise BadRecord("too_many_members", detail)
                    name = _digest(member.name)
                    seen[name] += 1
                    yield _row(source, member, seen[name], max_bytes)
                if not seen:
                    raise BadRecord("empty", "The archive holds no file.")
            except _BROKEN as error:
                raise _corrupt(error) from None
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                raise _corrupt(error) from None
    except BadRecord as bad:
        yield rejection(source.origin, source.key, bad, n_bytes)


def _digest(name: str) -> bytes:
    """Hash a name to 16 bytes, since an archive may hold many long names."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _is_unicode(name: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def _row(source: Input, member: TarMember, occurrence: int, max_bytes: int) -> Row:
    name = member.name
    key = f"{source.key}!/{key_of(name)}"
    trouble = member.trouble
    if occurrence > 1:
        key = f"{key}#{occurrence}"
        trouble = BadRecord("name_taken", "The archive holds an earlier member of this name.")
    elif not _is_unicode(name):
        trouble = BadRecord("name_not_utf8", "The member's name is not UTF-8.")
    elif name.startswith("/") or ".." in name.split("/"):
        trouble = BadRecord("outside", "The member's name leads out of the archive.")
    elif trouble is None and name.lower().endswith(NESTED):
        trouble = BadRecord("nested", "The member is an archive, and nested archives are not opened.")
    elif member.n_bytes > max_bytes and trouble is None:
        detail = f"The member is longer than {max_bytes:,} bytes."
        trouble = BadRecord("too_large", detail, f"byte {max_bytes}")
    if trouble:
        return rejection(source.origin, key, trouble, member.n_bytes)
    try:
        return file_document(source.origin, key, decode(member.data, name), kind_of(name), name)
    except BadRecord as bad:
        return rejection(source.origin, key, bad, member.n_bytes, member.data)


def _corrupt(error: Exception) -> BadRecord:
    cause = " ".join(str(error).split()) or type(error).__name__
    return BadRecord("corrupt", f"The archive cannot be read further: {cause}.")


def _zip_members(file: BinaryIO, max_bytes: int) -> Iterator[TarMember]:
    budget = most_bytes(size_of(file))
    _refuse_too_many(file)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.filename.endswith("/"):
                continue
            trouble, data, name = None, b"", _zip_name(info)
            if stat.S_ISLNK(info.external_attr >> 16):
                trouble = BadRecord("link", "The member is a symbolic link, and links are not followed.")
            elif info.flag_bits & _ENCRYPTED:
                trouble = BadRecord("encrypted", "The member is encrypted.")
            elif info.file_size <= max_bytes and not name.lower().endswith(NESTED):
                budget -= info.file_size
                if budget < 0:
                    raise bomb()
                try:
                    data = zip_data(archive, info)
                except _BROKEN as error:  # the directory still locates the other members
                    trouble = _corrupt(error)
                except OSError as error:
                    if error.errno not in (None, errno.EINVAL):  # a seek out of the file; bzip2's own errors
                        raise
                    trouble = _corrupt(error)
            yield TarMember(name, info.file_size, data, trouble)


def _zip_name(info: zipfile.ZipInfo) -> str:
    """Return the member's name; even without the flag for UTF-8, its bytes are UTF-8 if they can be.

    The library reads such bytes as code page 437, which fits any bytes but few archives since the 1990s.
    """
    if info.flag_bits & _UTF8 or info.filename.isascii():
        return info.filename
    return info.filename.encode("cp437").decode("utf-8", "surrogateescape")


def _refuse_too_many(file: BinaryIO) -> None:
    """Raise BadRecord `too_many_members` if an end record of a zip claims too large a directory.

    The size of the directory bounds the number of members; the record's counts do not. The library chooses
    among several end records, so none may claim too much.
    """
    size = size_of(file)
    file.seek(max(0, size - _ZIP_TAIL))
    tail = file.read(_ZIP_TAIL)
    file.seek(0)
    claimed = [match[1] or match[2] for match in _DIRECTORY_SIZE.finditer(tail)]
    directory = max((min(size, int.from_bytes(claim, "little")) for claim in claimed), default=0)
    if directory > MAX_ZIP_DIRECTORY_BYTES:
        detail = f"The list of members has {directory:,} bytes, the limit is {MAX_ZIP_DIRECTORY_BYTES:,}."
        raise BadRecord("too_many_members", detail)
