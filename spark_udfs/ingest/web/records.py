"""The records of a WARC archive by place: every record that is whole, around any damage.

    gzip:   member | member | ...          one record each (WARC 1.1, annex D)
    plain:  record | record | ...          `WARC/1.` header, empty line, content, two line ends

Libraries end in silence where an archive is cut, and stop at the first damaged byte. Here each record is
checked: a member by its trailer, a plain record by its length and, if it states one, its digest. Reading goes
on at the next place where a record begins, and what lies between is one damaged range.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from spark_udfs.ingest.bounds import MAX_REREADS, most_bytes
from spark_udfs.ingest.compression import bomb
from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.headers import MAX_HEADER_BYTES, Headers, header_end

MEMBER = b"\x1f\x8b\x08"
_VERSION = re.compile(rb"WARC/[01]\.\d+\r?\n")
_START = re.compile(rb"WARC/[01]\.\d+\r?\n(?=[-\w]+:)")
_ZSTD = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")  # a frame, or one with a dictionary
_BEHIND = b"\r\n\r\n"  # a record
_PIECE_BYTES, _FIRST_BYTES = 1 << 20, 16 << 10
_PROBED_BYTES, _PROBED_LINE = 2 << 10, 200  # of a place that may begin a record


@dataclass(frozen=True)
class WarcRecord:
    """The place of a record in its file, in bytes, its header and content, or why it cannot be read."""

    offset: int
    length: int
    headers: Headers
    content: bytes
    trouble: BadRecord | None = None


class _File:
    """An open file as a sequence of bytes, of which only the parts that are asked for are read."""

    def __init__(self, file: BinaryIO) -> None:
        self._descriptor = file.fileno()
        self.n_read = 0
        self.size = os.fstat(self._descriptor).st_size

    @cached_property
    def end_of_data(self) -> int:
        """The place behind the last byte other than zero; zeros behind it are padding, as for `gzip`."""
        end = self.size
        while end:
            first = max(0, end - _FIRST_BYTES)
            if piece := os.pread(self._descriptor, end - first, first).rstrip(b"\0"):
                return first + len(piece)
            end = first
        return 0

    def part(self, begin: int, end: int) -> bytes:
        content = os.pread(self._descriptor, max(0, min(end, self.size) - begin), begin)
        self.n_read += len(content)
        return content

    def places(self, pattern: bytes, begin: int) -> Iterator[int]:
        """Yield the places of a pattern from `begin` on; every byte is read once."""
        for first in range(begin, self.size, _PIECE_BYTES):
            piece = self.part(first, first + _PIECE_BYTES + len(pattern) - 1)
            inside = piece.find(pattern)
            while inside >= 0:
                yield first + inside
                inside = piece.find(pattern, inside + 1)


def records(opened_file: BinaryIO, max_bytes: int) -> Iterator[WarcRecord]:
    """Yield the records of a file and its damaged ranges, in order; they cover the file up to its padding.

    The content of a record is at most `max_bytes`; a longer one is `too_large`. Raises BadRecord `bomb` once
    the file expands too far.
    """
    file = _File(opened_file)
    if _ZSTD.match(file.part(0, 4)):
        detail = "The archive is compressed by Zstandard, which is not read. Decompress it, by `zstd -d`."
        yield WarcRecord(0, file.size, Headers({}), b"", BadRecord("unknown_coding", detail, "byte 0"))
        return
    is_gzip = _is_compressed(file)
    budget = most_bytes(file.size)
    place = 0
    while place < (file.end_of_data or file.size):
        n_expanded = 0
        if is_gzip:
            record, n_expanded = _gzip_member(file, place, max_bytes, budget)
        elif file.n_read > MAX_REREADS * (file.size + _PIECE_BYTES):
            detail = "So many places look like beginnings of records that the rest is not read."
            yield WarcRecord(
                place, file.size - place, Headers({}), b"", BadRecord("corrupt", detail, f"byte {place}")
            )
            return
        else:
            record = _plain_record(file, place, max_bytes)
        budget -= n_expanded
        if record is None:
            record = _damaged(place, _next_start(file, place + 1, is_gzip=is_gzip), file.size, is_gzip)
        yield record
        place = record.offset + record.length


def _is_compressed(file: _File) -> bool:
    """Whether the first record is a gzip member; damage at the beginning leaves it to the next to tell."""
    beginning = file.part(0, 5)
    if beginning.startswith(MEMBER) or beginning == b"WARC/":
        return beginning.startswith(MEMBER)
    return _next_start(file, 0, is_gzip=True) < _next_start(file, 0, is_gzip=False)


def _damaged(begin: int, end: int, size: int, is_gzip: bool) -> WarcRecord:
    what = "gzip member" if is_gzip else "record"
    rest = ", and the file ends" if end == size else ""
    detail = f"From here {end - begin:,} bytes are no whole {what}{rest}."
    return WarcRecord(begin, end - begin, Headers({}), b"", BadRecord("corrupt", detail, f"byte {begin}"))


def _next_start(file: _File, place: int, *, is_gzip: bool) -> int:
    """Return where the next record begins, at `place` or behind it; the size of the file if none does."""
    for start in file.places(MEMBER if is_gzip else b"WARC/", place):
        probe = file.part(start, start + (_PROBED_BYTES if is_gzip else _PROBED_LINE))
        if _START.match(_beginning(probe) if is_gzip else probe):
            return start
    return file.size


def _beginning(member: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(member, 64)
    except zlib.error:
        return b""


def _gzip_member(file: _File, place: int, max_bytes: int, budget: int) -> tuple[WarcRecord | None, int]:
    """Return the record of the member at `place`, None if it is damaged, and how many bytes it expands to."""
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    beginning, n_bytes, end_of_piece = bytearray(), 0, place
    try:
        while not stream.eof:
            piece = stream.unconsumed_tail
            if not piece:  # most members are small, and what is read beyond one is read again
                n_next = min(_PIECE_BYTES, max(_FIRST_BYTES, 2 * (end_of_piece - place)))
                piece = file.part(end_of_piece, end_of_piece + n_next)
                end_of_piece += len(piece)
            if not piece:
                return None, n_bytes
            part = stream.decompress(piece, _PIECE_BYTES)
            n_bytes += len(part)
            beginning += part[: max(0, max_bytes + MAX_HEADER_BYTES - len(beginning))]
            if n_bytes > budget:
                raise bomb(f"byte {place}")
    except zlib.error:
        return None, n_bytes
    length = end_of_piece - len(stream.unused_data) - place
    return _of_member(bytes(beginning), n_bytes, place, length, max_bytes), n_bytes


def _of_member(content: bytes, n_bytes: int, offset: int, length: int, max_bytes: int) -> WarcRecord:
    """The record of a whole member of `n_bytes`, the first of which are `content`."""
    headers, begin, trouble = _header(content, offset)
    n_declared = _content_length(headers)
    if trouble is None:
        end = begin + (n_declared or 0)
        behind = content[end:].lstrip(b"\r\n")
        if n_declared is None or end > n_bytes or behind:
            trouble = _wrong_length(behind, n_declared, n_bytes - begin, offset)
        elif n_declared > max_bytes:
            trouble = _too_large(max_bytes, offset)
    return WarcRecord(offset, length, headers, content[begin : begin + (n_declared or 0)], trouble)


def _too_large(max_bytes: int, offset: int) -> BadRecord:
    return BadRecord("too_large", f"The record is longer than {max_bytes:,} bytes.", f"byte {offset}")


def _wrong_length(behind: bytes, n_declared: int | None, n_bytes: int, offset: int) -> BadRecord:
    if n_declared is not None and _VERSION.match(behind):
        return BadRecord(
            "not_by_record",
            "The gzip member holds several records, so none could be found again by its place. Compress each "
            "record by itself, as `warcio recompress` does.",
            f"byte {offset}",
        )
    length = "no length" if n_declared is None else f"{n_declared:,} bytes"
    detail = f"The record declares {length}, and its member holds {n_bytes:,}."
    return BadRecord("wrong_length", detail, f"byte {offset}")


def _plain_record(file: _File, place: int, max_bytes: int) -> WarcRecord | None:
    """Return the uncompressed record at `place`, None if its length does not fit."""
    headers, begin, trouble = _header(file.part(place, place + _PROBED_BYTES), place)
    if trouble is not None and trouble.reason == "not_warc":  # its header may be longer
        headers, begin, trouble = _header(file.part(place, place + MAX_HEADER_BYTES), place)
    n_declared = _content_length(headers)
    end = place + begin + (n_declared or 0)
    if trouble is not None and trouble.reason == "arc":
        end_of_arc = _next_start(file, place + 1, is_gzip=False)
        return WarcRecord(place, end_of_arc - place, headers, b"", trouble)
    if trouble is not None or n_declared is None or end > file.size:
        return None
    behind = file.part(end, end + len(_BEHIND))
    n_behind = len(behind) - len(behind.lstrip(_BEHIND))
    length = end + n_behind - place
    if n_declared > max_bytes:
        begins = _begins(file, place + length)
        return WarcRecord(place, length, headers, b"", _too_large(max_bytes, place)) if begins else None
    content = file.part(place + begin, end)
    fits = _digest_fits(headers.get("warc-block-digest"), content)
    if fits is False or (fits is None and not _begins(file, place + length)):
        return None
    return WarcRecord(place, length, headers, content)


def _begins(file: _File, place: int) -> bool:
    """Whether a record, or the end of the file, is at `place`."""
    return place >= file.end_of_data or _VERSION.match(file.part(place, place + 16)) is not None


def _header(content: bytes, offset: int) -> tuple[Headers, int, BadRecord | None]:
    """Return the header of a record, where its content begins, and why there is none."""
    where = f"byte {offset}"
    if content.startswith(b"filedesc://"):
        detail = "This is an ARC file, the format before WARC. Convert it, as `warcio recompress` does."
        return Headers({}), 0, BadRecord("arc", detail, where)
    end = header_end(content) if _VERSION.match(content) else None
    if end is None or _START.search(content, 1, end[0]):  # a header that lost its end runs into the next
        return Headers({}), 0, BadRecord("not_warc", "No header of a WARC record is here.", where)
    return Headers.parse(content[: end[0]].partition(b"\n")[2]), end[1], None


def _content_length(headers: Headers) -> int | None:
    length = headers.get("content-length")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 16 else None


def _digest_fits(digest: str, content: bytes) -> bool | None:
    """Whether the content has the digest; None without a digest, and for one that is not SHA-1 in base 32."""
    algorithm, _, base32 = digest.partition(":")
    if algorithm.lower() != "sha1" or len(base32) != 32:
        return None
    return base64.b32encode(hashlib.sha1(content, usedforsecurity=False).digest()).decode() == base32.upper()
