"""The parts of a file have the rows of the whole, wherever its borders are."""

from __future__ import annotations

import io
import json
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from errno import EIO, ENOENT
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from factory.ingest.listing import Work, as_table
from factory.ingest.parts import FEW_PARTS, PART_BYTES, in_parts
from spark_udfs.ingest import bounds
from spark_udfs.ingest.markup import Markup
from spark_udfs.ingest.part_numbers import NUMBERED, OF_NUMBERS, whole_numbers
from spark_udfs.ingest.place import FilePart, FileState, LocalFiles
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.rows import SCAN, Origin
from spark_udfs.ingest.work import read_work
from tests.ingest.memory_files import MemoryFiles


@dataclass(frozen=True)
class BreakingFiles(LocalFiles):
    """A file of a disk that breaks once the file is open."""

    content: bytes
    fault: int

    def state(self, name: bytes) -> FileState:
        """Return the state of the file."""
        return MemoryFiles(self.address, {self.address + b"/" + name: self.content}).state(name)

    @contextmanager
    def open(self, name: bytes, part: FilePart | None = None) -> Iterator[BinaryIO]:  # noqa: ARG002
        """Open the file."""
        yield BreakingStream(self.content, self.fault)


class BreakingStream(io.BytesIO):
    """A stream with a readable end, as it is read before the footer, and a fault in any other read."""

    def __init__(self, content: bytes, fault: int) -> None:
        super().__init__(content)
        self.fault, self.n_reads = fault, 0

    def read(self, size: int | None = -1) -> bytes:
        """Read once, then raise OSError."""
        self.n_reads += 1
        if self.n_reads > 1:
            raise OSError(self.fault, "The disk broke")
        return super().read(size)


ORIGIN = Origin("web", language="en")
NAME = b"part.jsonl"
Rows = list[dict[str, Any]]


def work_of(content: bytes, name: bytes = NAME, format: str = "jsonl") -> Work:
    return Work(format, ORIGIN, MemoryFiles(b"memory:", {b"memory:/" + name: content}), (name,))


def scan(work: Iterable[Work], options: object, markup: Markup = "reject") -> Rows:
    """The rows of items, with the numbers of their file, as Spark joins them."""
    batches = list(read_work(as_table(work).to_batches(), options, markup=markup))
    rows = pa.Table.from_batches(batches, schema=SCAN).to_pylist()
    n_lines = {row["part_at"]: row["row"] for row in rows if row["doc_id"] is None}
    before = {begin: sum(n for other, n in n_lines.items() if other < begin) for begin in n_lines if n_lines}
    rows = [row for row in rows if row["doc_id"] is not None]
    columns = {name: [row[name] for row in rows] for name in OF_NUMBERS}
    columns["n_before"] = [before.get(row["part_at"]) for row in rows]
    arrays = pa.RecordBatch.from_pydict(
        columns, schema=pa.schema([*(SCAN.field(name) for name in OF_NUMBERS), ("n_before", pa.int64())])
    )
    [whole] = whole_numbers(iter([tuple(arrays.columns)]))
    assert whole.type == pa.struct(list(NUMBERED))
    return [{**row, **numbers, "part_at": None} for row, numbers in zip(rows, whole.to_pylist(), strict=True)]


def parts(work: Work, borders: Sequence[int]) -> Iterator[Work]:
    """The parts of a file between drawn places."""
    state = work.place.state(work.names[0])
    for begin, end in pairwise(
        sorted({0, state.n_bytes, *(border % (state.n_bytes + 1) for border in borders)})
    ):
        yield replace(work, part=FilePart(begin, end, state))


MARKUPS: tuple[Markup, ...] = ("reject", "keep")
LINES = st.sampled_from(
    [
        b'{"text": "one"}\n',
        '{"text": "ünï\u2028"}\r\n'.encode(),
        b'{"text": "own", "id": "a"}\n',
        b'{"text": "<html>page"}\n',
        b'{"text": "<body>page", "id": "b"}\n',
        b'{"text": "long %s"}\n' % (b"x" * 60),
        b'{"text": ""}\n',
        b"{broken\n",
        b"\n",
        b"\n\n\n",
        b" \t\r\n",
        b" " * 70 + b"\n",
        b'{"text": "without a line feed"}',
        b"   ",
    ]
)
FIELDS = Fields(max_bytes=64)


@pytest.mark.invariant("The parts of a file of JSON lines have the rows of the whole, for any borders.")
@given(
    st.lists(LINES, min_size=1, max_size=30).map(b"".join),
    st.lists(st.integers(0, 3_000), max_size=12),
    st.sampled_from([FIELDS, replace(FIELDS, key="id")]),
    st.sampled_from(MARKUPS),
)
def test_parts_of_json_lines_have_the_rows_of_the_whole(
    content: bytes, borders: list[int], fields: Fields, markup: Markup
) -> None:
    work = work_of(content)
    assert scan(parts(work, borders), fields, markup) == scan([work], fields, markup)


def test_web_pages_behind_the_first_part_have_the_numbers_of_the_file() -> None:
    work = work_of(b'{"text": "<html>page"}\n' * 4)
    rows = scan(parts(work, [30]), FIELDS)
    assert [(row["key"], row["reason"]) for row in rows] == [
        (f"part.jsonl:{number}", "markup") for number in range(1, 5)
    ]
    assert rows == scan([work], FIELDS)


@given(st.lists(LINES, min_size=1, max_size=8).map(b"".join))
def test_parts_of_one_byte_have_the_rows_of_the_whole(content: bytes) -> None:
    work = work_of(content)
    assert scan(parts(work, range(len(content))), FIELDS) == scan([work], FIELDS)


def test_a_file_has_equal_parts_of_at_most_the_given_size() -> None:
    work = work_of(b"x" * 1_000)
    states = {work.place.below(NAME): FileState(1_000, "v", 0, 0)}
    borders = [(part.part.begin, part.part.end) for part in in_parts([work], states, 800) if part.part]
    assert borders == [(0, 200), (200, 400), (400, 600), (600, 800), (800, 1_000)]
    sizes = [part.part.end - part.part.begin for part in in_parts([work], states, 30) if part.part]
    assert (len(sizes), max(sizes)) == (34, 30)
    assert len(list(in_parts([work], states, 40))) == FEW_PARTS
    archive = replace(work, names=(b"part.jsonl.gz",))
    states[work.place.below(archive.names[0])] = FileState(1_000, "v", 0, 0)
    assert list(in_parts([archive], states, 300)) == [archive]
    assert list(in_parts([work], {}, 300)) == [work]
    assert PART_BYTES > bounds.MAX_TEXT_BYTES  # most lines end in their part


def test_a_part_of_a_file_that_changed_is_one_rejected_record() -> None:
    work = work_of(b'{"text": "a"}\n' * 10)
    first, second, third = parts(work, [50, 100])
    assert second.part is not None
    other = replace(second, part=second.part._replace(state=FileState(140, "earlier", 0, 0)))
    rows = scan([first, other, third], FIELDS)
    [change] = [row for row in rows if row["reason"]]
    assert (change["reason"], change["key"], change["file"]) == (
        "changed_while_read",
        "part.jsonl@50",
        "part.jsonl",
    )
    assert len(rows) == 7


def test_rejected_records_share_a_row_by_part_with_numbers_of_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "MAX_OWN_ROWS", 1)
    monkeypatch.setattr(bounds, "MAX_REJECTED_ROWS", 5)
    lines = [b"{}\n", *[b"\n\n", b"?\n", b"\n\n", b"?\n"] * 3, *[b"?\n"] * 9, b'{"text": "last"}\n']
    work = work_of(b"".join(lines))
    rows = scan(parts(work, [1, len(b"".join(lines[:-2]))]), FIELDS)
    assert [(row["location"], row["reason"], row["n_records"]) for row in rows] == [
        ("line 1", "no_text", None),
        ("line 2", "empty", 2),
        ("line 4", "not_json", None),
        ("line 5", "empty", 4),
        ("line 7", "not_json", 2),
        ("line 11", "too_many_rejected", None),
        ("line 29", None, None),
    ]
    assert rows[3]["detail"] == (
        "4 records from line 5 to line 8 share this row. The first: The lines 5 to 6 are empty."
    )
    assert rows[4]["detail"].startswith("2 records from line 7 to line 10 share this row. The first: Char")
    assert rows[5]["key"] == "part.jsonl@1"


def test_a_line_of_json_that_names_lines_is_not_renumbered() -> None:
    line = json.dumps({"text": "a", "3 records from line 1 to line 2 share this row. The first: ": 1})
    with_repetition = f'{line[:-1]}, "The lines 1 to 2 are empty.": 1, "The lines 1 to 2 are empty.": 2}}\n'
    work = work_of(with_repetition.encode() * 3)
    assert scan(parts(work, [10, 200]), Fields()) == scan([work], Fields())


def parquet_of(texts: Sequence[str | None], rows_of_group: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": texts}), sink, row_group_size=rows_of_group, compression="none")
    return sink.getvalue().to_pybytes()


@pytest.mark.invariant("The parts of a Parquet file have the rows of the whole, for any borders.")
@given(
    st.lists(st.none() | st.text(max_size=20), max_size=40),
    st.integers(1, 9),
    st.lists(st.integers(0, 3_000), max_size=12),
    st.sampled_from(["parquet", "registered"]),
)
def test_parts_of_parquet_have_the_rows_of_the_whole(
    values: list[str | None], rows_of_group: int, borders: list[int], format: str
) -> None:
    texts = [text and text.replace("\0", "") for text in values]
    work = work_of(parquet_of(texts, rows_of_group), b"a.parquet", format)
    assert scan(parts(work, borders), Fields()) == scan([work], Fields())


@pytest.mark.parametrize("seed", range(40))
def test_parts_of_damaged_parquet_have_each_row_once(seed: int) -> None:
    draw = random.Random(seed)
    content = bytearray(parquet_of([f"text {n}" for n in range(60)], 7))
    begin = 4 if seed % 2 else len(content) - 600  # the rows, or the footer
    for _ in range(3):
        content[draw.randrange(begin, len(content) - 8)] = draw.randrange(256)
    work = work_of(bytes(content), b"a.parquet", "parquet")
    rows = scan(parts(work, [draw.randrange(len(content)) for _ in range(4)]), Fields())
    whole = scan([work], Fields())
    assert len({row["doc_id"] for row in rows}) == len(rows)
    assert {row["text"] for row in rows if row["text"]} == {row["text"] for row in whole if row["text"]}
    assert {row["reason"] for row in rows} == {row["reason"] for row in whole}


def test_a_file_that_is_no_parquet_is_one_rejected_record_however_many_parts() -> None:
    for content in (b"PAR1" + b"x" * 100, parquet_of(["a"] * 9, 2)[:-20], parquet_of([], 2)):
        work = work_of(content, b"a.parquet", "parquet")
        assert len(whole := scan([work], Fields())) == 1
        assert scan(parts(work, [10, 20, 30]), Fields()) == whole
    work = work_of(parquet_of(["a"] * 9, 2), b"a.parquet", "parquet")
    assert [row["reason"] for row in scan(parts(work, [10, 20]), Fields(text="body"))] == ["no_text"]


def test_the_bound_of_expansion_holds_for_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "FREE_BYTES", 0)
    work = work_of(parquet_of([f"{n} " * 20 for n in range(30)], 10), b"a.parquet", "parquet")
    assert not [row for row in scan(parts(work, [100, 200]), Fields()) if row["reason"]]
    monkeypatch.setattr(bounds, "MAX_EXPANSION", 0)
    assert {row["reason"] for row in scan(parts(work, [100, 200]), Fields())} == {"bomb"}


def frames_of(content: bytes, cuts: Sequence[int]) -> bytes:
    """A Zstandard file with a frame for each piece of the content, and skippable frames."""
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    places = sorted({0, len(content), *(cut % (len(content) + 1) for cut in cuts)})
    pieces = [zstandard.compress(content[begin:end]) for begin, end in pairwise(places)]
    return skippable.join(pieces) + skippable


@pytest.mark.invariant(
    "The parts of JSON lines in Zstandard have the rows of the whole, for any frames and borders."
)
@given(
    st.lists(LINES, min_size=1, max_size=30).map(b"".join),
    st.lists(st.integers(0, 3_000), max_size=12),
    st.lists(st.integers(0, 3_000), max_size=12),
    st.sampled_from([b"", b"\0" * 20, b"rest"]),
)
def test_parts_of_frames_have_the_rows_of_the_whole(
    content: bytes, cuts: list[int], borders: list[int], rest: bytes
) -> None:
    work = work_of(frames_of(content, cuts) + rest, b"part.jsonl.zst")
    whole, in_frames = scan([work], FIELDS), scan(parts(work, borders), FIELDS)
    faults = [row for row in in_frames if row["reason"] == "corrupt"]
    assert len(faults) == (rest == b"rest")
    assert [row for row in in_frames if row not in faults] == [
        row for row in whole if row["reason"] != "corrupt"
    ]


def test_the_lines_of_frames_behind_a_damaged_one_are_read() -> None:
    lines = [b'{"text": "%d"}\n' % n for n in range(40)]
    pieces = [zstandard.compress(b"".join(lines[n : n + 10])) for n in range(0, 40, 10)]
    pieces[1] = pieces[1][:9] + b"\xff" * 9 + pieces[1][18:]
    work = work_of(b"".join(pieces), b"part.jsonl.zst")
    rows = scan(parts(work, [len(pieces[0]), len(pieces[0] + pieces[1])]), FIELDS)
    texts = {row["text"] for row in rows if row["text"]}
    assert {str(n) for n in (*range(9), *range(21, 40))} <= texts
    assert {row["reason"] for row in rows} == {None, "corrupt"}
    assert len({row["doc_id"] for row in rows}) == len(rows)


def test_files_without_an_index_of_frames_are_split_on_this_machine_alone() -> None:
    work = work_of(b"x" * 1_000, b"part.jsonl.zst")
    local = replace(work, place=LocalFiles(b"/data"))
    states = {files.place.below(files.names[0]): FileState(1_000, "v", 0, 0) for files in (work, local)}
    assert list(in_parts([work], states, 300)) == [work]
    assert len(list(in_parts([local], states, 300))) == 14


@pytest.mark.parametrize("reason, fault", [("vanished", ENOENT), ("unreadable", EIO)])
def test_a_fault_of_reading_the_footer_is_recorded_by_each_part_that_has_it(reason: str, fault: int) -> None:
    content = parquet_of(["a", "b", "c", "d"], 1)
    first, *later = parts(work_of(content, b"a.parquet", "parquet"), [50, 100])
    last = [replace(files, place=BreakingFiles(b"memory:", content, fault)) for files in later]
    rows = scan([first, *last], Fields())
    assert [row["reason"] for row in rows if row["reason"]] == [reason] * len(later)


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_new_mode_or_name_of_a_file_since_it_was_listed_changes_no_row(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"a.{format}"
    texts = [f"text {n}" for n in range(9)]
    path.write_bytes(b'{"text": "a"}\n' * 9 if format == "jsonl" else parquet_of(texts, 2))
    work = Work(format, ORIGIN, LocalFiles.at(tmp_path), (os.fsencode(path.name),))
    work_of_parts = list(parts(work, [30, 60]))
    before = scan(work_of_parts, Fields())
    path.chmod(0o600)
    (tmp_path / "another").hardlink_to(path)
    assert scan(work_of_parts, Fields()) == before
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert {row["reason"] for row in scan(work_of_parts, Fields())} == {"changed_while_read"}
