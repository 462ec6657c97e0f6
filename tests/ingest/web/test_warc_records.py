"""Every record of an archive that is whole is read, whatever happened to the bytes around it."""

from __future__ import annotations

import gzip
import io
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zstandard
from fastwarc.warc import ArchiveIterator
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.web.warc_records import WarcRecord, record_at, records
from tests.ingest.web.archives import pages

N_PAGES = 6
MOST = 1 << 20


def read(content: bytes, max_bytes: int = MOST) -> list[WarcRecord]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        return list(records(file, max_bytes))


def in_frames(archive: bytes, dictionary: zstandard.ZstdCompressionDict | None = None) -> bytes:
    """A plain archive with each record in a frame of Zstandard of its own."""
    compressor = zstandard.ZstdCompressor(dict_data=dictionary, write_checksum=True)
    places = [record.offset for record in read(archive)] + [len(archive)]
    return b"".join(compressor.compress(archive[begin:end]) for begin, end in pairwise(places))


def skippable(content: bytes, first_byte: int = 0x5D) -> bytes:
    return bytes([first_byte]) + b"\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content


PLAIN = pages(N_PAGES, gzip=False)
ARCHIVES = {"gzip": pages(N_PAGES), "plain": PLAIN, "zstd": in_frames(PLAIN)}
WHOLE = {kind: read(content) for kind, content in ARCHIVES.items()}


def covered(content: bytes, found: list[WarcRecord]) -> bool:
    """Whether records and damaged ranges follow each other from the first byte to the padding of zeros."""
    ends = [record.offset + record.length for record in found]
    is_gapless = [record.offset for record in found] == [0, *ends][: len(found)]
    return is_gapless and not content[[0, *ends][-1] :].strip(b"\0")


@pytest.mark.parametrize("kind", ARCHIVES)
def test_records_are_those_of_fastwarc_with_their_places(kind: str) -> None:
    content = ARCHIVES[kind]
    if kind == "zstd":  # which fastwarc does not read
        assert [it.content for it in WHOLE[kind]] == [it.content for it in WHOLE["plain"]]
        assert covered(content, WHOLE[kind])
        return
    expected = [
        (record.stream_pos, record.record_id, record.reader.read())
        for record in ArchiveIterator(io.BytesIO(content), parse_http=False)
    ]
    found = [(it.offset, it.headers.get("warc-record-id").strip("<>"), it.content) for it in WHOLE[kind]]
    assert found == [(place, name.strip("<>"), body) for place, name, body in expected]
    assert covered(content, WHOLE[kind])


changes = st.one_of(
    st.tuples(st.just("cut"), st.integers(0, 10_000), st.integers(1, 3_000)),
    st.tuples(st.just("zeros"), st.integers(0, 10_000), st.integers(1, 3_000)),
    st.tuples(st.just("flip"), st.integers(0, 10_000), st.integers(0, 7)),
    st.tuples(st.just("insert"), st.integers(0, 10_000), st.binary(min_size=1, max_size=300)),
)


def changed(content: bytes, change: tuple[str, int, int | bytes]) -> tuple[bytes, int, int, int]:
    """The changed bytes, the range that is touched, and by how much what follows it moves."""
    how, place, extent = change
    begin = place % len(content)
    if isinstance(extent, bytes):
        return content[:begin] + extent + content[begin:], begin, begin, len(extent)
    if how == "flip":
        return (
            content[:begin] + bytes([content[begin] ^ 1 << extent]) + content[begin + 1 :],
            begin,
            begin + 1,
            0,
        )
    end = min(len(content), begin + extent)
    middle = b"" if how == "cut" else bytes(end - begin)
    return content[:begin] + middle + content[end:], begin, end, len(middle) - (end - begin)


@pytest.mark.invariant(
    "Every byte of a web archive is in a record or in one damaged range, and damage loses only the "
    "records that it touches."
)
@pytest.mark.parametrize("kind", ARCHIVES)
@given(change=changes)
def test_any_damage_loses_only_the_records_that_it_touches(
    kind: str, change: tuple[str, int, int | bytes]
) -> None:
    content, begin, end, moved = changed(ARCHIVES[kind], change)
    found = read(content)
    assert covered(content, found)
    whole = {(it.offset, it.content) for it in found if it.trouble is None}
    for record in WHOLE[kind]:
        if record.offset + record.length <= begin:
            assert (record.offset, record.content) in whole
        elif record.offset >= end and not (record.offset == begin == end):
            assert (record.offset + moved, record.content) in whole
    if kind != "plain":  # a trailer tells any change; a plain record has only the digest of its content
        contents = {record.content for record in WHOLE[kind]}
        assert all(content_of_record in contents for _, content_of_record in whole)


@pytest.mark.parametrize("kind", ARCHIVES)
@pytest.mark.parametrize("n_zeros", [1, 511, 200_000])
def test_zeros_behind_the_last_record_are_padding(kind: str, n_zeros: int) -> None:
    assert read(ARCHIVES[kind] + bytes(n_zeros)) == WHOLE[kind]


def test_zeros_in_place_of_a_part_of_the_last_record_are_damage() -> None:
    content = ARCHIVES["gzip"]
    found = read(content[:-200] + bytes(200))
    assert [record.trouble is None for record in found] == [True] * (N_PAGES - 1) + [False]
    assert covered(content, found)


def test_zeros_in_place_of_the_end_of_a_plain_record_are_damage() -> None:
    header = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 300\r\n\r\n"
    *whole, damaged = read(PLAIN + header + b"abc" * 50 + bytes(5_000))
    assert [record.content for record in whole] == [record.content for record in WHOLE["plain"]]
    assert damaged.trouble is not None
    (last,) = read(header + b"abc" * 50 + bytes(150))  # a content that ends in zeros, at the end of the file
    assert last.trouble is None


def test_a_lying_length_costs_its_own_record() -> None:
    member = gzip.compress(b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 99\r\n\r\nabc\r\n\r\n")
    between = WHOLE["gzip"][2].offset
    content = ARCHIVES["gzip"][:between] + member + ARCHIVES["gzip"][between:]
    found = read(content)
    [bad] = [record for record in found if record.trouble is not None]
    assert bad.offset == between
    assert bad.trouble is not None
    assert (bad.trouble.reason, len(found)) == ("wrong_length", N_PAGES + 1)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_file_that_is_compressed_as_a_whole_says_how_to_compress_it(compress: Any) -> None:
    [record] = read(compress(ARCHIVES["plain"]))
    assert record.trouble is not None
    assert record.trouble.reason == "not_by_record"
    assert "warcio recompress" in record.trouble.detail


@pytest.fixture(scope="module")
def dictionary() -> zstandard.ZstdCompressionDict:
    samples = [pages(1, gzip=False) + bytes([n]) * 40 for n in range(200)]
    return zstandard.train_dictionary(2048, samples)


def unsized(content: bytes) -> bytes:
    """A frame that does not tell the size of its content."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(content) + compressor.flush()


@pytest.mark.parametrize("compress", [bytes, zstandard.compress, unsized])
def test_an_archive_brings_the_dictionary_of_its_frames(
    dictionary: zstandard.ZstdCompressionDict, compress: Any
) -> None:
    beginning = skippable(compress(dictionary.as_bytes()))
    content = beginning + in_frames(PLAIN, dictionary) + skippable(b"an index", 0x50)
    records_read = read(content)
    assert [record.content for record in records_read] == [record.content for record in WHOLE["plain"]]
    assert records_read[0].offset == len(beginning)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        contents = [record_at(file, record.offset, record.length) for record in records_read]
    assert b"".join(contents) == PLAIN


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress])
def test_an_archive_of_many_small_records_is_read_to_its_end(compress: Any) -> None:
    record = b"WARC/1.0\r\nWARC-Type: request\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n"
    records_read = read(compress(record) * 20_000)
    assert (len(records_read), {record.trouble for record in records_read}) == (20_000, {None})


def test_a_frame_to_skip_is_damage_in_an_archive_of_gzip() -> None:
    member = gzip.compress(b"WARC/1.0\r\nContent-Length: 0\r\n\r\n\r\n\r\n")
    records_read = read(member + skippable(member, 0x50) + member)
    assert [record.trouble is None for record in records_read] == [True, False, True, True]


def test_a_damaged_dictionary_is_named(dictionary: zstandard.ZstdCompressionDict) -> None:
    content = skippable(b"\x37\xa4\x30\xec" + bytes(20)) + in_frames(PLAIN, dictionary)
    with pytest.raises(BadRecord) as refused:
        read(content)
    assert (refused.value.reason, refused.value.location) == ("corrupt", "byte 0")
    assert "The dictionary of the archive cannot be read" in refused.value.detail


def test_frames_without_their_dictionary_are_damaged(dictionary: zstandard.ZstdCompressionDict) -> None:
    assert {it.trouble.reason for it in read(in_frames(PLAIN, dictionary)) if it.trouble} == {"corrupt"}


def test_places_that_look_like_frames_are_probed_within_a_bound() -> None:
    content = in_frames(PLAIN) + b"\x28\xb5\x2f\xfd" * 100_000
    *whole, damaged = read(content)
    assert [record.content for record in whole] == [record.content for record in WHOLE["plain"]]
    assert damaged.trouble is not None
    assert covered(content, [*whole, damaged])


@pytest.mark.parametrize("n_bytes", [0, 5, 1 << 40])
def test_a_skippable_frame_without_an_end_is_damage(n_bytes: int) -> None:
    content = in_frames(PLAIN) + b"\x50\x2a\x4d\x18" + (n_bytes & 0xFFFFFFFF).to_bytes(4, "little")[:3]
    *whole, damaged = read(content)
    assert len(whole) == N_PAGES
    assert damaged.trouble is not None


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_an_arc_file_says_how_to_convert_it(compress) -> None:  # type: ignore[no-untyped-def]
    arc = b"filedesc://a.arc 0.0.0.0 20240301 text/plain 76\n1 0 Archive\nURL IP\n\n"
    [record] = read(compress(arc))
    assert record.trouble is not None
    assert (record.trouble.reason, record.length) == ("arc", len(compress(arc)))


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_record_beyond_the_limit_is_passed_over(kind: str) -> None:
    found = read(ARCHIVES[kind], max_bytes=100)
    assert [record.trouble.reason for record in found if record.trouble] == ["too_large"] * N_PAGES


def test_a_bomb_ends_the_file(tmp_path: Path) -> None:
    head = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 400000000\r\n\r\n"
    path = tmp_path / "a.warc.gz"
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(head)
        for _ in range(400):
            out.write(bytes(1_000_000))
    with path.open("rb") as file, pytest.raises(BadRecord) as error:
        list(records(file, MOST))
    assert error.value.reason == "bomb"


@pytest.mark.parametrize("content", [b"\x1f\x8b", b"\x1f\x8b\x08", b"WARC/1.0\r\n", b"garbage", b"\0" * 100])
def test_what_is_no_archive_is_one_damaged_range(content: bytes) -> None:
    [record] = read(content)
    assert record.trouble is not None
    assert (record.offset, record.length) == (0, len(content))


def test_a_length_beyond_the_limit_that_lies_costs_its_own_record() -> None:
    content = ARCHIVES["plain"]
    place = content.index(b"Content-Length: ", WHOLE["plain"][2].offset)
    end = content.index(b"\r\n", place)
    lying = content[:place] + b"Content-Length: 2000" + content[end:]
    whole = [record for record in read(lying, max_bytes=1_000) if record.trouble is None]
    assert len(whole) == N_PAGES - 1


def test_a_file_of_false_beginnings_is_left_in_time_that_its_size_bounds() -> None:
    header = b"WARC/1.0\r\nContent-Length: 8000000\r\nWARC-Block-Digest: sha1:" + b"A" * 32 + b"\r\n\r\n"
    found = read(header * 2_000 + bytes(8_000_000), max_bytes=1 << 25)
    assert found[-1].trouble is not None
    assert "the rest is not read" in found[-1].trouble.detail
    assert found[-1].offset + found[-1].length == 2_000 * len(header) + 8_000_000
