"""Long descriptions and pydoc's topics become documents of prose."""

from __future__ import annotations

import os
from pathlib import Path
from pydoc_data import topics as pydoc_topics

import pytest

from spark_udfs.ingest import installation
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.installation import description_file, long_description, topics, topics_file
from spark_udfs.ingest.rows import BadRecord, Origin

ORIGIN = Origin("x@1", repository="x")


def source(folder: Path, name: str, content: str) -> Input:
    (folder / name).write_text(content)
    return Input(ORIGIN, os.fsencode(folder), os.fsencode(name))


@pytest.mark.parametrize(
    "metadata, text, language",
    [
        (
            "Name: x\nDescription-Content-Type: text/markdown; charset=UTF-8\n\n# Grüße\n",
            "# Grüße\n",
            "markdown",
        ),
        ("Name: x\n\nTitle\n=====\n", "Title\n=====\n", "rst"),
        ("Name: x\nDescription-Content-Type: text/plain\n\nplain\n", "plain\n", "text"),
        (
            "Name: x\nDescription: First\n        second\n          third\nVersion: 1\n",
            "First\nsecond\n  third",
            "rst",
        ),
    ],
)
def test_the_description_is_the_body_or_the_old_header(metadata: str, text: str, language: str) -> None:
    found, kind = long_description(metadata)
    assert (found, kind.language) == (text, language)


def test_metadata_without_a_description_is_rejected_as_empty(tmp_path: Path) -> None:
    [row] = description_file(source(tmp_path, "METADATA", "Name: x\nVersion: 1\n\n\n"))
    assert (row["reason"], row["n_bytes"], row["sample"]) == ("empty", 21, b"Name: x\nVersion: 1\n\n\n")


def test_each_topic_is_a_document_of_its_own(tmp_path: Path) -> None:
    rows = list(topics_file(source(tmp_path, "topics.py", "x = 1\ntopics = {'a': 'About a\\n', 'b': ''}\n")))
    assert [(row["key"], row.get("text"), row.get("reason")) for row in rows] == [
        ("topics.py#a", "About a\n", None),
        ("topics.py#b", None, "empty"),
    ]


def test_the_topics_are_those_pydoc_has() -> None:
    assert topics(Path(pydoc_topics.__file__).read_text()) == pydoc_topics.topics


@pytest.mark.parametrize("content", ["", "topics = 1\n", "topics = {\n", "topics = f()\n", "x = {}\n"])
def test_a_module_without_topics_is_rejected(tmp_path: Path, content: str) -> None:
    with pytest.raises(BadRecord):
        topics(content)
    [row] = topics_file(source(tmp_path, "topics.py", content))
    assert (row["reason"], row["key"], row["n_bytes"]) == ("no_topics", "topics.py", len(content))


def test_a_description_is_text_whatever_its_headers_call_it(tmp_path: Path) -> None:
    """As a message of parts it was parsed, part in part, until Python's limit."""
    part = "Content-Type: multipart/mixed; boundary=b\n\n--b\n"
    [row] = description_file(source(tmp_path, "METADATA", "Name: x\n" + part * 5_000))
    assert row["text"].startswith("--b\nContent-Type")


def test_what_is_too_long_is_rejected_and_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "MAX_TEXT_BYTES", 30)
    monkeypatch.setattr(installation, "MAX_TOPICS_BYTES", 30)
    for name, read in (("METADATA", description_file), ("topics.py", topics_file)):
        [row] = read(source(tmp_path, name, "topics = {'a': 'b'} # long enough"))
        assert (row["reason"], row["location"]) == ("too_large", "byte 30")
    deep = "topics = " + "-" * 20_000 + "1"
    monkeypatch.undo()
    assert [row["reason"] for row in topics_file(source(tmp_path, "topics.py", deep))] == ["no_topics"]
