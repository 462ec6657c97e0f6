"""Parquet files drawn over types, encodings, nulls, page sizes and versions, as pyarrow can write them.

A kind is a type of values with the arrays that may hold them: pyarrow notes in a file whether its strings
came from a dictionary, from views or with wide offsets, and readers have to give the same values. The keys of
a column decide which values repeat, so that a chunk's dictionary stays small, or grows too large midway and
plain pages follow.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import assume
from hypothesis import strategies as st

EPOCH = datetime.datetime(2020, 1, 1)
_INTEGERS = ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "PLAIN"]
_BYTES = ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "PLAIN"]
_FLOATS = ["BYTE_STREAM_SPLIT", "PLAIN"]
_FIXED = ["DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT", "PLAIN"]


@dataclass(frozen=True)
class Kind:
    """A type of values, and how files may hold them."""

    type: pa.DataType
    """Of the values as read."""
    value: Callable[[int], Any]
    """The value of a key, from 0 on."""
    encodings: list[str]
    """That pyarrow offers for it beside dictionaries."""
    stored: list[pa.DataType] = field(default_factory=list)
    """Other types of arrays with the same values."""
    iceberg: pa.DataType | None = None
    """The type of an Iceberg column with these values; None if Iceberg has no such type."""

    @property
    def arrays(self) -> list[pa.DataType]:
        """All types of arrays that may hold the values."""
        return [self.type, *self.stored]


def _text(key: int) -> str:
    return f"{'ö' * (key % 3)}word {key} " * (key % 5)


def _dictionaries(values: pa.DataType) -> list[pa.DataType]:
    return [pa.dictionary(index, values) for index in (pa.int8(), pa.int32())]


def _decimals(precision: int) -> Callable[[int], decimal.Decimal]:
    return lambda key: decimal.Decimal((-1) ** key * key * 10 ** (precision - 4)).scaleb(-2)


def _time(key: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(milliseconds=977 * key - 40_000)


def _utc(key: int) -> datetime.datetime:
    return _time(key).replace(tzinfo=datetime.UTC)


KINDS = {
    "boolean": Kind(pa.bool_(), lambda key: key % 3 == 0, ["RLE", "PLAIN"], iceberg=pa.bool_()),
    "int8": Kind(pa.int8(), lambda key: key % 256 - 128, _INTEGERS, iceberg=pa.int32()),
    "int16": Kind(pa.int16(), lambda key: 91 * key - 9_000, _INTEGERS, iceberg=pa.int32()),
    "int32": Kind(pa.int32(), lambda key: key * 9_999_991 - 2**31, _INTEGERS, iceberg=pa.int32()),
    "int64": Kind(pa.int64(), lambda key: key * 2**53 - 2**62, _INTEGERS, iceberg=pa.int64()),
    "uint8": Kind(pa.uint8(), lambda key: key % 256, _INTEGERS),
    "uint16": Kind(pa.uint16(), lambda key: 131 * key, _INTEGERS),
    "uint32": Kind(pa.uint32(), lambda key: 2**32 - 1 - key, _INTEGERS),
    "uint64": Kind(pa.uint64(), lambda key: 2**64 - 1 - key, _INTEGERS),
    "half": Kind(pa.float16(), lambda key: np.float16(key / 4), _FLOATS),
    "float": Kind(pa.float32(), lambda key: key / 3 - 20, _FLOATS, iceberg=pa.float32()),
    "double": Kind(pa.float64(), lambda key: key / 7 - 20, _FLOATS, iceberg=pa.float64()),
    "decimal": Kind(pa.decimal128(9, 2), _decimals(9), _FIXED, iceberg=pa.decimal128(9, 2)),
    "long decimal": Kind(pa.decimal128(18, 2), _decimals(18), _FIXED, iceberg=pa.decimal128(18, 2)),
    "decimal in 32 bits": Kind(pa.decimal32(9, 2), _decimals(9), _FIXED),
    "decimal in 64 bits": Kind(pa.decimal64(18, 2), _decimals(18), _FIXED),
    "decimal in 256 bits": Kind(pa.decimal256(50, 2), _decimals(50), _FIXED),
    "wide decimal": Kind(pa.decimal128(38, 2), _decimals(38), _FIXED, iceberg=pa.decimal128(38, 2)),
    "fixed": Kind(pa.binary(5), lambda key: key.to_bytes(5, "big"), _FIXED, iceberg=pa.binary(5)),
    "uuid": Kind(
        pa.binary(16), lambda key: key.to_bytes(16, "little"), _FIXED, [pa.uuid()], iceberg=pa.uuid()
    ),
    "binary": Kind(
        pa.binary(),
        lambda key: _text(key).encode() + bytes([255, 0, key % 256]) * (key % 2),
        _BYTES,
        [pa.large_binary(), pa.binary_view(), *_dictionaries(pa.binary())],
        iceberg=pa.binary(),
    ),
    "string": Kind(
        pa.string(),
        _text,
        _BYTES,
        [pa.large_string(), pa.string_view(), *_dictionaries(pa.string()), *_dictionaries(pa.large_string())],
        iceberg=pa.string(),
    ),
    "date": Kind(pa.date32(), lambda key: _time(key * 90_000).date(), _INTEGERS, iceberg=pa.date32()),
    "milliseconds of a day": Kind(pa.time32("ms"), lambda key: _time(key).time(), _INTEGERS),
    "microseconds of a day": Kind(
        pa.time64("us"), lambda key: _time(key).time(), _INTEGERS, iceberg=pa.time64("us")
    ),
    "milliseconds": Kind(pa.timestamp("ms"), _time, _INTEGERS),
    "microseconds": Kind(pa.timestamp("us"), _time, _INTEGERS, iceberg=pa.timestamp("us")),
    "nanoseconds": Kind(pa.timestamp("ns"), _time, _INTEGERS),
    "microseconds in UTC": Kind(
        pa.timestamp("us", tz="UTC"), _utc, _INTEGERS, iceberg=pa.timestamp("us", tz="UTC")
    ),
    "duration": Kind(pa.duration("us"), lambda key: datetime.timedelta(seconds=key), _INTEGERS),
    "null": Kind(pa.null(), lambda key: None, ["PLAIN"]),
    "list of integers": Kind(
        pa.list_(pa.int32()),
        lambda key: [None if n % 7 == 6 else n for n in range(key, key + key % 4)],
        _INTEGERS,
        [pa.large_list(pa.int32())],
        iceberg=pa.list_(pa.int32()),
    ),
    "list of strings": Kind(
        pa.list_(pa.string()),
        lambda key: [_text(n) for n in range(key, key + key % 4)],
        _BYTES,
        [pa.list_(pa.large_string()), pa.large_list(pa.string()), pa.list_(pa.string_view())],
        iceberg=pa.list_(pa.string()),
    ),
    "struct": Kind(
        pa.struct([("word", pa.string())]),
        lambda key: {"word": None if key % 5 == 4 else _text(key)},
        _BYTES,
        iceberg=pa.struct([("word", pa.string())]),
    ),
}
BYTE_TYPES = [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()]
UNICODE = ("string",)
"""Kinds of texts."""
COLUMN = "text"

_KEYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "one": lambda rows: rows * 0 + 3,
    "few": lambda rows: rows * 7919 % 11,
    "distinct": lambda rows: rows,
    "few, then distinct": lambda rows: np.where(rows < len(rows) // 2, rows % 5, rows),
    "distinct, then few": lambda rows: np.where(rows < len(rows) // 2, rows, rows % 5),
}
_NULLS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda rows: rows < 0,
    "some": lambda rows: rows * 2_654_435_761 % 97 < 30,
    "the first half": lambda rows: rows < len(rows) // 2,
    "all but one": lambda rows: rows != len(rows) // 2,
    "all": lambda rows: rows >= 0,
}


@dataclass(frozen=True)
class Layout:
    """How one file holds its column."""

    kind: str
    n_rows: int
    keys: str
    nulls: str
    stored: pa.DataType
    required: bool
    options: dict[str, Any]
    """Of `pyarrow.parquet.write_table`."""

    def values(self) -> list[Any]:
        """The values as Python objects."""
        rows = np.arange(self.n_rows)
        keys, nulls = _KEYS[self.keys](rows).tolist(), _NULLS[self.nulls](rows).tolist()
        value = KINDS[self.kind].value
        return [None if null else value(key) for key, null in zip(keys, nulls, strict=True)]

    def array(self) -> pa.Array:
        """The values in the type that the writer has."""
        values = self.values()
        if not pa.types.is_dictionary(self.stored):
            return pa.array(values, self.stored)
        # The keys of a narrow index do not reach beyond 127: later values repeat earlier ones.
        distinct = list(dict.fromkeys(cell for cell in values if cell is not None))[:100]
        places = {cell: place for place, cell in enumerate(distinct)}
        indices = [None if cell is None else places.get(cell, 0) for cell in values]
        return pa.DictionaryArray.from_arrays(
            pa.array(indices, self.stored.index_type), pa.array(distinct, self.stored.value_type)
        )

    def write(self, path: Path, first_ordinal: int) -> pa.Array:
        """Write the file with ordinals from `first_ordinal` on; return the column as pyarrow reads it."""
        column = self.array()
        nullable = not (self.required and column.null_count == 0)
        schema = pa.schema(
            [
                pa.field("ordinal", pa.int64(), nullable=False),
                pa.field(COLUMN, column.type, nullable=nullable),
            ]
        )
        ordinals = pa.array(range(first_ordinal, first_ordinal + self.n_rows), pa.int64())
        pq.write_table(pa.table([ordinals, column], schema=schema), path, **self.options)
        read = as_read(path, KINDS[self.kind].type)
        assume(len(read) == self.n_rows)  # pyarrow loses the only list of a row group in tiny pages
        return read

    @property
    def iceberg(self) -> pa.DataType | None:
        """The type of an Iceberg column to which PyIceberg can add the file."""
        kind = KINDS[self.kind].iceberg
        in_96_bits = self.options["use_deprecated_int96_timestamps"] and pa.types.is_timestamp(
            KINDS[self.kind].type
        )
        return None if in_96_bits else kind

    @property
    def pages_alone(self) -> bool:
        """Whether the file says where the rows of each page begin."""
        nested = self.kind.startswith("list")
        return bool(
            not nested or self.options["data_page_version"] == "2.0" or self.options["write_page_index"]
        )


def as_read(path: Path, kind: pa.DataType) -> pa.Array:
    """The column as pyarrow reads it, in the type `kind` of its values."""
    column = pq.ParquetFile(path).read(columns=[COLUMN]).column(0)
    return in_type(column, kind)


def in_type(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """The same values as one array of type `kind`, by way of Python's objects."""
    values = [cell.bytes if isinstance(cell, uuid.UUID) else cell for cell in column.to_pylist()]
    return pa.array(values, kind)


def layouts(kind: str, *, indexed: bool) -> st.SearchStrategy[Layout]:
    """Files of a kind of values, with offset indexes if `indexed`, else with or without."""
    values = KINDS[kind]
    small = {
        "data_page_size": st.integers(1, 400),
        "write_batch_size": st.integers(1, 60),
        "row_group_size": st.integers(20, 400),
        "max_rows_per_page": st.integers(1, 60),
        "dictionary_pagesize_limit": st.integers(1, 400),
    }
    options = st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["none", "snappy", "gzip", "brotli", "zstd", "lz4"]),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "version": st.sampled_from(["2.6", "2.4", "1.0"]),
            "write_page_index": st.just(True) if indexed else st.booleans(),
            "write_page_checksum": st.booleans(),
            "write_statistics": st.booleans(),
            "store_schema": st.booleans(),
            "use_compliant_nested_type": st.just(True),
            "store_decimal_as_integer": st.booleans(),
            "use_deprecated_int96_timestamps": st.booleans(),
        },
        optional=small,
    )
    encoding = st.sampled_from(["dictionary", "dictionary", "dictionary", *values.encodings])
    return st.builds(
        _layout,
        kind=st.just(kind),
        n_rows=st.one_of(st.just(1), st.integers(1, 300), st.integers(200, 300)),
        keys=st.sampled_from(list(_KEYS)),
        nulls=st.sampled_from(list(_NULLS)),
        stored=st.sampled_from(values.arrays),
        required=st.booleans(),
        options=options,
        encoding=encoding,
    )


def _layout(*, kind: str, options: dict[str, Any], encoding: str, **others: Any) -> Layout:
    options = {**options, "use_dictionary": encoding == "dictionary"}
    if encoding != "dictionary":
        if pa.types.is_timestamp(KINDS[kind].type):
            options["use_deprecated_int96_timestamps"] = (
                False  # pyarrow writes these plain or by dictionary only
            )
        if encoding == "DELTA_BYTE_ARRAY":
            options["store_decimal_as_integer"] = False
        if pa.types.is_dictionary(others["stored"]):
            encoding = "PLAIN"  # pyarrow reads dictionary arrays from no other encoding
        options["column_encoding"] = {_leaf(kind): encoding, "ordinal": "PLAIN"}
    return Layout(kind=kind, options=options, **others)


def _leaf(kind: str) -> str:
    if kind.startswith("list"):
        return f"{COLUMN}.list.element"
    return f"{COLUMN}.word" if kind == "struct" else COLUMN
