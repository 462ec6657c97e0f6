"""Any column may stand beside the text: a file stays in place, or is rewritten with the reason."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.lake.files.location import location as file_location
from factory.lake.registration import Candidates
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.parquet import parquet_file
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.rows import Origin

TEXTS = ["one text", "another text"]
BEYOND = "a column has a number or a time beyond the range of its type in Iceberg"


def bounds_of(kind: pa.DataType) -> pa.Array:
    """The least and the greatest value of a type."""
    bits = kind.bit_width
    if pa.types.is_unsigned_integer(kind):
        return pa.array([0, 2**bits - 1], kind)
    if pa.types.is_time(kind):
        return pa.array([0, 86_399], pa.int32()).cast(pa.time32("s")).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array([f"{sign}{'9' * kind.precision}" for sign in ("-", "")]).cast(kind)
    if pa.types.is_floating(kind):
        return pa.array([float("-inf"), float("inf")]).cast(kind)
    far = 2**50 if kind in (pa.timestamp("s"), pa.date64()) else 2 ** (bits - 1) - 1  # Parquet has no seconds
    stored = pa.array([-far - 1, far], pa.int64()).cast(f"int{bits}")
    return stored if pa.types.is_integer(kind) else stored.cast(kind, safe=False)


UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
NUMBERS = [pa.float16(), pa.float32(), pa.float64(), *(pa.decimal128(digits, 0) for digits in (9, 18, 38))]
TIMES = [
    *(pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.duration("us")),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
]


@pytest.mark.parametrize("kind", [*UNSIGNED, *INTEGERS, *NUMBERS, *TIMES], ids=str)
@pytest.mark.parametrize("nested", [False, True])
def test_a_file_with_any_value_beside_its_text_is_read(
    tmp_path: Path, kind: pa.DataType, nested: bool
) -> None:
    column = bounds_of(kind)
    if nested:
        column = pa.StructArray.from_arrays([column], ["inside"])
    candidates = offered(tmp_path, pa.table({"text": TEXTS, "beside": column}))
    if candidates.files:
        assert (candidates.rows, candidates.refused) == (2, {})
    else:
        assert candidates.refused["a"] == BEYOND or candidates.refused["a"].startswith("Iceberg cannot take")
    assert texts(tmp_path) == TEXTS


@pytest.mark.parametrize("kind", [pa.uint32(), pa.uint64(), pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_a_value_that_iceberg_cannot_hold_is_the_reason(tmp_path: Path, kind: pa.DataType) -> None:
    candidates = offered(tmp_path, pa.table({"text": TEXTS, "beside": bounds_of(kind)}))
    assert candidates.refused == {"a": BEYOND}


def test_a_file_with_two_columns_of_one_name_is_rewritten(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(TEXTS), pa.array([1, 2]), pa.array([3, 4])], ["text", "n", "n"])
    assert offered(tmp_path, table).refused == {"a": "it has two columns `n`"}
    assert texts(tmp_path) == TEXTS


def offered(folder: Path, table: pa.Table) -> Candidates:
    pq.write_table(table, folder / "a.parquet")
    candidates = Candidates("text")
    candidates.offer(file_location(folder / "a.parquet"), "a")
    return candidates


def texts(folder: Path) -> list[str]:
    rows = parquet_file(Input(Origin("s"), LocalFiles.at(folder), b"a.parquet"), Fields())
    return [row["text"] if "reason" not in row else row["detail"] for row in rows]
