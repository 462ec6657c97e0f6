"""The members of a tar archive, front to back, each yielded as soon as it is complete.

    header (512 bytes) | data, filled up to blocks of 512 | header | ... | zeros

The formats are 1979's, POSIX (ustar and pax) and GNU. The standard library's `tarfile` reads them too, but it
holds long names and extended headers of any size, recurses for each of them, searches them with a regular
expression that takes quadratic time, and takes a broken header for the end.

Concatenated archives are one, as for `tar --ignore-zeros`. The holes of a sparse member are zeros, so its
data is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from spark_udfs.ingest.bounds import MAX_TAR_HEADER_BYTES
from spark_udfs.ingest.rows import BadRecord

BLOCK = 512
_SKIP_BYTES = 1 << 20
_LONG_NAME, _LONG_LINK, _EXTENDED, _GLOBAL = b"L", b"K", b"x", b"g"
_DESCRIBING = (_LONG_NAME, _LONG_LINK, _EXTENDED, b"X", _GLOBAL)  # of the next member, or of all
_FILES = (b"0", b"\0", b"7")
_FOLDERS = (b"5", b"D")
_LINKS = (b"1", b"2")
_WITHOUT_DATA = (*_LINKS, b"3", b"4", b"5", b"6")  # regardless of the size in their header
_SPARSE = b"S"
_HOLES = b"GNU.sparse"  # replaces all records of an extended header about a sparse member's holes
_SPARSE_NAME = b"GNU.sparse.name"


class TarMember(NamedTuple):
    """A member other than a folder: its size according to the archive, and its data or why it is rejected.

    The name has a surrogate for each byte that is not UTF-8. A member above the limit is not read.
    """

    name: str
    n_bytes: int
    data: bytes
    trouble: BadRecord | None


class _Header(NamedTuple):
    name: bytes
    size: int
    kind: bytes
    continued: bool  # the map of a sparse member goes on in the next block


class _Blocks:
    """The archive as a stream; `at` is the number of bytes read."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self.at = 0

    def take(self, n_bytes: int) -> bytes:
        """Return `n_bytes` bytes, fewer at the end of the stream."""
        buffer = bytearray()
        while len(buffer) < n_bytes and (piece := self._read(n_bytes - len(buffer))):
            buffer += piece
        self.at += len(buffer)
        return bytes(buffer)

    def whole(self, n_bytes: int) -> bytes:
        """Return `n_bytes` bytes; raises BadRecord `corrupt` if there are fewer."""
        content = self.take(n_bytes)
        if len(content) < n_bytes:
            raise _corrupt(self.at, "it ends within a member")
        return content

    def skip(self, n_bytes: int) -> None:
        """Skip `n_bytes` bytes."""
        while n_bytes:
            n_bytes -= len(self.whole(min(n_bytes, _SKIP_BYTES)))


def tar_members(read: Callable[[int], bytes], max_bytes: int, unread: tuple[str, ...]) -> Iterator[TarMember]:
    """Yield each member other than a folder, without data if it is longer or its name ends in `unread`.

    Raises BadRecord `corrupt` at the byte where the archive breaks off, or where its bytes are not tar, and
    `too_large` at a header beyond the bound.
    """
    blocks = _Blocks(read)
    ended = False
    of_all: dict[bytes, bytes] = {}
    of_next: dict[bytes, bytes] = {}
    while header := _next_header(blocks, ended):
        if not any(header):
            ended = True
            continue
        ended = False
        info = _parsed(header, blocks.at - BLOCK)
        if info.kind in _DESCRIBING:
            if info.kind == _GLOBAL:
                of_all |= _description(blocks, info)
            else:
                of_next |= _description(blocks, info)
            continue
        while info.continued:
            info = info._replace(continued=blocks.whole(BLOCK)[504] != 0)
        described = {**of_all, **of_next}
        size = _size(described, info, blocks.at)
        path = described.get(_SPARSE_NAME) or described.get(b"path", info.name)
        name = path.rstrip(b"\0").decode("utf-8", "surrogateescape")
        n_unread = 0 if info.kind in _WITHOUT_DATA else size
        if info.kind not in _FOLDERS and not (info.kind in _FILES and name.endswith("/")):
            trouble = _odd(info.kind, described)
            data = b""
            if trouble is None and size <= max_bytes and not name.lower().endswith(unread):
                data = blocks.whole(size)
                n_unread = 0
            yield TarMember(name, size, data, trouble)
            n_unread += -len(data) % BLOCK if data else -n_unread % BLOCK
        else:
            n_unread += -n_unread % BLOCK
        blocks.skip(n_unread)
        of_next = {}


def _next_header(blocks: _Blocks, ended: bool) -> bytes:
    """Return the next block, none at the end of the archive."""
    block = blocks.take(BLOCK)
    if len(block) == BLOCK or (ended and not any(block)):
        return block if len(block) == BLOCK else b""
    if block:
        raise _corrupt(blocks.at, "it ends within a header")
    raise _corrupt(blocks.at, "it does not end as a tar archive does")


def _corrupt(position: int, why: str) -> BadRecord:
    return BadRecord("corrupt", f"The archive cannot be read further: {why}.", f"byte {position}")


def _parsed(block: bytes, position: int) -> _Header:
    """Parse the header in a block; raises BadRecord `corrupt` for an invalid one."""
    checksum = _number(block[148:156])
    unsigned = sum(block[:148]) + sum(block[156:]) + 8 * ord(" ")
    negative = 256 * sum(byte > 127 for byte in block[:148] + block[156:]) if checksum != unsigned else 0
    if checksum not in (unsigned, unsigned - negative):  # some old writers summed signed bytes
        raise _corrupt(position, "a header has the wrong checksum")
    size, kind = _number(block[124:136]), block[156:157]
    if size is None or size < 0:
        raise _corrupt(position, "a header has an invalid size")
    name = block[:100].split(b"\0")[0]
    prefix = block[345:500].split(b"\0")[0]
    if block[257:263] == b"ustar\0" and prefix:  # in GNU's format these bytes mean something else
        name = prefix + b"/" + name
    return _Header(name, size, kind, kind == _SPARSE and block[482] != 0)


def _number(field: bytes) -> int | None:
    """Parse a number in octal digits or in GNU's form for large ones, None for neither."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big") if field[0] == 0x80 else -1
    digits = field.split(b"\0")[0].strip()
    if not digits:
        return 0
    return int(digits, 8) if all(48 <= digit < 56 for digit in digits) else None


def _description(blocks: _Blocks, info: _Header) -> dict[bytes, bytes]:
    """Return the fields of a long name or an extended header; raises BadRecord `too_large` before reading."""
    if info.size > MAX_TAR_HEADER_BYTES:
        detail = (
            f"A long name or extended header has {info.size:,} bytes, the limit is {MAX_TAR_HEADER_BYTES:,}; "
            "the archive was not read further."
        )
        raise BadRecord("too_large", detail, f"byte {blocks.at - BLOCK}")
    filled = info.size + -info.size % BLOCK
    start = blocks.at
    description = blocks.whole(filled)[: info.size]
    if info.kind == _LONG_NAME:
        return {b"path": description.split(b"\0")[0]}
    return {} if info.kind == _LONG_LINK else dict(_records(description, start))


def _records(header: bytes, start: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of an extended header that matter here, such as `24 path=a/name` and a line feed.

    Only a few names matter: a global header's records are held and consulted for each member.
    """
    position = 0
    while position < len(header) and header[position]:
        digits, space, _ = header[position : position + 20].partition(b" ")
        length = int(digits) if space and digits.isdigit() else 0
        key, equals, value = header[position + len(digits) + 1 : position + length].partition(b"=")
        if not equals or position + length > len(header) or not value.endswith(b"\n"):
            raise _corrupt(start + position, "an extended header holds an invalid record")
        if key.startswith(b"GNU.sparse."):
            yield _HOLES, b""
        if key in (b"path", b"size", _SPARSE_NAME):
            yield key, value[:-1]
        position += length


def _size(described: Mapping[bytes, bytes], info: _Header, position: int) -> int:
    """Return how many bytes of data a member has in the archive."""
    if b"size" not in described:
        return info.size
    digits = described[b"size"]
    if not digits.isdigit() or len(digits) > 20:
        raise _corrupt(position - BLOCK, "an extended header has an invalid size")
    return int(digits)


def _odd(kind: bytes, described: Mapping[bytes, bytes]) -> BadRecord | None:
    """Say why a member is rejected, None for a plain file."""
    if kind in _LINKS:
        return BadRecord("link", "The member is a link, and links are not followed.")
    if kind == _SPARSE or _HOLES in described:
        return BadRecord("nul_byte", "The member is sparse: its holes are NUL bytes, which no text has.")
    if kind not in _FILES:
        return BadRecord("not_a_file", "The member is a pipe, a device or the like, not a file.")
    return None
