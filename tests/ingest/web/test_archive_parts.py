"""The parts of a web archive have the records of the whole, also where a record holds another archive."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from factory.ingest.listing import Work, as_table
from factory.ingest.parts import files_with_parts
from factory.ingest.parts import in_parts as split
from spark_udfs.ingest import bounds
from spark_udfs.ingest.html import WebPages
from spark_udfs.ingest.place import FilePart, FileState
from spark_udfs.ingest.reread import read_again
from spark_udfs.ingest.rows import SCAN, Origin
from spark_udfs.ingest.work import read_work
from tests.ingest.memory_files import MemoryFiles
from tests.ingest.web.archives import text_record

CODINGS = {
    ".warc": bytes,
    ".warc.gz": lambda record: gzip.compress(record, 6, mtime=0),
    ".wet.gz": lambda record: gzip.compress(record, 0, mtime=0),
    ".warc.zst": zstandard.compress,
}
Rows = list[dict[str, Any]]


INNER = [text_record(b"inner %d" % number, f"inner{number}") for number in range(3)]
CONTENTS = st.sampled_from(
    [
        b"short",
        b"long " * 60,
        b"",
        b"WARC/1.0\r\nno header",
        b"".join(INNER),  # an archive in a record
        b"text " + INNER[0] + b" text",
        INNER[1][:-20],
        b"".join(gzip.compress(inner, 0, mtime=0) for inner in INNER),
        b"\x1f\x8b\x08 no member",
        b"".join(zstandard.compress(inner) for inner in INNER),
    ]
)
BORDERS = st.lists(st.integers(0, 4_000), max_size=8)


def work_of(content: bytes, ending: str) -> Work:
    name = f"a{ending}".encode()
    return Work("warc", Origin("web"), MemoryFiles(b"memory:", {b"memory:/" + name: content}), (name,))


def scan(work: Sequence[Work]) -> Rows:
    batches = read_work(as_table(work).to_batches(), WebPages())
    return pa.Table.from_batches(batches, schema=SCAN).to_pylist()


def whole(work: Work) -> Rows:
    return [{**row, "part_at": None} for row in scan([work])]


def in_parts(work: Work, borders: Sequence[int]) -> tuple[Rows, int]:
    """The rows of a file in parts, as Spark puts them together, and how many parts were read again."""
    state = work.place.state(work.names[0])
    places = sorted({0, state.n_bytes, *(border % (state.n_bytes + 1) for border in borders)})
    return rows_of_parts([replace(work, part=FilePart(begin, end, state)) for begin, end in pairwise(places)])


def rows_of_parts(parts: Sequence[Work]) -> tuple[Rows, int]:
    rows = scan(parts)
    [file] = files_with_parts(parts).to_pylist()
    assert pickle.loads(file["parts"]) == [files.part for files in parts]
    borders_of_file = [row for row in rows if row["doc_id"] is None]
    schema = pa.schema(
        [("part_at", pa.int64()), ("row", pa.int64()), ("n_bytes", pa.int64())],
    )
    columns = [{name: row[name] for name in schema.names} for row in borders_of_file]
    table = files_with_parts(parts).append_column(
        "borders", pa.array([columns], pa.list_(pa.struct(list(schema))))
    )
    again = pa.Table.from_batches(read_again(table.to_batches(), WebPages()), schema=SCAN).to_pylist()
    parts_again = {row["part_at"] for row in again if row["doc_id"] is None}
    first_rows = [row for row in rows if row["doc_id"] and row["part_at"] not in parts_again]
    every_row = first_rows + [row for row in again if row["doc_id"]]
    every_row.sort(key=lambda row: int(row["location"].removeprefix("byte ")))
    return [{**row, "part_at": None} for row in every_row], len(parts_again)


@pytest.mark.invariant(
    "The parts of a web archive have the rows of the whole, for any borders, damage and archives in records."
)
@pytest.mark.parametrize("ending", CODINGS)
@given(st.lists(CONTENTS, min_size=1, max_size=12), BORDERS, st.lists(st.integers(0, 10_000), max_size=3))
def test_parts_of_an_archive_have_the_rows_of_the_whole(
    ending: str, contents: list[bytes], borders: list[int], damages: list[int]
) -> None:
    records = [CODINGS[ending](text_record(content, f"{number}")) for number, content in enumerate(contents)]
    content = bytearray(b"".join(records))
    for place in damages:
        content[place % len(content)] ^= 0x55
    work = work_of(bytes(content), ending)
    assert in_parts(work, borders)[0] == whole(work)


def test_a_part_that_began_inside_a_record_is_read_again_and_no_other() -> None:
    with_archive = text_record(b"".join(INNER) * 40, "nested")
    alone = text_record(b"text " * 200, "alone")
    work = work_of(alone + with_archive + alone, ".warc")
    borders = [len(alone) - 9, len(alone) + 500, len(alone) + 2_000, len(alone + with_archive) + 9]
    rows, n_parts = in_parts(work, borders)
    assert rows == whole(work)
    assert [row["key"] for row in rows] == ["urn:alone", "urn:nested", "urn:alone"]
    assert n_parts == 2  # both are inside the nested archive
    assert in_parts(work_of(alone * 9, ".warc"), [1_500, 3_000, 3_001])[1] == 0


def test_a_part_that_changed_is_one_rejected_record_and_the_next_one_is_read() -> None:
    work = work_of(text_record(b"text " * 50, "a") * 9, ".warc")
    state = work.place.state(work.names[0])
    size = state.n_bytes // 3
    parts = [replace(work, part=FilePart(n * size, (n + 1) * size, state)) for n in range(3)]
    assert parts[1].part is not None
    parts[1] = replace(work, part=parts[1].part._replace(state=FileState(1, "earlier", 0, 0)))
    rows, n_parts = rows_of_parts(parts)
    assert [(row["key"], row["reason"]) for row in rows if row["reason"]] == [
        (f"a.warc@{size}", "changed_while_read")
    ]
    assert (len(rows), n_parts) == (3 + 1 + 3, 0)


def n_parts_of(work: Work) -> int:
    large = {work.place.below(work.names[0]): work.place.state(work.names[0])}
    return len(list(split([work], large, 1_000)))


@pytest.mark.parametrize("ending", CODINGS)
def test_an_archive_has_parts_if_its_beginning_tells_how_to_read_it(ending: str) -> None:
    content = CODINGS[ending](text_record(b"text", "a")) * 30
    assert n_parts_of(work_of(content, ending)) > 1
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    assert n_parts_of(work_of(skippable + content, ending)) > 1
    for foreign in (b"\0" + content, b"x" * 9 + content, b""):
        assert n_parts_of(work_of(foreign, ending)) == 1


def test_archives_before_warc_and_files_that_are_gone_have_one_part() -> None:
    work = work_of(text_record(b"text", "a") * 30, ".arc")
    assert n_parts_of(work) == 1
    missing_file = replace(work, place=MemoryFiles(b"memory:", {}), names=(b"a.warc",))
    large = {missing_file.place.below(missing_file.names[0]): FileState(9_000, "v", 0, 0)}
    assert list(split([missing_file], large, 1_000)) == [missing_file]


@pytest.mark.parametrize("reason", ["corrupt", "name_not_utf8"])
def test_a_fault_of_the_whole_archive_is_one_rejected_record(reason: str) -> None:
    content = zstandard.compress(text_record(b"text " * 9, "a")) * 9
    if reason == "corrupt":
        content = b"\x5d\x2a\x4d\x18\x03\0\0\0abc" + content
    work = work_of(content, ".warc.zst")
    if reason == "name_not_utf8":
        work = Work(
            "warc", work.origin, MemoryFiles(b"memory:", {b"memory:/\xff.warc": content}), (b"\xff.warc",)
        )
    rows, n_again = in_parts(work, [100, 200])
    assert [row["reason"] for row in rows] == [reason]
    assert (rows, n_again) == (whole(work), 0)


def test_a_part_may_expand_as_far_as_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "FREE_BYTES", 0)
    monkeypatch.setattr(bounds, "MAX_EXPANSION", 5)
    dense = gzip.compress(text_record(b"word " * 2_000, "dense"), 9, mtime=0)
    loose = gzip.compress(text_record(b"word " * 2_000, "loose"), 0, mtime=0)
    work = work_of(loose + dense + loose, ".warc.gz")
    assert len(whole(work)) == 3
    assert not any(row["reason"] for row in whole(work))
    for border in (len(loose) - 9, len(loose) - 1, len(loose + dense)):
        assert in_parts(work, [border, len(loose) + 9])[0] == whole(work)
