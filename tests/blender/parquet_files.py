"""Parquet files of every type, as pyarrow writes them."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def every_type(n: int, *, nulls: bool = True, seed: int = 0) -> pa.Table:
    """`n` rows of every type a leaf column can have, and some nested ones."""
    random = np.random.default_rng(seed)
    integers = random.integers(-100, 100, n)
    words = [f"word {integer % 37} ö" for integer in integers.tolist()]
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(integer)) for integer in integers]
    times = [datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=int(integer)) for integer in integers]
    values: dict[str, tuple[list[Any], pa.DataType]] = {
        "boolean": ((integers % 2 == 0).tolist(), pa.bool_()),
        "int8": (integers.tolist(), pa.int8()),
        "uint16": ((integers + 100).tolist(), pa.uint16()),
        "int32": ((integers * 1000).tolist(), pa.int32()),
        "uint32": ((integers + 2**31).tolist(), pa.uint32()),
        "int64": ((integers * 2**40).tolist(), pa.int64()),
        "half": ((integers / 4).astype(np.float16).tolist(), pa.float16()),
        "float": ((integers / 3).tolist(), pa.float32()),
        "double": ((integers / 7).tolist(), pa.float64()),
        "binary": ([word.encode() for word in words], pa.binary()),
        "string": (words, pa.string()),
        "large_string": (words, pa.large_string()),
        "large_binary": ([word.encode() for word in words], pa.large_binary()),
        "fixed": ([int(integer).to_bytes(5, "big", signed=True) for integer in integers], pa.binary(5)),
        "decimal": ([decimal.Decimal(int(integer)).scaleb(-2) for integer in integers], pa.decimal128(9, 2)),
        "wide_decimal": (
            [decimal.Decimal(int(integer) * 10**20).scaleb(-2) for integer in integers],
            pa.decimal128(38, 2),
        ),
        "date": (days, pa.date32()),
        "time": ([time.time() for time in times], pa.time64("us")),
        "timestamp": (times, pa.timestamp("us")),
        "timestamp_utc": (
            [time.replace(tzinfo=datetime.UTC) for time in times],
            pa.timestamp("us", tz="UTC"),
        ),
        "list": ([list(range(abs(integer) % 5)) for integer in integers.tolist()], pa.list_(pa.int32())),
        "structs": (
            [
                [{"word": words[at], "n": at}] * (abs(integer) % 3)
                for at, integer in enumerate(integers.tolist())
            ],
            pa.list_(pa.struct([("word", pa.string()), ("n", pa.int64())])),
        ),
        "struct": ([{"x": integer} for integer in integers.tolist()], pa.struct([("x", pa.int32())])),
    }
    absent = random.random(n) < 0.2 if nulls else np.zeros(n, dtype=bool)
    columns = {
        name: pa.array([None if gone else cell for cell, gone in zip(column, absent, strict=True)], kind)
        for name, (column, kind) in values.items()
    }
    fields = [pa.field(name, column.type, nullable=nulls) for name, column in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


def leaves(path: Path) -> list[str]:
    """The paths of a file's leaf columns."""
    schema = pq.ParquetFile(path).schema
    return [schema.column(number).path for number in range(len(schema))]


def oracle(path: Path, leaf: str) -> pa.Array:
    """A leaf column as pyarrow reads it."""
    column = pq.ParquetFile(path).read(columns=[leaf]).column(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def rows_per_page(rows: int) -> dict[str, Any]:
    """Options of `write` for plain pages of so many rows, in one row group."""
    return {"use_dictionary": False, "data_page_size": 1, "write_batch_size": rows, "row_group_size": 1 << 20}


def write(path: Path, table: pa.Table, **options: Any) -> Path:
    """Write a file of several row groups and many pages; `options` as those of pyarrow."""
    chosen = {"row_group_size": 170, "data_page_size": 200, "write_batch_size": 13, "write_page_index": True}
    pq.write_table(table, path, **(chosen | options))
    return path
