"""Long descriptions and pydoc's topics become documents of prose."""

from __future__ import annotations

from pathlib import Path
from pydoc_data import topics as pydoc_topics

import pytest

from spark_udfs.ingest import installation
from spark_udfs.ingest.installation import description_file, long_description, topics, topics_file
from spark_udfs.ingest.rows import BadRecord
from tests.ingest.inputs import read


@pytest.mark.parametrize(
    "metadata, text, language",
    [
        ("Name: x\nDescription-Content-Type: text/markdown; charset=UTF-8\n\n# Ü\n", "# Ü\n", "markdown"),
        ("Name: x\n\nTitle\n=====\n", "Title\n=====\n", "rst"),
        ("Name: x\nDescription-Content-Type: text/plain\n\nplain\n", "plain\n", "text"),
        ("Name: x\nDescription: First\n        2nd\n          3rd\nVersion: 1\n", "First\n2nd\n  3rd", "rst"),
    ],
)
def test_the_description_is_the_body_or_the_old_header(metadata: str, text: str, language: str) -> None:
    found, kind = long_description(metadata)
    assert (found, kind.language) == (text, language)


def test_metadata_without_a_description_is_rejected_as_empty() -> None:
    content = b"Name: x\nVersion: 1\n\n\n"
    [row] = read(description_file, "METADATA", content)
    assert (row["reason"], row["n_bytes"], row["sample"]) == ("empty", 21, content)


def test_each_topic_is_a_document_of_its_own() -> None:
    rows = read(topics_file, "topics.py", b"x = 1\ntopics = {'a': 'About a\\n', 'b': ''}\n")
    assert [(row["key"], row.get("text"), row.get("reason")) for row in rows] == [
        ("topics.py#a", "About a\n", None),
        ("topics.py#b", None, "empty"),
    ]


def test_the_topics_are_those_pydoc_has() -> None:
    assert topics(Path(pydoc_topics.__file__).read_text()) == pydoc_topics.topics


@pytest.mark.parametrize("content", ["", "topics = 1\n", "topics = {\n", "topics = f()\n", "x = {}\n"])
def test_a_module_without_topics_holds_bad_records(content: str) -> None:
    with pytest.raises(BadRecord):
        topics(content)
    [row] = read(topics_file, "topics.py", content.encode())
    assert (row["reason"], row["key"], row["n_bytes"]) == ("no_topics", "topics.py", len(content))


def test_a_description_is_text_whatever_its_headers_call_it() -> None:
    """As a message of parts it was parsed, part in part, until Python's limit."""
    part = "Content-Type: multipart/mixed; boundary=b\n\n--b\n"
    [row] = read(description_file, "METADATA", f"Name: x\n{part * 5_000}".encode())
    assert row["text"].startswith("--b\nContent-Type")


def test_input_beyond_the_bound_is_rejected_and_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "MAX_TEXT_BYTES", 30)
    monkeypatch.setattr(installation, "MAX_TOPICS_BYTES", 30)
    for name, reader in (("METADATA", description_file), ("topics.py", topics_file)):
        [row] = read(reader, name, b"topics = {'a': 'b'} # long enough")
        assert (row["reason"], row["location"]) == ("too_large", "byte 30")
    monkeypatch.undo()
    [row] = read(topics_file, "topics.py", b"topics = " + b"-" * 20_000 + b"1")
    assert row["reason"] == "no_topics"
