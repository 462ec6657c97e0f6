"""The lines of a stream, or of a part of one, in bounded memory; adjacent blank lines are one.

A part has a border on either side, which may be anywhere: in a letter, in a run of blank lines. Each line
belongs to one part, so that the parts have the lines of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, Protocol

from spark_udfs.ingest.decoders import TrailingData
from spark_udfs.ingest.place import FilePart
from spark_udfs.ingest.rows import BadRecord

CHUNK_BYTES = 1 << 20
_BEHIND_BYTES = 1 << 16  # read at a time behind a part, where only its last line is


class PartStream(Protocol):
    """The content from the begin of a part on, also behind its end.

    `n_own` is the number of bytes before the end, None until that is known; nothing read crosses it.
    """

    n_own: int | None

    def read(self, n_bytes: int) -> bytes:
        """Return up to so many bytes, none at the end of the file."""


class PlainPart:
    """The content of a part of a plain file."""

    def __init__(self, file: BinaryIO, part: FilePart) -> None:
        file.seek(part.begin)
        self._file = file
        self.n_own: int | None = part.end - part.begin
        self._n_left = part.end - part.begin

    def read(self, n_bytes: int) -> bytes:
        """Return the next bytes."""
        piece = self._file.read(min(n_bytes, self._n_left or _BEHIND_BYTES))
        self._n_left = max(0, self._n_left - len(piece))
        return piece


class Line(NamedTuple):
    """A line without its line feed, or adjacent blank lines: number from 1, first bytes, length in bytes.

    Of blank lines these are the number and the bytes of the first, and the length of all.
    """

    number: int
    data: bytes
    n_bytes: int
    n_lines: int = 1


_BLANK_LINES = rb"(?:\n++|[^\S\n]{1,%d}+\n)++"


def lines(read: Callable[[int], bytes], max_bytes: int) -> Iterator[Line]:
    """Yield the lines of a stream, adjacent blank ones together.

    Of each line at most `max_bytes` are held, the rest only counted; a longer line is not blank.
    """
    return _in_runs(_pieces(read, max_bytes), max_bytes)


def lines_of_part(stream: PartStream, max_bytes: int, *, is_first: bool) -> Iterator[Line]:
    """Yield the lines of a part as `lines` does, numbered from the first of them.

    These are the lines that begin behind the part's first byte (at it, too, of the first part) and up to the
    byte behind its last, with the blank lines that follow them, in later parts, too.
    """
    position, rest = (0, b"") if is_first else _behind_line_feed(stream)
    if rest is None:
        return iter(())

    def read(n_bytes: int) -> bytes:
        nonlocal rest
        piece, rest = rest, b""
        return piece or stream.read(n_bytes)

    own = _own(_pieces(read, max_bytes), stream, position, max_bytes, has_own=is_first)
    return _in_runs(own, max_bytes)


def _behind_line_feed(stream: PartStream) -> tuple[int, bytes | None]:
    """Return the position behind the first line feed of a part, and bytes read behind it, None without."""
    position = 0
    while stream.n_own is None or position < stream.n_own:
        try:
            chunk = stream.read(CHUNK_BYTES)
        except BadRecord:
            if stream.n_own is None:
                raise
            break  # the next part records it
        if not chunk:
            break
        end = chunk.find(b"\n") + 1
        if end:
            return position + end, chunk[end:]
        position += len(chunk)
    return position, None


def _own(
    pieces: Iterator[Line], stream: PartStream, position: int, max_bytes: int, *, has_own: bool
) -> Iterator[Line]:
    n_skipped = 0
    while True:
        try:
            piece = next(pieces, None)
        except BadRecord:
            if _is_behind(stream, position):
                return  # the next part records it
            raise
        if piece is None:
            return
        is_blank = _is_blank(piece, max_bytes)
        if _is_behind(stream, position) and not (is_blank and has_own):
            return
        position += piece.n_bytes + piece.n_lines
        has_own = has_own or not is_blank
        if has_own:
            yield piece._replace(number=piece.number - n_skipped)
        else:  # the part with the line before them has these
            n_skipped += piece.n_lines


def _is_behind(stream: PartStream, position: int) -> bool:
    return stream.n_own is not None and position > stream.n_own


def _is_blank(line: Line, max_bytes: int) -> bool:
    return line.n_bytes <= max_bytes * line.n_lines and not line.data.strip()


def _in_runs(pieces: Iterator[Line], max_bytes: int) -> Iterator[Line]:
    """Yield lines, adjacent blank ones as one."""
    blank: Line | None = None
    while True:
        try:
            line = next(pieces, None)
        except BadRecord:
            if blank:
                yield blank
            raise
        if line is not None and _is_blank(line, max_bytes):
            blank = line if blank is None else _joined(blank, line)
            continue
        if blank:
            yield blank
            blank = None
        if line is None:
            return
        yield line


def _joined(first: Line, following: Line) -> Line:
    n_bytes, n_lines = first.n_bytes + following.n_bytes, first.n_lines + following.n_lines
    return first._replace(n_bytes=n_bytes, n_lines=n_lines)


def _pieces(read: Callable[[int], bytes], max_bytes: int) -> Iterator[Line]:
    """Yield the lines of a stream; blank lines that are read at once may come as one."""
    blank_lines = re.compile(_BLANK_LINES % max(1, max_bytes))
    number, n_bytes, head = 1, 0, bytearray()
    trailing: TrailingData | None = None
    while True:
        try:
            chunk = read(CHUNK_BYTES)
        except TrailingData as error:  # the streams are whole, and so is their last line
            trailing, chunk = error, b""
        if not chunk:
            break
        start = 0
        while start < len(chunk):
            if not n_bytes and (run := blank_lines.match(chunk, start)):
                first, n_lines = chunk.index(b"\n", start), chunk.count(b"\n", start, run.end())
                yield Line(number, chunk[start:first], run.end() - start - n_lines, n_lines)
                number, start = number + n_lines, run.end()
                continue
            end = chunk.find(b"\n", start)
            stop = len(chunk) if end < 0 else end
            head += chunk[start : min(stop, start + max_bytes - len(head))]
            n_bytes += stop - start
            if end >= 0:
                yield Line(number, bytes(head), n_bytes)
                number, n_bytes = number + 1, 0
                head.clear()
            start = stop + 1
    if n_bytes:
        yield Line(number, bytes(head), n_bytes)
    if trailing:
        raise trailing
