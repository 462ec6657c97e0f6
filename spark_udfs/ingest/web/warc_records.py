"""The records of a WARC archive by place: every intact record, around any damage.

    gzip:   member | member | ...          one record each (WARC 1.1, annex D)
    zstd:   dictionary? | frame | ...      one record each
    plain:  record | record | ...          `WARC/1.` header, empty line, content, two line ends

Libraries end in silence at the end of a truncated archive, and stop at the first damaged byte. Here each
record is checked: a member or frame by its trailer, a plain record by its length and, if it states one, its
digest. Reading resumes at the next place where a record begins, and the bytes between are one damaged range.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from spark_udfs.ingest.bounds import MAX_REREADS, most_bytes
from spark_udfs.ingest.place import FilePart
from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.archive_file import PIECE_BYTES, ArchiveFile
from spark_udfs.ingest.web.codings import (
    GZIP,
    ZSTANDARD,
    CompressedRecord,
    RecordCoding,
    zstandard_coding,
)
from spark_udfs.ingest.web.headers import MAX_HEADER_BYTES, Headers, header_end

_VERSION = re.compile(rb"WARC/[01]\.\d+\r?\n")
_START = re.compile(rb"WARC/[01]\.\d+\r?\n(?=[-\w]+:)")
_BEHIND = b"\r\n\r\n"  # a record
_PROBED_BYTES, _PROBED_LINE = 2 << 10, 200  # of a place that may begin a record


@dataclass(frozen=True)
class WarcRecord:
    """The place of a record in its file, in bytes, its header and content, or why it cannot be read."""

    offset: int
    length: int
    headers: Headers
    content: bytes
    trouble: BadRecord | None = None


@dataclass
class PartBorders:
    """Where the first record of a part begins, None without one, and where the first one behind it does.

    The end is None of a part that was not read to its end.
    """

    first: int | None = None
    end: int | None = None


def records(opened_file: BinaryIO, max_bytes: int) -> Iterator[WarcRecord]:
    """Yield the records of a file and its damaged ranges, in order; they cover the file up to its padding.

    The content of a record is at most `max_bytes`; a longer one is `too_large`. Raises BadRecord `bomb` once
    the file expands too far.
    """
    file = ArchiveFile(opened_file)
    return _walk(file, _coding_of(file), max_bytes, 0, file.size, PartBorders())


def records_of_part(
    opened_file: BinaryIO, max_bytes: int, part: FilePart, borders: PartBorders
) -> Iterator[WarcRecord]:
    """Yield the records that begin in a part, and set the borders of these records.

    The first of them is at `part.start`, or, if that is not known, at the first place that looks like the
    begin of a record.
    """
    file = ArchiveFile(opened_file)
    coding = _coding_of(file)
    end = min(part.end, file.end_of_data or file.size)  # known before a store serves the part
    start = part.start
    if start is None:
        start = _next_start(file, part.begin, coding, end) if part.begin else 0
    if start >= end:
        borders.end = part.end
        return
    borders.first = start
    yield from _walk(file, coding, max_bytes, start, part.end, borders)


def _walk(
    file: ArchiveFile,
    coding: RecordCoding | None,
    max_bytes: int,
    begin: int,
    end: int,
    borders: PartBorders,
) -> Iterator[WarcRecord]:
    """Yield the records and damaged ranges that begin from one place up to another."""
    budget = most_bytes(file.size)  # of a part, too: the file may expand most in one place
    place, n_bytes_in_vain = begin, 0
    end_of_data = file.end_of_data or file.size
    while place < min(end, end_of_data):
        if coding is not None and (length := coding.skippable_length(file, place)):
            place += length
            continue
        if n_bytes_in_vain > MAX_REREADS * (file.size + PIECE_BYTES):
            detail = "So many places look like beginnings of records that the rest is not read."
            yield WarcRecord(
                place, file.size - place, Headers({}), b"", BadRecord("corrupt", detail, f"byte {place}")
            )
            place = file.size
            break
        n_read = file.n_read
        if coding is None:
            record = _plain_record(file, place, max_bytes)
        else:
            record, n_expanded = _member(file, place, coding, max_bytes, budget)
            budget -= n_expanded
        if record is None:
            record = _damaged(place, _next_start(file, place + 1, coding), file.size, coding)
            n_bytes_in_vain += file.n_read - n_read
        yield record
        place = record.offset + record.length
    while coding is not None and (length := coding.skippable_length(file, place)):
        place += length
    borders.end = place if place < end_of_data else file.size


def record_at(opened_file: BinaryIO, offset: int, length: int) -> bytes:
    """Return the record of `length` bytes at `offset` as it is behind its compression, header and content.

    Raises BadRecord for a place where no whole record is.
    """
    file = ArchiveFile(opened_file)
    coding = _coding_of(file)
    if coding is None:
        return file.part(offset, offset + length)
    budget = most_bytes(file.size)
    member = coding.member(file, offset, budget, budget)
    if not member.length:
        raise BadRecord("corrupt", f"No whole {coding.noun} is there.", f"byte {offset}")
    return member.content


def _coding_of(file: ArchiveFile) -> RecordCoding | None:
    """The compression of the records; damage at the beginning leaves it to the next record to tell."""
    if coding := zstandard_coding(file):
        return coding
    beginning = file.part(0, 5)
    if beginning.startswith(GZIP.magic) or beginning == b"WARC/":
        return GZIP if beginning.startswith(GZIP.magic) else None
    codings = (None, GZIP, ZSTANDARD)
    return min(codings, key=lambda coding: _next_start(file, 0, coding))


def _damaged(begin: int, end: int, size: int, coding: RecordCoding | None) -> WarcRecord:
    what = coding.noun if coding else "record"
    rest = ", and the file ends" if end == size else ""
    detail = f"From here {end - begin:,} bytes are no whole {what}{rest}."
    return WarcRecord(begin, end - begin, Headers({}), b"", BadRecord("corrupt", detail, f"byte {begin}"))


def _next_start(file: ArchiveFile, place: int, coding: RecordCoding | None, end: int | None = None) -> int:
    """Return where the next record begins, at `place` or behind it; the size of the file if none does.

    With an `end` that is returned if none begins before.
    """
    n_read = file.n_read
    for start in file.places(coding.magic if coding else b"WARC/", place, end):
        probe = file.part(start, start + (coding.probed_bytes if coding else _PROBED_LINE))
        if _START.match(coding.beginning(probe) if coding else probe):
            return start
        if file.n_read - n_read > MAX_REREADS * (file.size + PIECE_BYTES):
            break
    return file.size if end is None else end


def _member(
    file: ArchiveFile, place: int, coding: RecordCoding, max_bytes: int, budget: int
) -> tuple[WarcRecord | None, int]:
    """Return the record of the member at `place`, None if it is damaged, and how many bytes it expands to."""
    member = coding.member(file, place, max_bytes + MAX_HEADER_BYTES, budget)
    record = _of_member(member, place, max_bytes, coding) if member.length else None
    return record, member.n_bytes


def _of_member(member: CompressedRecord, offset: int, max_bytes: int, coding: RecordCoding) -> WarcRecord:
    """The record of a whole member."""
    content, n_bytes, length = member
    headers, begin, trouble = _header(content, offset)
    n_declared = _content_length(headers)
    if trouble is None:
        end = begin + (n_declared or 0)
        behind = content[end:].lstrip(b"\r\n")
        if n_declared is None or end > n_bytes or behind:
            trouble = _wrong_length(behind, n_declared, n_bytes - begin, offset, coding)
        elif n_declared > max_bytes:
            trouble = _too_large(max_bytes, offset)
    return WarcRecord(offset, length, headers, content[begin : begin + (n_declared or 0)], trouble)


def _too_large(max_bytes: int, offset: int) -> BadRecord:
    return BadRecord("too_large", f"The record is longer than {max_bytes:,} bytes.", f"byte {offset}")


def _wrong_length(
    behind: bytes, n_declared: int | None, n_bytes: int, offset: int, coding: RecordCoding
) -> BadRecord:
    if n_declared is not None and _VERSION.match(behind):
        return BadRecord(
            "not_by_record",
            f"The {coding.noun} holds several records, so none could be found again by its place. Compress "
            "each record by itself, as `warcio recompress` does.",
            f"byte {offset}",
        )
    length = "no length" if n_declared is None else f"{n_declared:,} bytes"
    detail = f"The record declares {length}, and its member holds {n_bytes:,}."
    return BadRecord("wrong_length", detail, f"byte {offset}")


def _plain_record(file: ArchiveFile, place: int, max_bytes: int) -> WarcRecord | None:
    """Return the uncompressed record at `place`, None if its length does not fit."""
    headers, begin, trouble = _header(file.part(place, place + _PROBED_BYTES), place)
    if trouble is not None and trouble.reason == "not_warc":  # its header may be longer
        headers, begin, trouble = _header(file.part(place, place + MAX_HEADER_BYTES), place)
    n_declared = _content_length(headers)
    end = place + begin + (n_declared or 0)
    if trouble is not None and trouble.reason == "arc":
        end_of_arc = _next_start(file, place + 1, None)
        return WarcRecord(place, end_of_arc - place, headers, b"", trouble)
    if trouble is not None or n_declared is None or end > file.size:
        return None
    behind = file.part(end, end + len(_BEHIND))
    n_behind = len(behind) - len(behind.lstrip(_BEHIND))
    length = end + n_behind - place
    if n_declared > max_bytes:
        begins = _begins(file, place + length, end)
        return WarcRecord(place, length, headers, b"", _too_large(max_bytes, place)) if begins else None
    content = file.part(place + begin, end)
    fits = _digest_fits(headers.get("warc-block-digest"), content)
    if fits is False or (fits is None and not _begins(file, place + length, end)):
        return None
    return WarcRecord(place, length, headers, content)


def _begins(file: ArchiveFile, place: int, end: int) -> bool:
    """Whether a record, the end of the file or its padding is at `place`, behind content that ends at `end`.

    Zeros in place of the end of a content are no padding.
    """
    if place >= file.size or end <= file.end_of_data <= place:
        return True
    return _VERSION.match(file.part(place, place + 16)) is not None


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
