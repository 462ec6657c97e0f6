"""The places of frames as files tell them: seekable files, and those of pzstd."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import accumulate, pairwise

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from factory.ingest.parts import in_parts
from spark_udfs.ingest import frame_index
from spark_udfs.ingest.frame_index import indexed_frames
from spark_udfs.ingest.place import FilePart
from spark_udfs.ingest.records import Fields
from tests.ingest.test_parts import LINES, Rows, scan, work_of

PIECES = [b"%d" % n * (50 * n) for n in range(1, 7)]
FORMS = ["seekable", "checked", "pzstd"]


def file_of(pieces: Sequence[bytes], form: str) -> bytes:
    """A file with a frame a piece: in seekable form, without or with checksums, or as pzstd writes it."""
    frames = [zstandard.compress(piece) for piece in pieces]
    if form == "pzstd":
        return b"".join(
            b"\x50\x2a\x4d\x18\4\0\0\0" + len(frame).to_bytes(4, "little") + frame for frame in frames
        )
    check = b"sums" if form == "checked" else b""
    pairs = zip(frames, pieces, strict=True)
    lengths = [(len(frame), len(piece)) for frame, piece in pairs]
    entries = b"".join(b"".join(n.to_bytes(4, "little") for n in both) + check for both in lengths)
    descriptor = b"\x80" if check else b"\0"
    footer = len(frames).to_bytes(4, "little") + descriptor + (0x8F92EAB1).to_bytes(4, "little")
    header = b"\x5e\x2a\x4d\x18" + (len(entries) + len(footer)).to_bytes(4, "little")
    return b"".join(frames) + header + entries + footer


@pytest.mark.parametrize("form", FORMS)
def test_frames_begin_where_the_index_says(form: str) -> None:
    lengths = [len(zstandard.compress(piece)) for piece in PIECES]
    before = 12 if form == "pzstd" else 0
    *begins, _ = accumulate((n + before for n in lengths), initial=before)
    assert indexed_frames(io.BytesIO(file_of(PIECES, form))) == begins


def test_a_file_without_an_index_and_one_with_a_wrong_index_have_no_known_frames() -> None:
    plain = b"".join(map(zstandard.compress, PIECES))
    seekable, lengths = file_of(PIECES, "seekable"), file_of(PIECES, "pzstd")
    for content in (
        *(b"x", plain, seekable[:-1], lengths[:-1]),
        *(plain + seekable, b"{}\n" + lengths, lengths + plain),
        seekable[:-9] + (1 << 31).to_bytes(4, "little") + seekable[-5:],
    ):
        assert indexed_frames(io.BytesIO(content)) is None


def test_an_empty_file_has_no_frames() -> None:
    assert indexed_frames(io.BytesIO(b"")) == []


def test_short_frames_are_not_walked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    content = file_of(PIECES, "pzstd")
    monkeypatch.setattr(frame_index, "_FEW", len(PIECES) - 2)
    assert indexed_frames(io.BytesIO(content)) is None
    assert indexed_frames(io.BytesIO(file_of(PIECES, "seekable"))) is not None


def parts_of(content: bytes, part_bytes: int) -> list[FilePart | None]:
    work = work_of(content, b"part.jsonl.zst")
    states = {work.place.below(b"part.jsonl.zst"): work.place.state(b"part.jsonl.zst")}
    return [files.part for files in in_parts([work], states, part_bytes)]


def rows_of(content: bytes, part_bytes: int) -> Rows:
    work = work_of(content, b"part.jsonl.zst")
    states = {work.place.below(b"part.jsonl.zst"): work.place.state(b"part.jsonl.zst")}
    return scan(in_parts([work], states, part_bytes), Fields())


@pytest.mark.invariant(
    "A Zstandard file in a store is read in parts by its index of frames, with the rows of the whole."
)
@given(
    st.lists(LINES, min_size=1, max_size=30).map(b"".join),
    st.lists(st.integers(0, 3_000), max_size=12),
    st.integers(20, 400),
    st.sampled_from(FORMS),
)
def test_parts_of_indexed_frames_have_the_rows_of_the_whole(
    content: bytes, cuts: list[int], part_bytes: int, form: str
) -> None:
    places = sorted({0, len(content), *(cut % (len(content) + 1) for cut in cuts)})
    pieces = [content[begin:end] for begin, end in pairwise(places)]
    file = file_of(pieces, form)
    assert rows_of(file, part_bytes) == scan([work_of(file, b"part.jsonl.zst")], Fields())


@pytest.mark.parametrize("form", FORMS)
def test_parts_begin_with_frames_and_have_all_bytes(form: str) -> None:
    content = file_of(PIECES, form)
    frames = indexed_frames(io.BytesIO(content))
    parts = parts_of(content, 30)
    assert len(parts) > 2
    assert frames is not None
    ranges = [(part.begin, part.end) for part in parts if part is not None]
    assert [begin for begin, _ in ranges[1:]] == [end for _, end in ranges[:-1]]
    assert (ranges[0][0], ranges[-1][1]) == (0, len(content))
    assert {begin for begin, _ in ranges[1:]} <= set(frames)


def test_a_file_of_one_frame_or_without_a_true_index_is_read_by_one_task() -> None:
    file = bytearray(file_of(PIECES, "seekable"))
    table = bytes(file).index(b"\x5e\x2a\x4d\x18") + 8
    for entry, shift in ((0, 3), (8, -3)):  # the border of two frames
        length = int.from_bytes(file[table + entry : table + entry + 4], "little") + shift
        file[table + entry : table + entry + 4] = length.to_bytes(4, "little")
    one_frame = zstandard.compress(b"".join(PIECES))
    without_index = b"".join(map(zstandard.compress, PIECES))
    for content in (one_frame, without_index, bytes(file), b"x" * 500):
        assert parts_of(content, 10) == [None]
