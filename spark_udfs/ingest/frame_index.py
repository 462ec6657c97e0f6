"""The places of the frames of a Zstandard file, as the file itself tells them.

Seekable files end in a table of their frames, and `pzstd` writes the length of each frame before it, so that
few small ranges of a file in a store tell all places. Other files of many frames tell them only to a reader
of every block. Both forms come from zstd's `contrib/seekable_format` and `contrib/pzstd`.
"""

from __future__ import annotations

from itertools import accumulate
from typing import BinaryIO

from spark_udfs.ingest.place import size_of

_FRAME, _SEEK_TABLE, _LENGTH = b"\x28\xb5\x2f\xfd", b"\x5e\x2a\x4d\x18", b"\x50\x2a\x4d\x18\x04\0\0\0"
_SEEKABLE = 0x8F92EAB1  # the last four bytes of a seekable file
_FOOTER_BYTES, _HEADER_BYTES = 9, 8
_MOST_ENTRIES = 1 << 19  # 6 MiB of table; sixteen threads read one each
_LENGTH_BYTES = len(_LENGTH) + 4
# A store answers a range in milliseconds and sends 64 KiB at least, so that walking shorter frames costs as
# much as reading the file.
_LEAST_MEAN, _FEW = 1 << 19, 64


def indexed_frames(file: BinaryIO) -> list[int] | None:
    """Return where the frames of a file begin, None if the file has no index of them or a wrong one."""
    size = size_of(file)
    places = _frames_of_table(file, size)
    return _frames_of_lengths(file, size) if places is None else places


def _frames_of_table(file: BinaryIO, size: int) -> list[int] | None:
    """Return the places that the table of a seekable file has, if its frames fill the file up to it."""
    file.seek(max(0, size - _FOOTER_BYTES))
    footer = file.read(_FOOTER_BYTES)
    if len(footer) < _FOOTER_BYTES or int.from_bytes(footer[5:], "little") != _SEEKABLE:
        return None
    n_entries, entry_bytes = int.from_bytes(footer[:4], "little"), 12 if footer[4] & 0x80 else 8
    table_bytes = _HEADER_BYTES + n_entries * entry_bytes + _FOOTER_BYTES
    if n_entries > _MOST_ENTRIES or table_bytes > size:
        return None
    file.seek(size - table_bytes)
    table = file.read(table_bytes)
    content_bytes = (table_bytes - _HEADER_BYTES).to_bytes(4, "little")
    if not table.startswith(_SEEK_TABLE + content_bytes) or len(table) < table_bytes:
        return None
    entries = range(_HEADER_BYTES, table_bytes - _FOOTER_BYTES, entry_bytes)
    lengths = (int.from_bytes(table[entry : entry + 4], "little") for entry in entries)
    *places, end = accumulate(lengths, initial=0)
    return places if end == size - table_bytes else None


def _frames_of_lengths(file: BinaryIO, size: int) -> list[int] | None:
    """Return the places that the lengths before frames tell, if all frames have one."""
    places: list[int] = []
    place = 0
    while place < size:
        file.seek(place)
        head = file.read(_LENGTH_BYTES + len(_FRAME))
        if not head.startswith(_LENGTH) or not head.endswith(_FRAME):
            return None
        places.append(place + _LENGTH_BYTES)
        place = places[-1] + int.from_bytes(head[len(_LENGTH) : _LENGTH_BYTES], "little")
        if len(places) > _FEW and place < len(places) * _LEAST_MEAN:
            return None
    return places if place == size else None


def begins_frame(file: BinaryIO, place: int) -> bool:
    """Whether a frame begins at a place of the file."""
    file.seek(place)
    return file.read(len(_FRAME)) == _FRAME
