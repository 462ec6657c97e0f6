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
from pathlib import Path
from typing import Any

import pytest
import zstandard

from factory.lake.identity import doc_id
from spark_udfs.ingest import archive as archive_reader
from spark_udfs.ingest import bounds
from spark_udfs.ingest.archive import archive_file
from spark_udfs.ingest.files import Input, name_of
from spark_udfs.ingest.rows import Origin

ORIGIN = Origin("box", license="MIT")


def read(folder: Path, name: str, content: bytes, **options: Any) -> list[dict[str, Any]]:
    (folder / name).write_bytes(content)
    return list(archive_file(Input(ORIGIN, os.fsencode(folder), os.fsencode(name)), **options))


def outcome(rows: list[dict[str, Any]]) -> dict[str, str]:
    found = {row["key"]: row.get("text") or row["reason"] for row in rows}
    assert len(found) == len(rows)
    return found


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("folder")
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(members: dict[str, bytes], *odd: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in odd:
            archive.addfile(info)
    return buffer.getvalue()


def of_type(name: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "a.py"
    return info


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


@pytest.mark.parametrize("name, pack", [("p.zip", zipped), ("p.tar", tarred)])
def test_each_member_lands_once(tmp_path: Path, name: str, pack: Any) -> None:
    rows = read(tmp_path, name, pack(MEMBERS), max_bytes=100)
    assert outcome(rows) == {f"{name}!/{member}": result for member, result in OUTCOME.items()}
    assert (rows[0]["doc_id"], rows[0]["path"]) == (doc_id("box", f"{name}!/a.py"), "a.py")
    assert (rows[0]["license"], rows[0]["language"]) == ("MIT", "python")
    assert [row["n_bytes"] for row in rows if row.get("reason") == "too_large"] == [101]


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
def test_a_compressed_tar_reads_as_a_plain_one_and_its_cut_end_is_recorded(
    tmp_path: Path, extension: str, compress: Any
) -> None:
    members = {f"{n}.txt": os.urandom(4000).hex().encode() for n in range(4)}
    packed = compress(tarred(members))
    whole = outcome(read(tmp_path, f"p.{extension}", packed))
    assert whole == {f"p.{extension}!/{name}": data.decode() for name, data in members.items()}
    *good, bad = read(tmp_path, f"p.{extension}", packed[: len(packed) * 3 // 4])
    assert (bad["key"], bad["reason"]) == (f"p.{extension}", "corrupt")
    assert outcome(good).items() <= whole.items()


def test_links_and_devices_in_a_tar_are_rejected(tmp_path: Path) -> None:
    odd = [
        of_type("soft", tarfile.SYMTYPE),
        of_type("hard", tarfile.LNKTYPE),
        of_type("pipe", tarfile.FIFOTYPE),
    ]
    assert outcome(read(tmp_path, "p.tar", tarred({"a.py": b"a"}, *odd))) == {
        "p.tar!/a.py": "a",
        "p.tar!/soft": "link",
        "p.tar!/hard": "link",
        "p.tar!/pipe": "not_a_file",
    }


def test_links_and_encrypted_members_of_a_zip_are_rejected(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "a.py")
        archive.writestr("secret.txt", "secret")
    content = bytearray(buffer.getvalue())
    content[content.rindex(b"PK\x01\x02") + 8] |= 1  # the flag of an encrypted member
    assert outcome(read(tmp_path, "p.zip", bytes(content))) == {
        "p.zip!/link": "link",
        "p.zip!/secret.txt": "encrypted",
    }


@pytest.mark.parametrize("name, pack", [("p.zip", zipped), ("p.tar", tarred)])
def test_archives_inside_an_archive_are_named_and_not_opened(tmp_path: Path, name: str, pack: Any) -> None:
    inner = {"in.zip": zipped({"a.txt": b"a"}), "in.tar.gz": gzip.compress(tarred({})), "in.7z": b"7z"}
    assert outcome(read(tmp_path, name, pack(inner))) == {f"{name}!/{it}": "nested" for it in inner}


@pytest.mark.parametrize("name, pack", [("p.zip", zipped), ("p.tar", tarred)])
def test_an_archive_without_a_file_is_recorded(tmp_path: Path, name: str, pack: Any) -> None:
    assert outcome(read(tmp_path, name, pack({}))) == {name: "empty"}


def test_names_of_a_tar_that_are_no_utf8_have_keys_of_their_own(tmp_path: Path) -> None:
    names = [b"caf\xe9.txt", b"caf\xe8.txt"]
    members = {os.fsdecode(name): b"x" for name in names}
    members["caf\\xe9.txt"] = b"its name holds a backslash"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    found = outcome(read(tmp_path, "p.tar", buffer.getvalue()))
    assert found == {
        r"p.tar!/caf\xe9.txt": "name_not_utf8",
        r"p.tar!/caf\xe8.txt": "name_not_utf8",
        r"p.tar!/caf\\xe9.txt": "its name holds a backslash",
    }
    assert os.fsencode(name_of(r"caf\xe9.txt")) == names[0]


def test_names_of_a_zip_are_utf8_with_its_flag_and_without(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("é1.txt", "a22.txt", "/root.txt"):
            archive.writestr(name, name)
    # As Info-ZIP writes them: bytes of the file system, no flag.
    content = bytearray(buffer.getvalue().replace(b"a22.txt", b"\xe922.txt"))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.index(signature)
        assert content[at + flags + 1] == 0x08  # the flag for UTF-8, of the only name that is not ASCII
        content[at + flags + 1] = 0
    assert outcome(read(tmp_path, "p.zip", bytes(content))) == {
        "p.zip!/é1.txt": "é1.txt",
        r"p.zip!/\xe922.txt": "name_not_utf8",
        "p.zip!//root.txt": "outside",
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
    found = outcome(read(tmp_path, "p.tar", packed.read_bytes()))
    assert found == {"p.tar!/a": "nul_byte", "p.tar!/b": "nul_byte", "p.tar!/c": "c"}


def test_a_zip_that_lists_more_members_than_can_be_held_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_reader, "MAX_ZIP_DIRECTORY_BYTES", 5_000)
    few, many = ({f"{n}.txt": b"x" for n in range(count)} for count in (50, 500))
    assert set(outcome(read(tmp_path, "p.zip", zipped(few))).values()) == {"x"}
    assert outcome(read(tmp_path, "p.zip", zipped(many))) == {"p.zip": "too_many_members"}


def test_no_end_record_of_a_zip_hides_the_size_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library takes the sizes of a record of 64 bits wherever there is one."""
    monkeypatch.setattr(archive_reader, "MAX_ZIP_DIRECTORY_BYTES", 5_000)
    content = zipped({f"{n}.txt": b"x" for n in range(500)})
    size, start = struct.unpack("<LL", content[-10:-2])
    long = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 500, 500, size, start)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, len(content) - 22, 1)
    short = content[-22:-10] + struct.pack("<LL", 46, start) + bytes(2)
    hidden = content[:-22] + long + locator + short
    assert outcome(read(tmp_path, "p.zip", hidden)) == {"p.zip": "too_many_members"}
    monkeypatch.undo()
    assert len(read(tmp_path, "p.zip", hidden)) == 500


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_second_member_of_a_name_does_not_take_its_id(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for text in ("one", "two", "three"):
            archive.writestr("a.txt", text)
    assert outcome(read(tmp_path, "p.zip", buffer.getvalue())) == {
        "p.zip!/a.txt": "one",
        "p.zip!/a.txt#2": "name_taken",
        "p.zip!/a.txt#3": "name_taken",
    }


def test_a_broken_member_of_a_zip_leaves_the_others(tmp_path: Path) -> None:
    content = bytearray(zipped({"a.txt": b"first " * 99, "b.txt": b"second"}))
    content[content.index(b"a.txt") + 8] ^= 0xFF
    assert outcome(read(tmp_path, "p.zip", bytes(content))) == {
        "p.zip!/a.txt": "corrupt",
        "p.zip!/b.txt": "second",
    }


@pytest.mark.parametrize("name, pack", [("p.zip", zipped), ("p.tar", tarred)])
def test_what_is_no_archive_is_one_rejected_record(tmp_path: Path, name: str, pack: Any) -> None:
    for content in (b"", b"no archive", pack({"a.txt": b"a" * 2000})[:40]):
        [bad] = read(tmp_path, name, content)
        assert (bad["key"], bad["reason"], bad["n_bytes"]) == (name, "corrupt", len(content))


def test_a_tar_cut_between_two_members_is_not_taken_for_whole(tmp_path: Path) -> None:
    content = tarred({"a.txt": b"a", "b.txt": b"b"})
    rows = read(tmp_path, "p.tar", content[: content.index(b"b.txt")])
    assert outcome(rows) == {"p.tar!/a.txt": "a", "p.tar": "corrupt"}


@pytest.mark.parametrize(
    "name, content",
    [
        ("p.zip", zipped({"a.txt": b"short", "b.txt": b"0" * 10_000})),
        ("p.tar.gz", gzip.compress(tarred({"a.txt": b"short", "b.txt": b"0" * 100_000}))),
    ],
    ids=["zip", "tar.gz"],  # the bytes hold the time, and two processes must name a test alike
)
def test_an_archive_that_expands_beyond_bounds_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.setattr(bounds, "FREE_BYTES", 5000)
    monkeypatch.setattr(bounds, "MAX_EXPANSION", 3)
    *_, bad = read(tmp_path, name, content)
    assert (bad["key"], bad["reason"]) == (name, "bomb")


def block(name: str, size: bytes, kind: bytes = b"0") -> bytes:
    """A header of a tar archive with the field of its size as it is given."""
    header = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    header[124:136], header[156:157] = size, kind
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


END = bytes(1024)


@pytest.mark.parametrize("size", [b"-0000000001\0", b"\xff" * 12, b"\xfe" + bytes(11), b"9" * 12])
def test_a_tar_member_of_a_size_that_is_none_ends_the_archive_there(tmp_path: Path, size: bytes) -> None:
    good = block("a.txt", b"%011o\0" % 1) + b"a".ljust(512, b"\0")
    rows = read(tmp_path, "p.tar", good + block("b.txt", size) + b"b" * 512 + END)
    assert outcome(rows) == {"p.tar!/a.txt": "a", "p.tar": "corrupt"}
    assert (rows[-1]["location"], "invalid size" in rows[-1]["detail"]) == ("byte 1024", True)


def test_a_size_of_an_extended_header_that_is_none_ends_the_archive(tmp_path: Path) -> None:
    for record in (b"11 size=-1\n", b"31 size=" + b"9" * 22 + b"\n", b"12 size=x99\n"):
        extended = block("x", b"%011o\0" % len(record), b"x") + record.ljust(512, b"\0")
        content = extended + block("a.txt", b"%011o\0" % 1) + b"a".ljust(512, b"\0") + END
        assert outcome(read(tmp_path, "p.tar", content)) == {"p.tar": "corrupt"}


def test_thousands_of_headers_before_a_member_are_no_depth(tmp_path: Path) -> None:
    record = b"14 path=b.txt\n"
    extended = block("x", b"%011o\0" % len(record), b"x") + record.ljust(512, b"\0")
    member = block("a.txt", b"%011o\0" % 1) + b"a".ljust(512, b"\0")
    assert outcome(read(tmp_path, "p.tar", extended * 3_000 + member + member + END)) == {
        "p.tar!/b.txt": "a",
        "p.tar!/a.txt": "a",
    }


@pytest.mark.parametrize("kind", [b"L", b"K", b"x", b"g"])
def test_a_header_beyond_the_bound_is_passed_over(tmp_path: Path, kind: bytes) -> None:
    """Also one that names three gigabytes, of which nothing is held."""
    size = (2 << 20) + 1
    long = block("././@LongLink", b"%011o\0" % size, kind) + b"x" * (size + -size % 512)
    member = block("a.txt", b"%011o\0" % 1) + b"a".ljust(512, b"\0")
    second = block("b.txt", b"%011o\0" % 1) + b"b".ljust(512, b"\0")
    assert outcome(read(tmp_path, "p.tar", long + member + second + END)) == {
        "p.tar!/a.txt": "too_large",
        "p.tar!/b.txt": "b",
    }
    vast = block("././@LongLink", b"%011o\0" % (3 << 30), kind) + bytes(4096)
    assert outcome(read(tmp_path, "p.tar", member + vast)) == {"p.tar!/a.txt": "a", "p.tar": "corrupt"}


@pytest.mark.parametrize("data", [b"9" * (1 << 19), b" " * (1 << 19), b"6 a=b\n" * 100_000, b"5 =\n" * 9])
def test_an_extended_header_is_read_once(tmp_path: Path, data: bytes) -> None:
    """The library's regular expression takes the square of its length: half a megabyte took minutes."""
    extended = block("x", b"%011o\0" % len(data), b"x") + data + bytes(-len(data) % 512)
    content = extended + block("a.txt", b"%011o\0" % 1) + b"a".ljust(512, b"\0") + END
    assert len(read(tmp_path, "p.tar", content)) == 1


def test_of_global_headers_only_what_is_read_is_held(tmp_path: Path) -> None:
    numbers = iter(range(10**6))
    content = b""
    for _ in range(4):
        data = b"".join(b"24 GNU.sparse.%07d=x\n" % next(numbers) for _ in range(10_000))
        content += block("x", b"%011o\0" % len(data), b"g") + data + bytes(-len(data) % 512)
    content += block("a.txt", b"%011o\0" % 1) + b"a".ljust(512, b"\0") + END
    tracemalloc.start()
    try:
        assert outcome(read(tmp_path, "p.tar", content)) == {"p.tar!/a.txt": "nul_byte"}
        assert tracemalloc.get_traced_memory()[1] < 3 << 20
    finally:
        tracemalloc.stop()


def test_archives_behind_each_other_are_one(tmp_path: Path) -> None:
    content = tarred({"a.txt": b"a"}) + tarred({"b.txt": b"b"})
    assert outcome(read(tmp_path, "p.tar", content)) == {"p.tar!/a.txt": "a", "p.tar!/b.txt": "b"}
    [_, bad] = read(tmp_path, "p.tar", tarred({"a.txt": b"a"}) + b"x" * 512)
    assert (bad["reason"], bad["location"]) == ("corrupt", "byte 10240")


def test_an_archive_of_more_members_than_are_told_apart_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_reader, "MAX_MEMBERS", 2)
    for name, pack in (("p.zip", zipped), ("p.tar", tarred)):
        found = outcome(read(tmp_path, name, pack({f"{n}.txt": b"x" for n in range(4)})))
        assert found == {f"{name}!/0.txt": "x", f"{name}!/1.txt": "x", name: "too_many_members"}


def test_any_change_of_a_zip_gives_rows_and_no_error(tmp_path: Path) -> None:
    rng = random.Random(7)
    buffer = io.BytesIO()
    kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(buffer, "w") as archive:
        for number, kind in enumerate(kinds):
            archive.writestr(f"{number}.txt", b"abc " * 40, kind)
    whole = buffer.getvalue()
    for _ in range(400):
        content = bytearray(whole)
        for _ in range(rng.randrange(1, 5)):
            content[rng.randrange(len(content))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        end = rng.choice([len(content), len(content), rng.randrange(len(content))])
        assert read(tmp_path, "p.zip", bytes(content[:end]))


@pytest.mark.parametrize(
    "kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_member_that_lies_about_its_size_is_decompressed_no_further(tmp_path: Path, kind: int) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind, compresslevel=9) as archive:
        archive.writestr("a.txt", b"a" * (32 << 20 if kind else 1000))
        archive.writestr("b.txt", b"b" * 1000)
    content = bytearray(buffer.getvalue())
    at = content.rindex(b"PK\1\2", 0, content.rindex(b"PK\1\2"))
    content[at + 24 : at + 28] = (10).to_bytes(4, "little")
    tracemalloc.start()
    try:
        found = outcome(read(tmp_path, "p.zip", bytes(content)))
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()
    assert found == {"p.zip!/a.txt": "corrupt", "p.zip!/b.txt": "b" * 1000}
