"""The nesting of a Parquet file's columns, read from its footer without recursion.

    PAR1 | row groups | footer: Thrift's compact protocol | length of the footer | PAR1

Parquet's C++ reader calls itself for each level of a nested column, and some ten thousand levels kill the
process. So a footer long enough for that is checked first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from spark_udfs.ingest.bounds import MAX_FOOTER_BYTES, MAX_NESTING, MAX_SCHEMA_ELEMENTS
from spark_udfs.ingest.place import size_of
from spark_udfs.ingest.rows import BadRecord

SAFE_BYTES = 20 << 10  # of a footer: each level takes at least five bytes, and the reader survives thousands
_MAGIC = b"PAR1"
_TAIL = 8  # the length of the footer, and the mark
_SCHEMA, _CHILDREN = 2, 5  # field numbers of a file's schema and of an element's children
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_MOST_STRUCTS = 32  # nested; a footer has fewer than ten


def footer_bytes(file: BinaryIO) -> int:
    """Return the length of the footer as the end of the file states it; zero of a file that is no Parquet."""
    size = size_of(file)
    file.seek(max(0, size - _TAIL))
    tail = file.read(_TAIL)
    length = int.from_bytes(tail[:4], "little")
    return length if tail[4:] == _MAGIC and length <= size - _TAIL else 0


def refuse_deep_footer(file: BinaryIO) -> None:
    """Raise BadRecord `too_complex` or `corrupt` for a footer that could kill the process."""
    length = footer_bytes(file)
    if length > SAFE_BYTES:
        if length > MAX_FOOTER_BYTES:
            detail = f"The footer has {length:,} bytes, the limit is {MAX_FOOTER_BYTES:,}."
            raise BadRecord("too_complex", detail)
        file.seek(size_of(file) - _TAIL - length)
        try:
            _Footer(file.read(length)).refuse_deep()
        except (IndexError, ValueError):
            raise BadRecord("corrupt", "The Parquet footer is not a Thrift structure.") from None
    file.seek(0)


def refuse_deep_columns(schema: pa.Schema) -> None:
    """Raise BadRecord `too_complex` for a column nested deeper than `MAX_NESTING`."""
    depth, level = 0, [field.type for field in schema]
    while level:
        level = [kind.field(n).type for kind in level for n in range(kind.num_fields)]
        depth += 1
        if level and depth > MAX_NESTING:
            raise _too_deep()


def _too_deep() -> BadRecord:
    return BadRecord("too_complex", f"The columns are nested deeper than {MAX_NESTING}.")


class _Footer:
    """A structure of Thrift's compact protocol; raises IndexError if it ends early."""

    def __init__(self, footer: bytes) -> None:
        self._data = footer
        self._at = 0

    def refuse_deep(self) -> None:
        """Check every schema in the footer: a reader takes the last of repeated fields."""
        for field, kind in self._fields():
            if field == _SCHEMA and kind == _LIST:
                self._schema()
            else:
                self._skip(kind)

    def _schema(self) -> None:
        n, kind = self._list()
        if n > MAX_SCHEMA_ELEMENTS:
            raise BadRecord(
                "too_complex", f"The schema has {n:,} elements, the limit is {MAX_SCHEMA_ELEMENTS:,}."
            )
        open_groups: list[int] = []  # the remaining children of each, outermost first
        for _ in range(n):
            children = 0
            for field, field_kind in self._fields() if kind == _STRUCT else ():
                if field == _CHILDREN and field_kind not in (_BINARY, _LIST, _SET, _MAP, _STRUCT, _DOUBLE):
                    children = self._varint() >> 1  # a zigzag-encoded count, never negative
                else:
                    self._skip(field_kind)
            if open_groups:
                open_groups[-1] -= 1
            if children:
                open_groups.append(children)
            while open_groups and open_groups[-1] <= 0:
                open_groups.pop()
            if len(open_groups) > MAX_NESTING + 1:  # the root counts as one
                raise _too_deep()

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Yield the number and kind of each field of a structure; the caller reads its value."""
        field = 0
        while head := self._byte():
            if head >> 4:
                field += head >> 4
            else:
                number = self._varint()
                field = number >> 1 ^ -(number & 1)
            yield field, head & 15

    def _skip(self, kind: int, structs: int = 0, *, of_list: bool = False) -> None:
        if structs > _MOST_STRUCTS:
            raise ValueError("structures nested too deeply")
        if kind in (_TRUE, _FALSE):
            self._at += of_list
        elif kind == _BYTE:
            self._at += 1
        elif kind < _DOUBLE:
            self._varint()
        elif kind == _DOUBLE:
            self._at += 8
        elif kind == _BINARY:
            length = self._varint()
            self._at += length
        elif kind in (_LIST, _SET):
            n, inner_kind = self._list()
            for _ in range(n):
                self._skip(inner_kind, structs + 1, of_list=True)
                self._require()
        elif kind == _STRUCT:
            for _, inner_kind in self._fields():
                self._skip(inner_kind, structs + 1)
        else:  # a map, which no footer has, or an invalid kind
            raise ValueError("an unknown kind of field")

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        return (self._varint() if head >> 4 == 15 else head >> 4), head & 15

    def _require(self) -> None:
        if self._at > len(self._data):
            raise IndexError

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number of too many bytes")
        return number | byte << shift
