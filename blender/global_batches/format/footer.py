"""The footer of a global batch: which bytes of its object hold which slice, and their checksums.

    footer = Footer.parse(data, "batches/a/3/17-5f0c", digest)
    offset, length = footer.range_of(dp=1, chunk=3)
    footer.decode(1, 3, object[offset : offset + length])       # {"tokens": array of [4, 512], ...}

An object has no gaps. It begins with the first slice; slices are in order of their dp index, then
of their chunk in the sequence, so the chunks of a dp index can be read by one request.

    slice dp 0, chunk 0     the columns by name, raw, little-endian, C order, each padded to 64 bytes
    slice dp 0, chunk 1
    ...
    footer                  JSON: dp, chunks, columns with dtype and shapes, the CRC32 of every slice, origin
    trailer                 the footer's offset (u64), length (u32) and CRC32 (u32), and a magic number

Offset and length of a slice follow from the shapes. A CRC32 covers a slice with its padding.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from math import prod
from struct import Struct
from typing import NoReturn, TypeAlias
from zlib import crc32

import numpy as np

from blender.errors import InvalidRequest
from blender.global_batches.errors import DamagedBatch, NamespaceDiffers
from blender.global_batches.format.columns import BFLOAT16, DTYPES, Array, Column, Shape, numpy_dtype
from blender.global_batches.json_values import Json, compact_json

VERSION = 2  # of batches with a column of bfloat16; the others are written as version 1
MAGIC = b"TGBATCH\n"
TRAILER = Struct("<QII8s")
_FIELDS = {"version", "dp", "chunks", "columns", "crc32", "origin"}
_MOST_AXES, _MOST_BYTES = 64, 2**63 - 1  # of an array of numpy

Bytes: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True)
class Footer:
    """The contents of a batch and their places. `name` is the name of its object, for errors."""

    dp: int
    chunks: int
    columns: tuple[Column, ...]
    checksums: tuple[int, ...]
    """CRC32s of the slices in order."""
    origin: Json = None
    """What the producer wants to find again."""
    name: str = ""

    @classmethod
    def parse(cls, content: Bytes, name: str, digest: bytes | None = None) -> Footer:
        """The footer in `data`; the log holds its `digest` as `footer_hash`.

        Raises DamagedBatch, and NamespaceDiffers if a newer version wrote it.
        """
        if digest is not None and footer_hash(content) != digest:
            _raise_damaged_footer(name, "its hash is not the one in the log")
        try:
            fields = json.loads(str(content, "ascii"), parse_constant=_raise_constant)
            version = _whole(fields["version"], least=1)
            if version <= VERSION:
                return cls(*_parsed(fields), name)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            _raise_damaged_footer(name, f"it is not one ({str(error)[:80]})", error)
        raise NamespaceDiffers(
            f"The batch {name} has format {version}, and this version reads formats up to {VERSION}. "
            "Upgrade to the version that its producer uses."
        )

    @classmethod
    def of_object(cls, body: Bytes, name: str) -> Footer:
        """The footer of a whole object, found by its trailer. Raises as `parse` does."""
        view = memoryview(body).cast("B")
        end = len(view) - TRAILER.size
        if end < 0:
            raise DamagedBatch(f"The batch {name} has {len(view)} bytes, {_CUT_SHORT}")
        offset, length, checksum, magic = TRAILER.unpack(view[end:])
        if magic != MAGIC or offset + length != end:
            raise DamagedBatch(f"The batch {name} has {len(view):,} bytes and no trailer, {_CUT_SHORT}")
        content = view[offset:end]
        if crc32(content) != checksum:
            _raise_damaged_footer(name, "its CRC32 is not the one in the trailer")
        footer = cls.parse(content, name)
        if footer.length != offset:
            _raise_damaged_footer(name, f"it describes {footer.length:,} bytes, and begins at {offset:,}")
        return footer

    def encoded(self) -> bytes:
        """The JSON of the footer: the same bytes for equal footers, in any process."""
        fields = {
            "version": VERSION if any(column.dtype == BFLOAT16 for column in self.columns) else 1,
            "dp": self.dp,
            "chunks": self.chunks,
            "columns": [column._asdict() for column in self.columns],
            "crc32": self.checksums,
            "origin": self.origin,
        }
        return compact_json(fields)

    @property
    def sequence(self) -> frozenset[str]:
        """The columns that are cut along the sequence."""
        return frozenset(column.name for column in self.columns if column.cut)

    @property
    def length(self) -> int:
        """The bytes of all slices: the offset of the footer."""
        return self._offsets[-1]

    def range_of(self, dp: int, chunk: int) -> tuple[int, int]:
        """Offset and length of a slice in its object; a slice of length 0 need not be read.

        Raises InvalidRequest for a slice that the batch does not have.
        """
        index = self._index(dp, chunk)
        return self._offsets[index], self._offsets[index + 1] - self._offsets[index]

    def decode(self, dp: int, chunk: int, content: Bytes) -> dict[str, Array]:
        """The columns of a slice, as read-only views of its bytes. Raises DamagedBatch."""
        view = memoryview(content).cast("B").toreadonly()
        length = self.range_of(dp, chunk)[1]
        if len(view) != length:
            self._raise_damaged_slice(dp, chunk, f"has {length:,} bytes, and {len(view):,} were read")
        if crc32(view) != self.checksums[self._index(dp, chunk)]:
            self._raise_damaged_slice(dp, chunk, "holds other bytes than its producer wrote")
        arrays: dict[str, Array] = {}
        offset = 0
        for column in self.columns:
            if column.within(chunk):
                arrays[column.name] = column.array(dp, view, offset)
                offset += column.padded_bytes(dp)
        return arrays

    @cached_property
    def _offsets(self) -> tuple[int, ...]:
        """Offsets of the slices in order, and of their end."""
        lengths: list[int] = []
        shared = all(len(column.shapes) == 1 for column in self.columns)
        for dp in range(1 if shared else self.dp):
            even = sum(column.padded_bytes(dp) for column in self.columns)
            odd = sum(column.padded_bytes(dp) for column in self.columns if column.cut)
            lengths += [even, odd] * (self.chunks // 2) or [even]
        lengths *= self.dp if shared else 1
        return tuple(accumulate(lengths, initial=0))

    def _index(self, dp: int, chunk: int) -> int:
        if not (0 <= dp < self.dp and 0 <= chunk < self.chunks):
            raise InvalidRequest(
                f"Slice dp {dp}, chunk {chunk} of the batch {self.name} was asked for. "
                f"Its dp indexes are 0 to {self.dp - 1}, its chunks 0 to {self.chunks - 1}."
            )
        return dp * self.chunks + chunk

    def _raise_damaged_slice(self, dp: int, chunk: int, fault: str) -> NoReturn:
        raise DamagedBatch(f"Slice dp {dp}, chunk {chunk} of the batch {self.name} {fault}. {_RESTORE}")


_RESTORE = "Restore the object from a copy."
_CUT_SHORT = f"so it is damaged or cut short. {_RESTORE}"


def footer_hash(content: Bytes) -> bytes:
    """The hash of a footer that the log holds; 16 bytes."""
    return blake2b(content, digest_size=16).digest()


def possible_chunks(chunks: int) -> bool:
    """Whether a dp index can have so many chunks: one, or two for each of two or more cp indexes."""
    return chunks == 1 or (chunks >= 4 and chunks % 2 == 0)


def _parsed(fields: dict[str, object]) -> tuple[int, int, tuple[Column, ...], tuple[int, ...], Json]:
    if fields.keys() != _FIELDS:
        raise ValueError("unknown fields")
    dp, chunks = _whole(fields["dp"], least=1), _whole(fields["chunks"])
    columns = tuple(_column(column, dp) for column in _list(fields["columns"]))
    checksums = tuple(_whole(checksum, most=2**32 - 1) for checksum in _list(fields["crc32"]))
    names = [column.name for column in columns]
    if not names or names != sorted(set(names)):
        raise ValueError("columns that are missing or not in order")
    if not possible_chunks(chunks) or len(checksums) != dp * chunks:
        raise ValueError("checksums of another number of slices")
    return dp, chunks, columns, checksums, fields["origin"]  # type: ignore[return-value]


def _column(fields: object, dp: int) -> Column:
    if not isinstance(fields, dict) or fields.keys() != set(Column._fields):
        raise ValueError("a column of unknown fields")
    name, dtype, cut = fields["name"], fields["dtype"], fields["cut"]
    if not isinstance(name, str) or dtype not in DTYPES or not isinstance(cut, bool):
        raise ValueError("a column of unknown kind")
    shapes = tuple(tuple(_whole(extent) for extent in _list(shape)) for shape in _list(fields["shapes"]))
    if len(shapes) not in (1, dp) or any(_impossible(shape, numpy_dtype(dtype), cut) for shape in shapes):
        raise ValueError("a column of impossible shapes")
    return Column(name, dtype, cut, shapes)


def _impossible(shape: Shape, dtype: np.dtype[np.generic], cut: bool) -> bool:
    most = prod(extent for extent in shape if extent) * dtype.itemsize
    return len(shape) > _MOST_AXES or (cut and len(shape) < 2) or most > _MOST_BYTES


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError("a value that is not a list")
    return value


def _whole(value: object, least: int = 0, most: int = _MOST_BYTES) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError("a value that is not a whole number")
    return value


def _raise_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _raise_damaged_footer(name: str, fault: str, error: Exception | None = None) -> NoReturn:
    raise DamagedBatch(f"The footer of the batch {name} is damaged: {fault}. {_RESTORE}") from error
