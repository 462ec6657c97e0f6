"""A whole file is one document, or one rejected record with its reason and location."""

from __future__ import annotations

import encodings
import os
import pkgutil
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.lake.identity import content_hash, doc_id
from spark_udfs.ingest.file_types import kind_of
from spark_udfs.ingest.files import Input, declared_encoding, decode_python, name_of, opened, text_file
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.rows import BadRecord, Origin
from tests.ingest import inputs
from tests.ingest.inputs import source

ORIGIN = Origin("shelf", repository="books", revision="2", license="MIT", metadata={"keeper": "Ann"})


def read(folder: Path, name: str | bytes) -> dict[str, Any]:
    """The row of a file that is there."""
    [row] = text_file(source(folder, name, ORIGIN))
    return row


def read_content(name: str, content: bytes, origin: Origin = ORIGIN, **options: Any) -> dict[str, Any]:
    """The row of a file of this content."""
    [row] = inputs.read(text_file, name, content, origin=origin, **options)
    return row


def test_a_file_is_a_document_with_the_columns_of_its_origin(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.md").write_text("Grüße\r\n", newline="")
    assert read(tmp_path, "a/b.md") == {
        "doc_id": doc_id("shelf", "a/b.md"),
        "source": "shelf",
        "key": "a/b.md",
        "text": "Grüße\r\n",
        "content_hash": content_hash("Grüße\r\n"),
        "n_bytes": 9,
        "media_type": "text/markdown",
        "language": "markdown",
        "repository": "books",
        "path": "a/b.md",
        "revision": "2",
        "license": "MIT",
        "metadata": [("keeper", "Ann")],
    }


def test_the_row_of_a_bad_byte_has_its_offset() -> None:
    row = read_content("bad.txt", b"abc\xffdef")
    assert (row["reason"], row["location"], row["n_bytes"]) == ("not_utf8", "byte 3", 7)
    assert (row["doc_id"], row["sample"]) == (doc_id("shelf", "bad.txt"), b"abc\xffdef")


@pytest.mark.parametrize(
    "content, reason, location",
    [
        (b"", "empty", "byte 0"),
        (b"\xef\xbb\xbf", "empty", "byte 0"),
        (b"\xff", "not_utf8", "byte 0"),
        (b"# coding: uft-8\n", "unknown_encoding", "byte 0"),
        (b"# coding: rot13\n", "unknown_encoding", "byte 0"),
        (b"# coding: ascii\n'\xe9'", "wrong_encoding", "byte 17"),
        (b"a = 'b'\n\0", "nul_byte", "byte 8"),
        ("x".encode("utf-16-le"), "nul_byte", "byte 1"),
        (b"# coding: unicode_escape\n\\ud800", "unknown_encoding", "byte 0"),
        (b"# coding: punycode\n" + b"a" * 50 + b"-9", "unknown_encoding", "byte 0"),
        (b"x" * 101, "too_large", "byte 100"),
    ],
)
def test_other_content_is_rejected_with_its_reason(content: bytes, reason: str, location: str) -> None:
    row = read_content("m.py", content, Origin("shelf"), max_bytes=100)
    assert (row["reason"], row["location"], row["n_bytes"]) == (reason, location, len(content))
    assert row["sample"] == content


def test_a_file_of_exactly_the_limit_is_a_document() -> None:
    assert read_content("m.txt", b"x" * 100, max_bytes=100)["text"] == "x" * 100


def test_links_folders_and_pipes_are_rejected_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("x")
    (tmp_path / "link.txt").symlink_to("here.txt")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.txt")
    reasons = {
        "link.txt": "link",
        "loop": "link",
        "folder": "not_a_file",
        "pipe.txt": "not_a_file",
        "gone.txt": "vanished",
        "here.txt/below": "vanished",
    }
    assert {name: read(tmp_path, name)["reason"] for name in reasons} == reasons


def test_a_socket_and_a_device_are_not_opened(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s.txt"))
        assert read(tmp_path, "s.txt")["reason"] == "not_a_file"
    assert read(Path("/dev"), "null")["reason"] == "not_a_file"


def test_a_file_whose_reading_fails_is_rejected_with_the_cause() -> None:
    row = read(Path("/proc/self"), "mem")  # a regular file, and no byte of it can be read from its start
    assert (row["reason"], row["detail"]) == ("unreadable", "The file cannot be read: Input/output error.")


@pytest.mark.parametrize("name", ["mine.txt", "folder"])
def test_a_file_or_folder_without_permission_holds_bad_records(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.txt").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / name).chmod(0)
    root = os.geteuid() == 0  # whom no permission stops, so the test reads as somebody else
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        if root:
            os.seteuid(65534)
        row = read(Path(f"/proc/self/fd/{folder}"), name)
    finally:
        if root:
            os.seteuid(0)
        os.close(folder)
    assert (row["reason"], row["detail"]) == ("unreadable", "The file cannot be read: Permission denied.")


def test_an_empty_file_of_code_in_a_repository_is_a_document() -> None:
    package = read_content("__init__.py", b"")
    assert (package["text"], package["n_bytes"], package["content_hash"]) == ("", 0, content_hash(""))
    assert read_content("mod.rs", b"")["n_bytes"] == 0
    assert [read_content(name, b"")["reason"] for name in ("empty.md", "py.typed")] == ["empty", "empty"]


@given(st.binary(min_size=1, max_size=12) | st.text("\\xu0fd\udcff", min_size=1).map(os.fsencode))
def test_a_key_gives_back_the_name_whatever_its_bytes(name: bytes) -> None:
    key = Input(ORIGIN, LocalFiles(b"/"), name).key
    assert os.fsencode(name_of(key.encode().decode())) == name  # a key can be written as UTF-8


def test_no_two_names_share_a_key() -> None:
    names = [b"\xff.txt", rb"\xff.txt", rb"\\xff.txt", b"\\\xff.txt", "\u00ff.txt".encode(), b"a.txt"]
    assert len({Input(ORIGIN, LocalFiles(b"/"), name).key for name in names}) == len(names)
    assert Input(ORIGIN, LocalFiles(b"/"), "sub/é.txt".encode()).key == "sub/é.txt"


def test_a_name_with_a_backslash_is_a_path_like_any() -> None:
    row = read_content("a\\b.txt", b"x")
    assert (row["key"], row["path"]) == ("a\\\\b.txt", "a\\b.txt")


@pytest.mark.invariant("Rejected records contain no path of the machine.")
def test_no_rejection_names_the_folder_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / ("x" * 200)).symlink_to("gone")
    for name in ("gone.txt", "folder", "x" * 200, "y" * 300):  # the last is longer than a name may be
        row = read(tmp_path, name)
        assert str(tmp_path) not in f"{row['detail']} {row['location']} {row['key']}"
    assert read(tmp_path, "y" * 300)["reason"] == "unreadable"


def test_a_name_that_is_not_utf8_is_rejected_by_its_key() -> None:
    row = read_content(os.fsdecode(b"caf\xe9.txt"), b"x")
    assert (row["reason"], row["key"]) == ("name_not_utf8", r"caf\xe9.txt")


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("one")
    with pytest.raises(BadRecord) as bad, opened(source(tmp_path, "log.txt")) as file:  # noqa: PT012 - it raises on leaving
        file.read(1)
        (tmp_path / "log.txt").write_text("one and two")
    assert bad.value.reason == "changed_while_read"


@pytest.mark.parametrize(
    "content, encoding",
    [
        (b"# -*- coding: latin-1 -*-\n", "latin-1"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=KOI8-R :\n", "koi8-r"),
        (b"\n# coding: cp1252\n", "cp1252"),
        (b"\xef\xbb\xbf# coding: utf-8\n", "utf-8"),
        (b"x = 1\n# coding: latin-1\n", "utf-8"),
        (b"\n\n# coding: latin-1\n", "utf-8"),
        (b"#\r# coding: latin-1\r", "latin-1"),
        (b"", "utf-8"),
    ],
)
def test_a_python_file_declares_its_encoding_in_two_lines(content: bytes, encoding: str) -> None:
    assert declared_encoding(content) == encoding


def test_a_python_file_is_decoded_as_it_declares() -> None:
    assert decode_python(b"# coding: latin-1\n'\xe9'") == "# coding: latin-1\n'é'"
    assert decode_python(b"\xef\xbb\xbf# coding: utf-8\n'\xc3\xa9'") == "# coding: utf-8\n'é'"


@pytest.mark.invariant(
    "A bad record never ends a run; it becomes a row with location and reason, or is counted in one."
)
@given(st.binary(max_size=200))
def test_any_bytes_give_one_row_that_accounts_for_them(content: bytes) -> None:
    row = read_content("f.py", content)
    assert ("text" in row) != ("reason" in row)
    assert row["n_bytes"] == len(content if "reason" in row else row["text"].encode())


@pytest.mark.parametrize(
    "path, language, media_type",
    [
        ("a/b.py", "python", "text/x-python"),
        ("README.MD", "markdown", "text/markdown"),
        ("licenses/LICENSE", "text", "text/plain"),
        ("LICENSE-APACHE", "text", "text/plain"),
        ("LICENSE.BSD", "text", "text/plain"),
        (".md", "markdown", "text/markdown"),
        ("Makefile", None, "text/plain"),
        ("a.py/data.bin", None, "text/plain"),
    ],
)
def test_the_language_of_a_file_follows_from_its_name(
    path: str, language: str | None, media_type: str
) -> None:
    assert kind_of(path) == (language, media_type)


def test_every_text_encoding_of_python_is_read_and_no_other() -> None:
    others = {"idna", "mbcs", "oem", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"}
    others |= {"utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le", "utf_7", "utf_8_sig"}
    others |= {"aliases", "base64_codec", "bz2_codec", "charmap", "hex_codec", "quopri_codec", "rot_13"}
    others |= {"uu_codec", "zlib_codec"}
    for module in pkgutil.iter_modules(encodings.__path__):
        try:
            reason = "" if decode_python(f"# coding: {module.name}\n".encode()) else "empty"
        except BadRecord as bad:  # where the letters of the first line are not ASCII's
            reason = bad.reason
        assert (reason == "unknown_encoding") == (module.name in others - {"utf_8_sig"}), module.name
