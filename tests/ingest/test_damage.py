"""Whole records before the damage of a file are documents, and one rejected row reports the damage."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import random
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator

import pytest
import zstandard
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spark_udfs.ingest import decoders
from spark_udfs.ingest.archive import archive_file
from spark_udfs.ingest.decoders import decoded
from spark_udfs.ingest.jsonl import jsonl_file
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.rows import BadRecord
from tests.ingest.inputs import Rows, read, rejected, tarred, texts


def rows(name: str, content: bytes) -> Rows:
    return read(jsonl_file, name, content, Fields()) if "jsonl" in name else read(archive_file, name, content)


def lines(seed: int, n: int) -> list[str]:
    """Texts of letters in many lengths, so that blocks of every kind are made."""
    rng = random.Random(seed)
    words = [rng.randbytes(rng.randrange(1, 6)).hex() for _ in range(40)]
    return [f"{number} " + " ".join(rng.choices(words, k=rng.randrange(1, 60))) for number in range(n)]


def jsonl(found: list[str]) -> bytes:
    return b"".join(json.dumps({"text": text}).encode() + b"\n" for text in found)


def zstd(data: bytes, *, level: int = 3, checksum: bool = True) -> bytes:
    """As a program writes it that flushes now and then: a block every 20 KB."""
    packed = zstandard.ZstdCompressor(level=level, write_checksum=checksum).compressobj()
    pieces = [packed.compress(data[at : at + 20_000]) + packed.flush(1) for at in range(0, len(data), 20_000)]
    return b"".join(pieces) + packed.flush()


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 6, mtime=0),
    "bz2": lambda data: bz2.compress(data, 1),
    "xz": lzma.compress,
    "zst": zstd,
}
NAMES = {"gz": "gzip", "bz2": "bz2", "xz": "xz", "zst": "zstd"}


def begins(extension: str, prefix: bytes) -> bytes:
    """What the libraries decode of the beginning of a stream, when nothing comes after it."""
    if extension == "gz":
        return zlib.decompressobj(31).decompress(prefix)
    if extension == "zst":
        return zstandard.ZstdDecompressor().decompressobj().decompress(prefix)
    decoder = bz2.BZ2Decompressor() if extension == "bz2" else lzma.LZMADecompressor()
    return decoder.decompress(prefix)


def stream(content: bytes, extension: str) -> Iterator[bytes]:
    """The pieces that a compressed file of this content is decoded to."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        yield from decoded(file, NAMES[extension])


def whole_lines(content: bytes) -> list[str]:
    return [json.loads(line)["text"] for line in content.split(b"\n")[:-1]]


DAMAGES = st.sampled_from(["cut", "zeros"])


@pytest.mark.invariant(
    "Every intact record before the damage in a file becomes a document, and one rejected record gives "
    "the location of the damage."
)
@settings(max_examples=60)
@given(st.sampled_from(["gz", "zst"]), st.integers(0, 5), st.floats(0, 1), DAMAGES)
def test_every_line_before_the_damage_stays(extension: str, seed: int, share: float, damage: str) -> None:
    packed = COMPRESSORS[extension](jsonl(lines(seed, 300)))
    at = 1 + int(share * (len(packed) - 2))
    kept = packed[:at].rstrip(b"\0") if damage == "zeros" else packed[:at]
    assume(not kept.endswith(b"\0"))  # whether a zero at the cut was the stream's own, nobody can tell
    tail = bytes(len(packed) - len(kept)) if damage == "zeros" else b""
    expected = whole_lines(begins(extension, kept))
    found = rows(f"a.jsonl.{extension}", kept + tail)
    if kept + tail == packed:  # the zeros were its own
        assert texts(found) == lines(seed, 300)
        return
    assert texts(found) == expected
    [bad] = rejected(found)
    assert (bad["reason"], bad["location"]) == ("corrupt", f"line {len(expected) + 1}")
    assert f"cut off at byte {len(kept)} of the file" in bad["detail"]


@settings(max_examples=60)
@given(st.sampled_from(["gz", "zst"]), st.integers(0, 5), st.floats(0, 1), st.integers(0, 99))
def test_every_line_before_a_foreign_tail_stays(extension: str, seed: int, share: float, tail: int) -> None:
    packed = COMPRESSORS[extension](jsonl(lines(seed, 300)))
    at = int(share * len(packed))
    sound = whole_lines(begins(extension, packed[:at]))
    foreign = random.Random(tail).randbytes(len(packed) - at)
    found = rows(f"a.jsonl.{extension}", packed[:at] + foreign)
    assert texts(found)[: len(sound)] == sound
    if foreign != packed[at:]:
        assert rejected(found)[-1]["reason"] == "corrupt"


@pytest.mark.parametrize("extension", ["gz", "zst"])
@pytest.mark.parametrize("last", [b"\n", b""])
@pytest.mark.parametrize(
    "tail, error",
    [
        (b"\0", None),
        (bytes(100_000), None),
        (b"garbage", "and other bytes follow"),
        (bytes(70_000) + b"x", "and other bytes follow"),
        ("again", None),
        ("half", "cut off"),
    ],
)
def test_a_tail_behind_a_stream_is_read_or_reported(
    extension: str, last: bytes, tail: bytes | str, error: str | None
) -> None:
    pack = COMPRESSORS[extension]
    whole = pack(jsonl(["a", "b"]) + b'{"text": "c"}' + last)
    behind = pack(b'\n{"text": "d"}\n' if not last else b'{"text": "d"}\n') + bytes(600)
    more = {"again": behind, "half": behind[:6]}
    found = rows(f"a.jsonl.{extension}", whole + (more[tail] if isinstance(tail, str) else tail))
    lost = tail == "half" and not last  # nobody can tell whether the line went on
    assert texts(found) == ["a", "b", "c", "d"][: 4 if tail == "again" else 2 if lost else 3]
    assert [error in row["detail"] for row in rejected(found) if error] == [True] * bool(error)
    assert len(rejected(found)) == bool(error)


def test_lines_before_a_padding_of_zeros_are_documents() -> None:
    written = [str(number) for number in range(10_000)]
    found = rows("a.jsonl.gz", gzip.compress(jsonl(written)) + bytes(4096))
    assert texts(found) == written
    assert not rejected(found)


@pytest.mark.parametrize("extension", COMPRESSORS)
def test_a_wrong_checksum_is_reported_behind_what_it_covers(extension: str) -> None:
    data = jsonl(lines(1, 50))
    packed = bytearray(COMPRESSORS[extension](data))
    packed[{"gz": -8, "bz2": -3, "xz": -30, "zst": -1}[extension]] ^= 0xFF
    pieces: list[bytes] = []
    with pytest.raises(BadRecord) as bad:
        pieces.extend(stream(packed, extension))
    assert b"".join(pieces) == data
    assert bad.value.reason == "corrupt"


@pytest.mark.parametrize("n_bytes", [1, 2, 4])
def test_a_checksum_that_ends_in_foreign_zeros_is_damage(n_bytes: int) -> None:
    packed = zstd(jsonl(["a", "b"]))
    assert 0 not in packed[-4:]
    found = rows("a.jsonl.zst", packed[:-n_bytes] + bytes(n_bytes))
    assert texts(found) == ["a", "b"]
    assert [row["reason"] for row in rejected(found)] == ["corrupt"]


@settings(max_examples=40)
@given(st.sampled_from([*COMPRESSORS]), st.integers(0, 3), st.floats(0, 1), st.sampled_from([1, 7, 1 << 16]))
def test_every_byte_before_the_damage_is_given(extension: str, seed: int, share: float, chunk: int) -> None:
    packed = COMPRESSORS[extension](jsonl(lines(seed, 100)))
    at = int(share * len(packed))
    broken = packed[:at] + bytes(byte ^ 0xA5 for byte in packed[at:])
    sound = begins(extension, packed[:at]) if at else b""
    pieces: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(BadRecord):
        patch.setattr(decoders, "CHUNK_BYTES", chunk)
        pieces.extend(stream(broken, extension))
        assert at == len(packed)
    assert b"".join(pieces).startswith(sound)


FORMATS = st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
MEMBERS = {
    f"{'long/' * (n % 5) * 30}é{n}.txt" if n % 5 < 4 else f"{n}.txt": f"text {n} ".encode() * (n * 40 + 1)
    for n in range(12)
}


@pytest.mark.invariant(
    "Every intact record before the damage in a file becomes a document, and one rejected record gives "
    "the location of the damage."
)
@settings(max_examples=60)
@given(FORMATS, st.sampled_from(["", ".gz", ".bz2", ".xz", ".zst"]), st.floats(0, 1), DAMAGES)
def test_every_member_before_the_damage_stays(format: int, suffix: str, share: float, damage: str) -> None:
    members = MEMBERS if format != tarfile.USTAR_FORMAT else {name[-200:]: it for name, it in MEMBERS.items()}
    members = {name.lstrip("/"): data for name, data in members.items() if len(name) < 255 or format}
    content = tarred(members, format=format)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        ends = [it.offset_data + it.size for it in archive if it.isfile()]
    packed = COMPRESSORS[suffix[1:]](content) if suffix else content
    at = 1 + int(share * (len(packed) - 2))
    kept = packed[:at].rstrip(b"\0") if damage == "zeros" and suffix else packed[:at]
    assume(not suffix or not kept.endswith(b"\0"))
    tail = bytes(len(packed) - len(kept)) if damage == "zeros" else b""
    sound = begins(suffix[1:], kept) if suffix else kept
    expected = [data.decode() for data, end in zip(members.values(), ends, strict=True) if end <= len(sound)]
    found = rows(f"a.tar{suffix}", kept + tail)
    assert texts(found) == expected
    if (suffix and kept + tail != packed) or (not suffix and len(kept + tail) < ends[-1] + 512):
        [bad] = rejected(found)
        assert bad["reason"] == "corrupt"
    else:  # zeros where the archive has its own, or instead of the last members
        assert len(rejected(found)) <= 1


@given(FORMATS, st.binary(max_size=30), st.integers(0, 3512))
def test_any_change_of_a_tar_gives_rows_and_no_error(format: int, change: bytes, at: int) -> None:
    content = tarred({"a.txt": b"x" * 600, "b/" * 60 + "b.txt": b"y", "c.txt": b"z"}, format=format)
    assert rows("a.tar", content[:at] + change + content[at + len(change) :])


def test_a_window_beyond_the_bound_is_a_bomb() -> None:
    frame = b"\x28\xb5\x2f\xfd" + bytes([0, (31 - 10) << 3]) + b"\x09\x00\x00a"
    [bad] = rejected(rows("a.jsonl.zst", frame))
    assert bad["reason"] == "bomb"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
    with pytest.raises(BadRecord) as refused:
        list(stream(lzma.compress(b"a", filters=filters), "xz"))
    assert refused.value.reason == "bomb"


def test_frames_of_other_content_are_skipped() -> None:
    other = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345"
    found = rows("a.jsonl.zst", other + zstd(jsonl(["a"])) + other + zstd(jsonl(["b"])))
    assert texts(found) == ["a", "b"]
    assert len(found) == 2


@pytest.mark.parametrize("extension", COMPRESSORS)
def test_thousands_of_tiny_streams_are_read_once(extension: str) -> None:
    content = COMPRESSORS[extension](b"a") * 3_000
    began = time.process_time()
    assert b"".join(stream(content, extension)) == b"a" * 3_000
    assert time.process_time() - began < 10
