"""The content of gzip, bzip2, xz and Zstandard files, every byte up to the first damaged one.

    stream | stream | ... | zeros          (a stream is a member of gzip, a frame of Zstandard)

A library drops the bytes that it decoded in the call that fails. So a damaged stream is decoded once more,
its last piece byte by byte, up to the damage.

Zeros behind the last stream are padding, as for `gzip` and `xz`. Zeros inside an incomplete stream are
damage: a file system that lost the end of a file returns zeros, which decode to garbage.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import BinaryIO, Protocol

import zstandard

from spark_udfs.ingest.bounds import MAX_DECODER_BYTES
from spark_udfs.ingest.place import size_of
from spark_udfs.ingest.rows import BadRecord

CHUNK_BYTES = 64 << 10  # of the file, read at a time
_FIRST_BYTES = 512  # of a stream, then twice as many each time, since a file may consist of tiny streams
PIECE_BYTES = 1 << 20  # of the content, returned at a time
DECODING_ERRORS = (zlib.error, OSError, ValueError, EOFError, lzma.LZMAError, zstandard.ZstdError)


class TrailingData(BadRecord):
    """Other bytes behind the last stream; all streams are whole."""


class Decoder(Protocol):
    """The decoder of one stream; `own_zeros` is the most zeros a whole stream may end in."""

    own_zeros: int

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""

    @property
    def unused_data(self) -> bytes:
        """The bytes fed beyond the end of the stream."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the content that `chunk` completes."""


class GzipMember:
    """A member of a gzip file."""

    own_zeros = 64  # the end of a checksum and a length

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        while True:
            piece = self._inflate.decompress(chunk, PIECE_BYTES)
            yield piece
            chunk = self._inflate.unconsumed_tail
            if not chunk and len(piece) < PIECE_BYTES:  # otherwise the decoder may hold more
                return


class _Blocks:
    """The standard library's decoders of bzip2 and xz."""

    own_zeros = 64

    def __init__(self, decoder: bz2.BZ2Decompressor | lzma.LZMADecompressor) -> None:
        self._decoder = decoder

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        yield self._decoder.decompress(chunk, PIECE_BYTES)
        while not self._decoder.needs_input and not self._decoder.eof:
            yield self._decoder.decompress(b"", PIECE_BYTES)


class ZstandardFrame:
    """A frame, fed block by block: even the shortest block expands to at most 128 KiB.

    A frame may need the `dictionary` that it was compressed with.
    """

    own_zeros = 129 << 10  # an uncompressed block and its header

    def __init__(self, dictionary: zstandard.ZstdCompressionDict | None = None) -> None:
        decompressor = zstandard.ZstdDecompressor(dictionary, max_window_size=MAX_DECODER_BYTES)
        self._frame = decompressor.decompressobj()
        self._held = bytearray()
        self._parts = _parts_of_frame()
        self._wanted = next(self._parts)
        self.eof = False

    @property
    def unused_data(self) -> bytes:
        return bytes(self._held) if self.eof else b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._held += chunk
        while not self.eof and len(self._held) >= self._wanted:
            part = bytes(self._held[: self._wanted])
            del self._held[: self._wanted]
            try:
                self._wanted = self._parts.send(part)
            except StopIteration:
                self.eof = True
            yield self._frame.decompress(part)


def _parts_of_frame() -> Generator[int, bytes, None]:
    """Yield how many bytes each part of a frame has (RFC 8878), and receive the part."""
    magic = yield 4
    if magic != _MAGIC["zstd"]:
        raise ValueError("no Zstandard frame begins here")
    descriptor = (yield 1)[0]
    single = descriptor >> 5 & 1
    yield (1 - single) + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[descriptor >> 6]
    last = 0
    while not last:
        header = int.from_bytes((yield 3), "little")
        last = header & 1
        if size := 1 if header >> 1 & 3 == 1 else header >> 3:  # a block of one repeated byte
            yield size
    if descriptor & 4:
        yield 4  # a checksum


_MAGIC = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\0", "zstd": b"\x28\xb5\x2f\xfd"}
_HEADER_BYTES = 14  # of a frame of Zstandard, at most, without its magic
_SKIPPED = b"\x2a\x4d\x18"  # the magic of a skippable Zstandard frame, behind its first byte
_DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": GzipMember,
    "bz2": lambda: _Blocks(bz2.BZ2Decompressor()),
    "xz": lambda: _Blocks(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_DECODER_BYTES)),
    "zstd": ZstandardFrame,
}


class _Source:
    """An open file from `begin` on, read up to the zeros at its end, or up to `end`."""

    def __init__(self, file: BinaryIO, begin: int, end: int | None) -> None:
        self._file = file
        self.size = size_of(file) if end is None else end
        self.end = self._end() if end is None else end
        self.at = begin
        self.seek(begin)

    def _end(self) -> int:
        """Return the position behind the last byte other than zero."""
        end = self.size
        while end:
            first = max(0, end - CHUNK_BYTES)
            self._file.seek(first)
            if chunk := self._file.read(end - first).rstrip(b"\0"):
                return first + len(chunk)
            end = first
        return 0

    def seek(self, position: int) -> None:
        self._file.seek(position)
        self.at = position

    def read(self, n_bytes: int = CHUNK_BYTES) -> bytes:
        """Return the next bytes, none at the end."""
        chunk = self._file.read(max(0, min(n_bytes, self.end - self.at)))
        self.at += len(chunk)
        return chunk

    def skip_zeros(self) -> None:
        """Move to the next byte other than zero."""
        while chunk := self.read():
            if rest := chunk.lstrip(b"\0"):
                self.seek(self.at - len(rest))
                return

    def begins_with(self, magic: bytes) -> bool:
        """Return whether `magic` comes next."""
        head = self.read(len(magic))
        self.seek(self.at - len(head))
        return head == magic


def decoded(file: BinaryIO, compression: str, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the content of an open file in pieces; consecutive streams are one content.

    It may be the content of the streams between two places.

    Raises BadRecord `corrupt` if a stream is damaged or ends early, or, as TrailingData, if other bytes
    follow whole streams; and `bomb` if a stream needs more memory than `MAX_DECODER_BYTES`.
    """
    source = _Source(file, begin, end)
    if source.size and not source.end:
        raise BadRecord("corrupt", "The file holds only zeros.")
    n_streams = 0
    while source.at < source.end:
        if compression == "zstd" and _skipped_frame(source):
            continue
        if n_streams and not source.begins_with(_MAGIC[compression]):
            raise TrailingData(
                "corrupt",
                f"Its {compression} data end at byte {source.at} of the file, and other bytes follow.",
            )
        yield from _stream(source, _DECODERS[compression])
        n_streams += 1
        source.skip_zeros()


def frame_places(file: BinaryIO) -> Iterator[int]:
    """Yield where the frames of a Zstandard file begin, up to bytes that are no whole frame.

    Skippable frames are left out.
    """
    size = size_of(file)
    place: int | None = 0
    while place is not None and place < size:
        file.seek(place)
        head = file.read(8)
        is_skippable = len(head) == 8 and head[1:4] == _SKIPPED and head[0] >> 4 == 5
        if is_skippable:
            place += 8 + int.from_bytes(head[4:], "little")
        elif head.startswith(_MAGIC["zstd"]):
            yield place
            place = _end_of_frame(file, place)
        else:
            return


def _end_of_frame(file: BinaryIO, place: int) -> int | None:
    """Return the place behind a frame, None if the file ends before it; blocks are not read."""
    parts = _parts_of_frame()
    n_bytes = next(parts)
    with suppress(StopIteration):
        while True:
            file.seek(place)
            header = file.read(n_bytes) if n_bytes <= _HEADER_BYTES else b""
            if len(header) < n_bytes <= _HEADER_BYTES:
                return None
            place += n_bytes
            n_bytes = parts.send(header)
    return place


def _skipped_frame(source: _Source) -> bool:
    """Skip a skippable Zstandard frame, if one comes next, and return whether one did."""
    start = source.at
    head = source.read(8)
    skipped = len(head) == 8 and head[1:4] == _SKIPPED and head[0] >> 4 == 5
    source.seek(min(source.end, start + 8 + int.from_bytes(head[4:], "little")) if skipped else start)
    return skipped


def _stream(source: _Source, new: Callable[[], Decoder]) -> Iterator[bytes]:
    """Yield the content of the stream that begins at `source.at`, and move behind it."""
    start = fed = source.at
    n_yielded, n_bytes = 0, _FIRST_BYTES
    decoder = new()
    try:
        while not decoder.eof:
            fed = source.at
            chunk = source.read(n_bytes)
            n_bytes = min(2 * n_bytes, CHUNK_BYTES)
            if not chunk:
                yield from _end_in_zeros(source, decoder)
                return
            for piece in decoder.feed(chunk):
                n_yielded += len(piece)
                yield piece
    except DECODING_ERRORS as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file itself cannot be read
        yield from _rest(source, new, start, fed, n_yielded)
        if "emory" in str(error):  # both libraries with such a limit say "memory"
            detail = f"The stream needs more than {MAX_DECODER_BYTES:,} bytes of memory."
            raise BadRecord("bomb", detail) from None
        detail = f"The compressed stream is broken before byte {source.at} of the file: {_said(error)}."
        raise BadRecord("corrupt", detail) from None
    source.seek(source.at - len(decoder.unused_data))


def _end_in_zeros(source: _Source, decoder: Decoder) -> Iterator[bytes]:
    """Yield the content that zeros at the end of the file complete, or raise: the stream is cut off there."""
    zeros = bytes(min(source.size - source.end, decoder.own_zeros))
    try:
        pieces = list(decoder.feed(zeros))
        complete = decoder.eof
    except DECODING_ERRORS:
        complete = False
    if not complete:
        what = "from there on it holds zeros" if zeros else "there it ends"
        detail = f"The compressed stream is cut off at byte {source.end} of the file: {what}."
        raise BadRecord("corrupt", detail)
    yield from pieces
    source.seek(source.end + len(zeros) - len(decoder.unused_data))


def _rest(
    source: _Source, new: Callable[[], Decoder], start: int, fed: int, n_yielded: int
) -> Iterator[bytes]:
    """Yield the content behind its first `n_yielded` bytes, up to damage behind the file's byte `fed`."""
    decoder = new()
    source.seek(start)
    try:
        while chunk := source.read(min(CHUNK_BYTES, fed - source.at) if source.at < fed else 1):
            for piece in decoder.feed(chunk):
                n_repeated = min(n_yielded, len(piece))
                n_yielded -= n_repeated
                if piece[n_repeated:]:
                    yield piece[n_repeated:]
    except DECODING_ERRORS:
        return


def _said(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
