"""Each member of an archive is one document or one rejected record; a broken archive is recorded."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from factory.lake.identity import doc_id
from spark_udfs import ingest_archive, ingest_compression
from spark_udfs.ingest_archive import archive_file
from spark_udfs.ingest_files import Input, name_of
from spark_udfs.ingest_rows import Origin

ORIGIN = Origin("box", licence="MIT")


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
    assert (rows[0]["licence"], rows[0]["language"]) == ("MIT", "python")
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


def test_a_sparse_member_counts_with_the_bytes_it_stands_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_compression, "FREE_BYTES", 100_000)
    monkeypatch.setattr(ingest_compression, "MAX_EXPANSION", 2)
    for name in ("a", "b", "c"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(60_000)
    packed = tmp_path / "made.tar"
    subprocess.run(["tar", "--sparse", "-cf", packed, "a", "b", "c"], cwd=tmp_path, check=True)
    found = outcome(read(tmp_path, "p.tar", packed.read_bytes()))
    assert found == {"p.tar!/a": "nul_byte", "p.tar": "bomb"}


def test_a_zip_that_lists_more_members_than_can_be_held_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_archive, "MAX_ZIP_DIRECTORY_BYTES", 5_000)
    few, many = ({f"{n}.txt": b"x" for n in range(count)} for count in (50, 500))
    assert set(outcome(read(tmp_path, "p.zip", zipped(few))).values()) == {"x"}
    assert outcome(read(tmp_path, "p.zip", zipped(many))) == {"p.zip": "too_many_members"}


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
    monkeypatch.setattr(ingest_compression, "FREE_BYTES", 5000)
    monkeypatch.setattr(ingest_compression, "MAX_EXPANSION", 3)
    *_, bad = read(tmp_path, name, content)
    assert (bad["key"], bad["reason"]) == (name, "bomb")
