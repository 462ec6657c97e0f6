"""Each row of a Parquet file lands exactly once, and a file that breaks is recorded, not fatal."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_udfs.ingest import bounds
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.parquet import parquet_file
from spark_udfs.ingest.parquet_schema import SAFE_BYTES
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.rows import Origin

ORIGIN = Origin("web")


def read(path: Path, fields: Fields | None = None) -> list[dict[str, Any]]:
    source = Input(ORIGIN, os.fsencode(path.parent), os.fsencode(path.name))
    return list(parquet_file(source, fields or Fields()))


def written(folder: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, folder / "p.parquet", **options)
    return folder / "p.parquet"


def not_utf8(kind: pa.DataType) -> pa.Array:
    """Text with a byte that is not UTF-8 in its second value, as other writers produce it."""
    return (
        pa.array([b"good", b"ba\xffd"])
        .cast(pa.large_binary() if kind == pa.large_string() else pa.binary())
        .view(kind)
    )


def test_rows_are_documents_and_null_or_empty_ones_are_rejected_by_number(tmp_path: Path) -> None:
    path = written(tmp_path, pa.table({"text": ["one", None, "", "zwei"]}), row_group_size=2)
    rows = read(path)
    assert [row["key"] for row in rows] == ["p.parquet:0", "p.parquet:1", "p.parquet:2", "p.parquet:3"]
    assert [row.get("text") for row in rows] == ["one", None, None, "zwei"]
    assert [(row["reason"], row["location"]) for row in rows[1:3]] == [
        ("no_text", "row 1"),
        ("empty", "row 2"),
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_that_is_no_utf8_is_rejected_by_number(tmp_path: Path, kind: pa.DataType) -> None:
    good, bad = read(written(tmp_path, pa.table({"text": not_utf8(kind)})))
    assert good["text"] == "good"
    assert (bad["reason"], bad["location"], bad["sample"], bad["n_bytes"]) == (
        "not_utf8",
        "row 1",
        b"ba\xffd",
        4,
    )
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
def test_every_way_to_store_text_reads_the_same(tmp_path: Path, column: pa.Array) -> None:
    assert [row["text"] for row in read(written(tmp_path, pa.table({"text": column})))] == ["x", "y", "x"]


def test_columns_fill_columns_and_what_does_not_fit_is_kept_as_metadata(tmp_path: Path) -> None:
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
    first, second = read(written(tmp_path, table), fields)
    assert (first["key"], first["repository"]) == ("11", "r")
    assert first["created_at"] == datetime(2024, 1, 2, tzinfo=UTC)
    assert dict(first["metadata"]) == {"lists": "[1, 2]", "stars": "1.5"}
    assert (second["key"], second["repository"], second["metadata"]) == ("12", None, [("stars", "2.0")])


def test_a_value_that_python_cannot_hold_rejects_its_row_alone(tmp_path: Path) -> None:
    when = pa.array([0, 1 << 62], pa.int64()).view(pa.timestamp("us"))
    good, bad = read(
        written(tmp_path, pa.table({"text": ["a", "b"], "when": when})), Fields(metadata=("when",))
    )
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
def test_a_file_without_a_column_of_text_is_one_rejected_record(
    tmp_path: Path, table: pa.Table, reason: str
) -> None:
    path = written(tmp_path, table)
    [bad] = read(path)
    assert (bad["reason"], bad["key"], bad["n_bytes"]) == (reason, "p.parquet", path.stat().st_size)


def test_a_truncated_or_foreign_file_is_one_rejected_record(tmp_path: Path) -> None:
    path = written(tmp_path, pa.table({"text": ["one"] * 100}))
    whole = path.read_bytes()
    for content in (whole[:-10], whole[: len(whole) // 2], b"PAR1", b"", b"not parquet at all"):
        path.write_bytes(content)
        [bad] = read(path)
        assert (bad["reason"], bad["key"], bad["n_bytes"]) == ("corrupt", "p.parquet", len(content))
        assert str(tmp_path) not in bad["detail"]


def test_a_row_group_that_breaks_is_recorded_and_the_next_ones_are_read(tmp_path: Path) -> None:
    texts = [f"{n}: {os.urandom(20).hex()}" for n in range(30)]
    path = written(
        tmp_path,
        pa.table({"text": texts}),
        row_group_size=10,
        use_dictionary=False,
        compression="zstd",
        write_page_checksum=True,
    )
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[start + 300] ^= 0xFF
    path.write_bytes(content)
    rows = read(path)
    assert [row["text"] for row in rows if "text" in row] == texts[:10] + texts[20:]
    [bad] = [row for row in rows if "reason" in row]
    assert (bad["reason"], bad["location"], bad["key"]) == ("corrupt", "row 10", "p.parquet:10")
    assert bad["detail"].startswith("Rows 10 to 19: File p.parquet, column `text`, row group 1, page 0: ")


def test_a_file_without_a_row_is_recorded(tmp_path: Path) -> None:
    [bad] = read(written(tmp_path, pa.table({"text": pa.array([], pa.string())})))
    assert (bad["reason"], bad["key"], bad["location"]) == ("empty", "p.parquet", "row 0")


@pytest.mark.parametrize("seed", range(4))
def test_a_file_with_any_bytes_changed_gives_rows_and_never_an_error(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    texts = [f"{n}: {draw.randbytes(10).hex()}" for n in range(90)]
    path = written(tmp_path, pa.table({"text": texts, "id": range(90)}), row_group_size=30)
    whole = path.read_bytes()
    for _ in range(50):
        content = bytearray(whole)
        for _ in range(draw.choice([1, 3, 20])):
            content[draw.randrange(len(content))] ^= draw.randrange(1, 256)
        path.write_bytes(content)
        rows = read(path, Fields(metadata=("id",)))
        assert rows
        assert all(("reason" in row) != ("text" in row) for row in rows)


def test_a_text_beyond_the_limit_is_rejected(tmp_path: Path) -> None:
    short, long = read(written(tmp_path, pa.table({"text": ["x" * 10, "x" * 11]})), Fields(max_bytes=10))
    assert short["n_bytes"] == 10
    assert (long["reason"], long["location"], long["n_bytes"]) == ("too_long", "row 1", 11)


@pytest.mark.parametrize("damaged", [0, 1, 500, 1023, 1024, 1500, 2999])
def test_the_rows_before_a_damaged_page_stay(tmp_path: Path, damaged: int) -> None:
    """Also those of its batch, which the reader drops with it."""
    texts = [f"{n}: {os.urandom(20).hex()}" for n in range(3000)]
    options = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    options |= {"row_group_size": 2000, "data_page_size": 200, "write_batch_size": 1}
    options |= {"write_statistics": False}  # no other place holds the text
    path = written(tmp_path, pa.table({"text": texts}), **options)
    content = bytearray(path.read_bytes())
    content[content.index(texts[damaged].encode())] ^= 1
    path.write_bytes(content)
    rows = read(path)
    [bad] = [row for row in rows if "reason" in row]
    kept = [row["text"] for row in rows if "text" in row]
    first = int(bad["location"].removeprefix("row "))
    end = 2000 if damaged < 2000 else 3000
    assert damaged - 10 < first <= damaged  # the page begins there
    assert kept == texts[:first] + texts[end:]
    assert (bad["key"], bad["detail"].startswith(f"Rows {first} to {end - 1}: ")) == (
        f"p.parquet:{first}",
        True,
    )
    assert [row["key"] for row in rows if "text" in row][:first] == [f"p.parquet:{n}" for n in range(first)]


def test_a_long_text_that_a_dictionary_repeats_is_not_held_for_each_row(tmp_path: Path) -> None:
    path = written(tmp_path, pa.table({"text": ["x" * (2 << 20)] * 40}), compression="zstd")
    held = max(
        pa.total_allocated_bytes()
        for _ in parquet_file(Input(ORIGIN, os.fsencode(path.parent), os.fsencode(path.name)), Fields())
    )
    assert held < 48 << 20  # a batch of 1,024 rows would take 80 MB


def test_millions_of_rows_of_a_few_bytes_are_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "FREE_BYTES", 16_000)
    monkeypatch.setattr(bounds, "MAX_EXPANSION", 1)
    *good, bad = read(written(tmp_path, pa.table({"text": pa.nulls(50_000, pa.string())})))
    assert (len(good), bad["reason"], bad["location"], bad["key"]) == (1000, "bomb", "row 1000", "p.parquet")


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
def test_columns_nested_until_the_reader_dies_are_one_rejected_record(
    tmp_path: Path, levels: int, flat_before: bool
) -> None:
    path = tmp_path / "p.parquet"
    path.write_bytes(deep(levels, flat_before=flat_before))
    [bad] = read(path)
    assert bad["reason"] == ("empty" if levels < 100 else "too_complex"), bad["detail"]


def test_a_long_footer_is_read_through(tmp_path: Path) -> None:
    """One of many columns, with everything that writers put there."""
    columns = {"text": ["a"], **{f"c{n}": [{"x": [n], "y": {"z": float(n)}}] for n in range(300)}}
    path = written(tmp_path, pa.table(columns))
    assert int.from_bytes(path.read_bytes()[-8:-4], "little") > 2 * SAFE_BYTES
    assert [row["text"] for row in read(path)] == ["a"]


def test_a_row_group_that_expands_beyond_bounds_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "FREE_BYTES", 1 << 20)
    table = pa.table({"text": ["a", "b" * (3 << 20)], "other": ["c" * (3 << 20)] * 2})
    path = written(tmp_path, table, row_group_size=1, compression="zstd", use_dictionary=False)
    good, bad = read(path)
    assert (good["text"], bad["reason"], bad["location"]) == ("a", "bomb", "row 1")
