"""Each member of an archive is one document or one rejected record; a broken archive is recorded."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import struct
import subprocess
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from factory.lake.identity import doc_id
from spark_udfs.ingest import archive as archive_reader
from spark_udfs.ingest import bounds
from spark_udfs.ingest.archive import archive_file
from spark_udfs.ingest.files import name_of
from spark_udfs.ingest.rows import BadRecord, Origin
from spark_udfs.ingest.tar import tar_members
from tests.ingest.inputs import Rows, header, read, tarred, zipped

both_kinds = pytest.mark.parametrize("name, pack", [("p.zip", zipped), ("p.tar", tarred)])


def rows(name: str, content: bytes, **options: Any) -> Rows:
    return read(archive_file, name, content, origin=Origin("box", license="MIT"), **options)


def outcome(name: str, content: bytes, **options: Any) -> dict[str, str]:
    """The text or reason of each member by its name; `name` itself is the archive."""
    found = rows(name, content, **options)
    outcomes = {row["key"].removeprefix(f"{name}!/"): row.get("text") or row["reason"] for row in found}
    assert len(outcomes) == len(found)
    return outcomes


def zip_of(write: Callable[[zipfile.ZipFile], object], *arguments: Any, **options: Any) -> bytearray:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", *arguments, **options) as archive:
        write(archive)
    return bytearray(buffer.getvalue())


MEMBERS = {
    "a.py": b"x = 1\n",
    "sub/é.md": "# é\n".encode(),
    "latin.py": b"# coding: latin-1\n# \xe9\n",
    "empty.txt": b"",
    "bytes.txt": b"ab\xff",
    "long.txt": b"x" * 101,
    "../up.txt": b"up",
    "sub/../../up.txt": b"up",
}
OUTCOME = {
    "a.py": "x = 1\n",
    "sub/é.md": "# é\n",
    "latin.py": "# coding: latin-1\n# é\n",
    "empty.txt": "empty",
    "bytes.txt": "not_utf8",
    "long.txt": "too_large",
    "../up.txt": "outside",
    "sub/../../up.txt": "outside",
}


@both_kinds
def test_each_member_lands_once(name: str, pack: Any) -> None:
    found = rows(name, pack(MEMBERS), max_bytes=100)
    outcomes = {row["key"]: row.get("text") or row["reason"] for row in found}
    assert outcomes == {f"{name}!/{member}": result for member, result in OUTCOME.items()}
    assert len(found) == len(OUTCOME)
    assert (found[0]["doc_id"], found[0]["path"]) == (doc_id("box", f"{name}!/a.py"), "a.py")
    assert (found[0]["license"], found[0]["language"]) == ("MIT", "python")
    assert [row["n_bytes"] for row in found if row.get("reason") == "too_large"] == [101]


@pytest.mark.parametrize(
    "extension, compress",
    [
        ("tar.gz", gzip.compress),
        ("tgz", gzip.compress),
        ("tar.bz2", bz2.compress),
        ("tar.xz", lzma.compress),
        ("tar.zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_a_compressed_tar_reads_as_a_plain_one_up_to_a_cut(extension: str, compress: Any) -> None:
    members = {f"{n}.txt": os.urandom(4000).hex().encode() for n in range(4)}
    name, packed = f"p.{extension}", compress(tarred(members))
    whole = outcome(name, packed)
    assert whole == {member: data.decode() for member, data in members.items()}
    cut = outcome(name, packed[: len(packed) * 3 // 4])
    assert cut.pop(name) == "corrupt"
    assert cut.items() <= whole.items()


def test_links_and_devices_in_a_tar_are_rejected() -> None:
    kinds = {"soft": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "pipe": tarfile.FIFOTYPE}
    content = tarred({"a.py": b"a"}, *(header(name, kind) for name, kind in kinds.items()))
    assert outcome("p.tar", content) == {"a.py": "a", "soft": "link", "hard": "link", "pipe": "not_a_file"}


def test_links_and_encrypted_members_of_a_zip_are_rejected() -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    content = zip_of(lambda it: (it.writestr(link, "a.py"), it.writestr("secret.txt", "secret")))
    content[content.rindex(b"PK\x01\x02") + 8] |= 1  # the flag of an encrypted member
    assert outcome("p.zip", content) == {"link": "link", "secret.txt": "encrypted"}


@both_kinds
def test_archives_inside_an_archive_are_named_and_not_opened(name: str, pack: Any) -> None:
    inner = {"in.zip": zipped({"a.txt": b"a"}), "in.tar.gz": gzip.compress(tarred({})), "in.7z": b"7z"}
    assert outcome(name, pack(inner)) == dict.fromkeys(inner, "nested")


@both_kinds
def test_an_archive_without_a_file_is_recorded(name: str, pack: Any) -> None:
    assert outcome(name, pack({})) == {name: "empty"}


def test_names_of_a_tar_that_are_not_utf8_have_keys_of_their_own() -> None:
    names = [b"caf\xe9.txt", b"caf\xe8.txt"]
    members = {os.fsdecode(name): b"x" for name in names}
    members["caf\\xe9.txt"] = b"its name holds a backslash"
    assert outcome("p.tar", tarred(members, format=tarfile.GNU_FORMAT)) == {
        r"caf\xe9.txt": "name_not_utf8",
        r"caf\xe8.txt": "name_not_utf8",
        r"caf\\xe9.txt": "its name holds a backslash",
    }
    assert os.fsencode(name_of(r"caf\xe9.txt")) == names[0]


def test_names_of_a_zip_are_utf8_with_its_flag_and_without() -> None:
    # As Info-ZIP writes them: bytes of the file system, no flag.
    packed = zip_of(lambda it: [it.writestr(name, name) for name in ("é1.txt", "a22.txt", "/root.txt")])
    content = packed.replace(b"a22.txt", b"\xe922.txt")
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.index(signature)
        assert content[at + flags + 1] == 0x08  # the flag for UTF-8, of the only name that is not ASCII
        content[at + flags + 1] = 0
    assert outcome("p.zip", content) == {
        "é1.txt": "é1.txt",
        r"\xe922.txt": "name_not_utf8",
        "/root.txt": "outside",
    }


@pytest.mark.parametrize("format", ["gnu", "posix"])
def test_the_holes_of_a_sparse_member_are_not_filled(tmp_path: Path, format: str) -> None:
    for name in ("a", "b"):
        with (tmp_path / name).open("wb") as file:
            for piece in range(40):  # more than the map in the header has room for
                file.seek(piece << 30)
                file.write(b"x")
    (tmp_path / "c").write_text("c")
    packed = tmp_path / "made.tar"
    command = ["tar", "--sparse", f"--format={format}", "-cf", packed, "a", "b", "c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert outcome("p.tar", packed.read_bytes()) == {"a": "nul_byte", "b": "nul_byte", "c": "c"}


def test_a_zip_that_lists_too_many_members_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_reader, "MAX_ZIP_DIRECTORY_BYTES", 5_000)
    few, many = ({f"{n}.txt": b"x" for n in range(count)} for count in (50, 500))
    assert outcome("p.zip", zipped(few)) == dict.fromkeys(few, "x")
    assert outcome("p.zip", zipped(many)) == {"p.zip": "too_many_members"}


def test_no_end_record_of_a_zip_hides_the_size_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library takes the sizes of a record of 64 bits wherever there is one."""
    monkeypatch.setattr(archive_reader, "MAX_ZIP_DIRECTORY_BYTES", 5_000)
    content = zipped({f"{n}.txt": b"x" for n in range(500)})
    size, start = struct.unpack("<LL", content[-10:-2])
    long = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 500, 500, size, start)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, len(content) - 22, 1)
    short = content[-22:-10] + struct.pack("<LL", 46, start) + bytes(2)
    hidden = content[:-22] + long + locator + short
    assert outcome("p.zip", hidden) == {"p.zip": "too_many_members"}
    monkeypatch.undo()
    assert len(rows("p.zip", hidden)) == 500


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_second_member_of_a_name_does_not_take_its_id() -> None:
    content = zip_of(lambda it: [it.writestr("a.txt", text) for text in ("one", "two", "three")])
    expected = {"a.txt": "one", "a.txt#2": "name_taken", "a.txt#3": "name_taken"}
    assert outcome("p.zip", content) == expected


def test_a_broken_member_of_a_zip_leaves_the_others() -> None:
    content = bytearray(zipped({"a.txt": b"first " * 99, "b.txt": b"second"}))
    content[content.index(b"a.txt") + 8] ^= 0xFF
    assert outcome("p.zip", content) == {"a.txt": "corrupt", "b.txt": "second"}


@both_kinds
def test_a_file_that_is_not_an_archive_is_one_rejected_record(name: str, pack: Any) -> None:
    for content in (b"", b"no archive", pack({"a.txt": b"a" * 2000})[:40]):
        [bad] = rows(name, content)
        assert (bad["key"], bad["reason"], bad["n_bytes"]) == (name, "corrupt", len(content))


def test_a_tar_cut_between_two_members_is_not_taken_for_whole() -> None:
    content = tarred({"a.txt": b"a", "b.txt": b"b"})
    assert outcome("p.tar", content[: content.index(b"b.txt")]) == {"a.txt": "a", "p.tar": "corrupt"}


@pytest.mark.parametrize(
    "name, content",
    [
        ("p.zip", zipped({"a.txt": b"short", "b.txt": b"0" * 10_000})),
        ("p.tar.gz", gzip.compress(tarred({"a.txt": b"short", "b.txt": b"0" * 100_000}))),
    ],
    ids=["zip", "tar.gz"],  # the bytes hold the time, and two processes must give a test the same name
)
def test_an_archive_that_expands_beyond_bounds_is_skipped(
    monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.setattr(bounds, "FREE_BYTES", 5000)
    monkeypatch.setattr(bounds, "MAX_EXPANSION", 3)
    *_, bad = rows(name, content)
    assert (bad["key"], bad["reason"]) == (name, "bomb")


def entry(name: str, data: bytes = b"a", kind: bytes = b"0", size: bytes | None = None) -> bytes:
    """An entry of a tar archive; its size field is right unless given."""
    head = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    head[124:136], head[156:157] = size or b"%011o\0" % len(data), kind
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + data + bytes(-len(data) % 512)


END = bytes(1024)


@pytest.mark.parametrize("size", [b"-0000000001\0", b"\xff" * 12, b"\xfe" + bytes(11), b"9" * 12])
def test_a_tar_member_of_an_invalid_size_ends_the_archive_there(size: bytes) -> None:
    found = rows("p.tar", entry("a.txt") + entry("b.txt", b"b" * 512, size=size) + END)
    assert [row["key"] for row in found] == ["p.tar!/a.txt", "p.tar"]
    assert (found[1]["reason"], found[1]["location"]) == ("corrupt", "byte 1024")
    assert "invalid size" in found[1]["detail"]


@pytest.mark.parametrize("record", [b"11 size=-1\n", b"31 size=" + b"9" * 22 + b"\n", b"12 size=x99\n"])
def test_an_invalid_size_in_an_extended_header_ends_the_archive(record: bytes) -> None:
    assert outcome("p.tar", entry("x", record, b"x") + entry("a.txt") + END) == {"p.tar": "corrupt"}


def test_thousands_of_headers_before_a_member_do_not_nest() -> None:
    extended = entry("x", b"14 path=b.txt\n", b"x") * 3_000
    assert outcome("p.tar", extended + entry("a.txt") * 2 + END) == {"b.txt": "a", "a.txt": "a"}


@pytest.mark.parametrize("kind", [b"L", b"K", b"x", b"g"])
def test_a_header_beyond_the_bound_ends_the_archive_and_is_not_read(kind: bytes) -> None:
    for n_bytes in ((1 << 20) + 1, 3 << 30):
        vast = entry("././@LongLink", bytes(4096), kind, b"%011o\0" % n_bytes)
        stream = io.BytesIO(entry("a.txt") + vast + entry("b.txt") + END)
        members = tar_members(stream.read, 1 << 20, ())
        assert next(members).name == "a.txt"
        with pytest.raises(BadRecord, match=f"has {n_bytes:,} bytes, the limit is 1,048,576") as refused:
            next(members)
        assert (refused.value.reason, refused.value.location) == ("too_large", "byte 1024")
        assert stream.tell() == 1536
        assert outcome("p.tar", stream.getvalue()) == {"a.txt": "a", "p.tar": "too_large"}


@pytest.mark.parametrize("data", [b"9" * (1 << 19), b" " * (1 << 19), b"6 a=b\n" * 100_000, b"5 =\n" * 9])
def test_an_extended_header_is_read_once(data: bytes) -> None:
    """The library's regular expression takes the square of its length: half a megabyte took minutes."""
    assert len(rows("p.tar", entry("x", data, b"x") + entry("a.txt") + END)) == 1


def test_of_global_headers_only_what_is_read_is_held() -> None:
    records = [b"24 GNU.sparse.%07d=x\n" % number for number in range(40_000)]
    pieces = (b"".join(records[at : at + 10_000]) for at in range(0, 40_000, 10_000))
    content = b"".join(entry("x", piece, b"g") for piece in pieces) + entry("a.txt") + END
    found, peak = traced(content)
    assert found == {"a.txt": "nul_byte"}
    assert peak < 3 << 20


def traced(content: bytes, name: str = "p.tar") -> tuple[dict[str, str], int]:
    """The outcome of an archive, and the most bytes that Python held while it was read."""
    tracemalloc.start()
    try:
        return outcome(name, content), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_concatenated_archives_are_read_as_one() -> None:
    first = tarred({"a.txt": b"a"})
    assert outcome("p.tar", first + tarred({"b.txt": b"b"})) == {"a.txt": "a", "b.txt": "b"}
    [_, bad] = rows("p.tar", first + b"x" * 512)
    assert (bad["reason"], bad["location"]) == ("corrupt", "byte 10240")


@both_kinds
def test_members_beyond_the_bound_are_skipped(monkeypatch: pytest.MonkeyPatch, name: str, pack: Any) -> None:
    monkeypatch.setattr(archive_reader, "MAX_MEMBERS", 2)
    found = outcome(name, pack({f"{n}.txt": b"x" for n in range(4)}))
    assert found == {"0.txt": "x", "1.txt": "x", name: "too_many_members"}


METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


def test_any_change_of_a_zip_gives_rows_and_no_error() -> None:
    rng = random.Random(7)
    whole = zip_of(lambda it: [it.writestr(f"{method}.txt", b"abc " * 40, method) for method in METHODS])
    for _ in range(400):
        content = bytearray(whole)
        for _ in range(rng.randrange(1, 5)):
            content[rng.randrange(len(content))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        end = rng.choice([len(content), len(content), rng.randrange(len(content))])
        assert rows("p.zip", content[:end])


@pytest.mark.parametrize("method", METHODS)
def test_a_member_is_decompressed_no_further_than_its_size(method: int) -> None:
    members = {"a.txt": b"a" * (32 << 20 if method else 1000), "b.txt": b"b" * 1000}
    content = zip_of(lambda it: [it.writestr(*member) for member in members.items()], method, compresslevel=9)
    at = content.rindex(b"PK\1\2", 0, content.rindex(b"PK\1\2"))
    content[at + 24 : at + 28] = (10).to_bytes(4, "little")
    found, peak = traced(content, "p.zip")
    assert peak < 12 << 20
    assert found == {"a.txt": "corrupt", "b.txt": "b" * 1000}
