"""How the records of an archive are compressed: each by itself, as a gzip member or a frame of Zstandard.

An archive of Zstandard may begin with a dictionary in a skippable frame, plain or compressed itself (the
IIPC's "Use of Zstandard compression in WARC files"). Other skippable frames hold nothing of the archive.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import zstandard

from spark_udfs.ingest.bounds import MAX_DECODER_BYTES
from spark_udfs.ingest.compression import bomb
from spark_udfs.ingest.decoders import DECODING_ERRORS, Decoder, GzipMember, ZstandardFrame
from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.archive_file import FIRST_BYTES, PIECE_BYTES, ArchiveFile

_FRAME = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)
_DICTIONARY = b"\x5d\x2a\x4d\x18"
_MAX_DICTIONARY_BYTES = 32 << 20
_LARGEST_BLOCK = 132 << 10  # of a frame, with headers


class CompressedRecord(NamedTuple):
    """The beginning of a member's content, the bytes it expands to, and its length, zero if it is damaged."""

    content: bytes
    n_bytes: int
    length: int


@dataclass(frozen=True)
class RecordCoding:
    """A compression of records; of a place that may begin a member so many bytes are probed."""

    noun: str
    magic: bytes
    decoder: Callable[[], Decoder]
    probed_bytes: int

    def beginning(self, member: bytes) -> bytes:
        """The first bytes of the content of a member that begins with `member`; empty if damaged."""
        try:
            return next(filter(None, self.decoder().feed(member)), b"")
        except DECODING_ERRORS:
            return b""

    def skippable_length(self, file: ArchiveFile, place: int) -> int:
        """The length of the skippable frame at `place`; zero if none begins there, or it does not end."""
        header = file.part(place, place + 8) if self.magic == _FRAME else b""
        if len(header) < 8 or not _SKIPPABLE.match(header):
            return 0
        length = 8 + int.from_bytes(header[4:], "little")
        return length if place + length <= file.size else 0

    def member(self, file: ArchiveFile, place: int, most_bytes: int, budget: int) -> CompressedRecord:
        """The member at `place` with the first `most_bytes` of its content.

        Raises BadRecord `bomb` for content of more than `budget` bytes.
        """
        decoder = self.decoder()
        beginning, n_bytes, end_of_piece = bytearray(), 0, place
        try:
            while not decoder.eof:  # most members are small, and what is read beyond one is read again
                n_next = min(PIECE_BYTES, max(FIRST_BYTES, 2 * (end_of_piece - place)))
                piece = file.part(end_of_piece, end_of_piece + n_next)
                end_of_piece += len(piece)
                if not piece:
                    return CompressedRecord(b"", n_bytes, 0)
                for part in decoder.feed(piece):
                    n_bytes += len(part)
                    beginning += part[: max(0, most_bytes - len(beginning))]
                    if n_bytes > budget:
                        raise bomb(f"byte {place}")
        except DECODING_ERRORS:
            return CompressedRecord(b"", n_bytes, 0)
        return CompressedRecord(bytes(beginning), n_bytes, end_of_piece - len(decoder.unused_data) - place)


GZIP = RecordCoding("gzip member", b"\x1f\x8b\x08", GzipMember, 2 << 10)
ZSTANDARD = RecordCoding("frame of Zstandard", _FRAME, ZstandardFrame, _LARGEST_BLOCK)


def zstandard_coding(file: ArchiveFile) -> RecordCoding | None:
    """The coding of an archive that begins with a frame of Zstandard, None for any other.

    Raises BadRecord `corrupt` for a dictionary that cannot be read.
    """
    magic = file.part(0, len(_FRAME))
    if magic != _FRAME and not _SKIPPABLE.match(magic):
        return None
    if magic != _DICTIONARY:
        return ZSTANDARD
    return replace(ZSTANDARD, decoder=partial(ZstandardFrame, _dictionary(file)))


def _dictionary(file: ArchiveFile) -> zstandard.ZstdCompressionDict:
    content = file.part(8, min(ZSTANDARD.skippable_length(file, 0), _MAX_DICTIONARY_BYTES))
    try:
        if content.startswith(_FRAME):
            decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_DECODER_BYTES)
            content = decompressor.stream_reader(content).read(_MAX_DICTIONARY_BYTES)
        dictionary = zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_FULLDICT)
        zstandard.ZstdDecompressor(dictionary)  # which reads it
        return dictionary
    except zstandard.ZstdError as error:
        detail = f"The dictionary of the archive cannot be read ({error}), and its records need it."
        raise BadRecord("corrupt", detail, "byte 0") from None
