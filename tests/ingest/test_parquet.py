"""Each row of a Parquet file lands exactly once, and a file that breaks is recorded, not fatal."""

from __future__ import annotations

import os
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_udfs.ingest import bounds
from spark_udfs.ingest.parquet import parquet_file
from spark_udfs.ingest.parquet_schema import SAFE_BYTES
from spark_udfs.ingest.records import Fields
from tests.ingest.inputs import Rows, read, rejected, source, texts


def rows(content: bytes | pa.Table, fields: Fields | None = None) -> Rows:
    """The rows of a file of these bytes, or of this table."""
    file = packed(content) if isinstance(content, pa.Table) else content
    return read(parquet_file, "p.parquet", file, fields or Fields())


def packed(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def not_utf8(kind: pa.DataType) -> pa.Array:
    """Text with a byte that is not UTF-8 in its second value, as other writers produce it."""
    bytes_kind = pa.large_binary() if kind == pa.large_string() else pa.binary()
    return pa.array([b"good", b"ba\xffd"]).cast(bytes_kind).view(kind)


def test_null_and_empty_rows_are_rejected_by_number() -> None:
    found = rows(packed(pa.table({"text": ["one", None, "", "zwei"]}), row_group_size=2))
    assert [row["key"] for row in found] == [f"p.parquet:{number}" for number in range(4)]
    assert [row.get("text") for row in found] == ["one", None, None, "zwei"]
    bad = [(row["reason"], row["location"]) for row in found[1:3]]
    assert bad == [("no_text", "row 1"), ("empty", "row 2")]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_that_is_not_utf8_is_rejected_by_number(kind: pa.DataType) -> None:
    good, bad = rows(pa.table({"text": not_utf8(kind)}))
    assert good["text"] == "good"
    assert (bad["reason"], bad["location"]) == ("not_utf8", "row 1")
    assert (bad["sample"], bad["n_bytes"]) == (b"ba\xffd", 4)
    assert "Byte 2" in bad["detail"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", "y", "x"]).dictionary_encode(),
        pa.array([b"x", b"y", b"x"]),
        pa.array(["x", "y", "x"], pa.large_string()),
        pa.array(["x", "y", "x"], pa.string_view()),
    ],
)
def test_every_way_to_store_text_reads_the_same(column: pa.Array) -> None:
    assert texts(rows(pa.table({"text": column}))) == ["x", "y", "x"]


def test_columns_fill_columns_and_misfits_are_kept_as_metadata() -> None:
    table = pa.table(
        {
            "body": ["b", "c"],
            "id": [11, 12],
            "when": pa.array([datetime(2024, 1, 2), None], pa.timestamp("ms")),
            "repo": ["r", None],
            "stars": pa.array([1.5, 2.0]),
            "lists": pa.array([[1, 2], None]),
            "unread": ["-", "-"],
        }
    )
    fields = Fields(
        text="body",
        key="id",
        columns={"created_at": "when", "repository": "repo", "stars": "stars", "license": "absent"},
        metadata=("lists",),
    )
    first, second = rows(table, fields)
    assert (first["key"], first["repository"]) == ("11", "r")
    assert first["created_at"] == datetime(2024, 1, 2, tzinfo=UTC)
    assert dict(first["metadata"]) == {"lists": "[1, 2]", "stars": "1.5"}
    assert (second["key"], second["repository"], second["metadata"]) == ("12", None, None)
    assert second["stars"] == 2


def test_a_value_that_python_cannot_hold_rejects_its_row_alone() -> None:
    when = pa.array([0, 1 << 62], pa.int64()).view(pa.timestamp("us"))
    good, bad = rows(pa.table({"text": ["a", "b"], "when": when}), Fields(metadata=("when",)))
    assert good["text"] == "a"
    assert (bad["reason"], bad["location"]) == ("bad_value", "row 1")


@pytest.mark.parametrize(
    "table, reason",
    [
        (pa.table({"body": ["x"]}), "no_text"),
        (pa.table({"text": [1, 2]}), "text_not_a_string"),
        (pa.table({"text": [["x"]]}), "text_not_a_string"),
    ],
)
def test_a_file_without_a_text_column_is_one_rejected_record(table: pa.Table, reason: str) -> None:
    content = packed(table)
    [bad] = rows(content)
    assert (bad["reason"], bad["key"], bad["n_bytes"]) == (reason, "p.parquet", len(content))


def test_a_truncated_or_foreign_file_is_one_rejected_record() -> None:
    whole = packed(pa.table({"text": ["one"] * 100}))
    for content in (whole[:-10], whole[: len(whole) // 2], b"PAR1", b"", b"not parquet at all"):
        [bad] = rows(content)
        assert (bad["reason"], bad["key"], bad["n_bytes"]) == ("corrupt", "p.parquet", len(content))
        assert gettempdir() not in bad["detail"]


def test_a_broken_row_group_is_recorded_and_the_next_ones_are_read() -> None:
    written = [f"{n}: {os.urandom(20).hex()}" for n in range(30)]
    options = {"use_dictionary": False, "compression": "zstd", "write_page_checksum": True}
    content = bytearray(packed(pa.table({"text": written}), row_group_size=10, **options))
    group = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(1)
    content[group.column(0).data_page_offset + 300] ^= 0xFF
    found = rows(bytes(content))
    assert texts(found) == written[:10] + written[20:]
    [bad] = rejected(found)
    assert (bad["reason"], bad["location"], bad["key"]) == ("corrupt", "row 10", "p.parquet:10")
    assert bad["detail"].startswith("Rows 10 to 19: File p.parquet, column `text`, row group 1, page 0: ")


def test_a_file_without_a_row_is_recorded() -> None:
    [bad] = rows(pa.table({"text": pa.array([], pa.string())}))
    assert (bad["reason"], bad["key"], bad["location"]) == ("empty", "p.parquet", "row 0")


@pytest.mark.parametrize("seed", range(4))
def test_a_file_with_any_bytes_changed_gives_rows_and_no_error(seed: int) -> None:
    draw = random.Random(seed)
    written = [f"{n}: {draw.randbytes(10).hex()}" for n in range(90)]
    whole = packed(pa.table({"text": written, "id": range(90)}), row_group_size=30)
    for _ in range(50):
        content = bytearray(whole)
        for _ in range(draw.choice([1, 3, 20])):
            content[draw.randrange(len(content))] ^= draw.randrange(1, 256)
        found = rows(bytes(content), Fields(metadata=("id",)))
        assert found
        assert all(("reason" in row) != ("text" in row) for row in found)


def test_a_text_beyond_the_limit_holds_bad_records() -> None:
    short, long = rows(pa.table({"text": ["x" * 10, "x" * 11]}), Fields(max_bytes=10))
    assert short["n_bytes"] == 10
    assert (long["reason"], long["location"], long["n_bytes"]) == ("too_long", "row 1", 11)


@pytest.mark.invariant(
    "Every intact record before the damage in a file becomes a document, and one rejected record gives "
    "the location of the damage."
)
@pytest.mark.parametrize("damaged", [0, 1, 500, 1023, 1024, 1500, 2999])
def test_the_rows_before_a_damaged_page_stay(damaged: int) -> None:
    """Also those of its batch, which the reader drops with it."""
    written = [f"{n}: {os.urandom(20).hex()}" for n in range(3000)]
    options = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    options |= {"row_group_size": 2000, "data_page_size": 200, "write_batch_size": 1}
    options |= {"write_statistics": False}  # so that the text is in one place
    content = bytearray(packed(pa.table({"text": written}), **options))
    content[content.index(written[damaged].encode())] ^= 1
    found = rows(bytes(content))
    [bad] = rejected(found)
    first = int(bad["location"].removeprefix("row "))
    end = 2000 if damaged < 2000 else 3000
    assert damaged - 10 < first <= damaged  # the page begins there
    assert texts(found) == written[:first] + written[end:]
    assert bad["key"] == f"p.parquet:{first}"
    assert bad["detail"].startswith(f"Rows {first} to {end - 1}: ")
    assert [row["key"] for row in found if "text" in row][:first] == [f"p.parquet:{n}" for n in range(first)]


def test_a_long_text_of_a_dictionary_is_not_held_for_each_row(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["x" * (2 << 20)] * 40}), tmp_path / "p.parquet", compression="zstd")
    rows = parquet_file(source(tmp_path, "p.parquet"), Fields())
    assert max(pa.total_allocated_bytes() for _ in rows) < 48 << 20  # a batch of 1,024 rows would take 80 MB


def test_millions_of_rows_of_a_few_bytes_are_a_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "FREE_BYTES", 16_000)
    monkeypatch.setattr(bounds, "MAX_EXPANSION", 1)
    *good, bad = rows(pa.table({"text": pa.nulls(50_000, pa.string())}))
    assert (len(good), bad["reason"], bad["location"], bad["key"]) == (1000, "bomb", "row 1000", "p.parquet")


def test_a_row_group_that_expands_beyond_bounds_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "FREE_BYTES", 1 << 20)
    table = pa.table({"text": ["a", "b" * (3 << 20)], "other": ["c" * (3 << 20)] * 2})
    good, bad = rows(packed(table, row_group_size=1, compression="zstd", use_dictionary=False))
    assert (good["text"], bad["reason"], bad["location"]) == ("a", "bomb", "row 1")


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def element(name: bytes, children: int, *, leaf: bool = False) -> bytes:
    """An element of a schema in Thrift's compact protocol: type, repetition, name, number of children."""
    kind = b"\x15\x0c\x25\x02" if leaf else b"\x35\x02"
    return (
        kind + b"\x18" + varint(len(name)) + name + (b"" if leaf else b"\x15" + varint(children << 1)) + b"\0"
    )


def deep(levels: int, *, flat_before: bool = False) -> bytes:
    """A file without a row whose second column has so many levels."""

    def schema(head: bytes, elements: list[bytes]) -> bytes:
        return head + b"\xfc" + varint(len(elements)) + b"".join(elements)

    text = element(b"text", 0, leaf=True)
    columns = [element(b"s", 2), text, *[element(b"g", 1)] * levels, element(b"x", 0, leaf=True)]
    flat = schema(b"\x19", [element(b"s", 1), text, *[text] * 18]) if flat_before else b""
    # A field that stands twice is named by its number; a reader takes the last.
    footer = b"\x15\x02" + flat + schema(b"\x09\x04" if flat_before else b"\x19", columns)
    footer += b"\x16\0\x19\x0c\0"
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("levels", [1, 99, 101, 2_000, 30_000, 90_000, 120_000])
@pytest.mark.parametrize("flat_before", [False, True])
def test_deeply_nested_columns_are_one_rejected_record(levels: int, flat_before: bool) -> None:
    """Without a bound they end the reader's process."""
    [bad] = rows(deep(levels, flat_before=flat_before))
    assert bad["reason"] == ("empty" if levels < 100 else "too_complex"), bad["detail"]


def test_a_long_footer_is_read_through() -> None:
    """One of many columns, with everything that writers put there."""
    columns = {"text": ["a"], **{f"c{n}": [{"x": [n], "y": {"z": float(n)}}] for n in range(300)}}
    content = packed(pa.table(columns))
    assert int.from_bytes(content[-8:-4], "little") > 2 * SAFE_BYTES
    assert texts(rows(content)) == ["a"]


def test_dates_and_decimals_in_metadata_are_plain_so_that_predicates_compare_them() -> None:
    table = pa.table({"text": ["x"], "seen": [date(2024, 1, 2)], "price": [Decimal("1.50")], "tags": [["a"]]})
    [row] = rows(table, Fields(metadata=("seen", "price", "tags")))
    assert dict(row["metadata"]) == {"seen": "2024-01-02", "price": "1.50", "tags": '["a"]'}


def test_two_columns_of_a_declared_name_are_a_rejected_file_and_others_are_not() -> None:
    columns = [pa.array(["one"]), pa.array(["two"]), pa.array([1]), pa.array([2])]
    table = pa.Table.from_arrays(columns, ["text", "text", "id", "id"])
    [bad] = rows(table)
    assert (bad["reason"], bad["detail"]) == (
        "repeated_field",
        "The file has two columns `text`. Rename one.",
    )
    assert texts(rows(table.select([0, 2, 3]))) == ["one"]
    [bad] = rows(table.select([0, 2, 3]), Fields(metadata=("id",)))
    assert bad["detail"] == "The file has two columns `id`. Rename one."
