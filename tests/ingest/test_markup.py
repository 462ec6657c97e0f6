"""Web pages among texts: told by their name or beginning, and rejected with a reason and a place."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.errors import ConfigurationError
from factory.ingest.listing import Work, as_table
from factory.ingest.readers import Ingests
from spark_udfs.ingest.markup import Markup, page_opening
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.registry import READERS
from spark_udfs.ingest.work import read_work
from tests.ingest.inputs import ORIGIN, tarred, zipped
from tests.ingest.outcomes import outcome

PAGE = "<!DOCTYPE html><html><body><p>A page.</p></body></html>"
OPENINGS = [
    "<!DOCTYPE html>",
    "<!doctype\n HTML PUBLIC '-//W3C'>",
    "<html lang=de>",
    "<HEAD>",
    "<body>",
    "<html/>",
]
OTHERS = ["<div align=center>", "<svg>", "<!DOCTYPE book>", "<htmlx>", "<header>", "# <html>", "html", ""]
BLANKS = st.lists(
    st.sampled_from(["\ufeff", " ", "\n\t", "<!-- <p> -->", "<!---->", '<?xml version="1.0"?>']), max_size=5
).map("".join)


@given(blanks=BLANKS, opening=st.sampled_from(OPENINGS), rest=st.text(max_size=9))
def test_a_page_is_told_behind_blanks_comments_and_a_prologue(blanks: str, opening: str, rest: str) -> None:
    assert page_opening(blanks + opening + rest) is not None


@given(blanks=BLANKS, opening=st.sampled_from(OTHERS))
def test_markdown_with_tags_and_other_xml_are_no_pages(blanks: str, opening: str) -> None:
    assert page_opening(f"{blanks}{opening} and <html> behind") is None


@pytest.mark.parametrize("piece", ["<!--", "<!-- -->", "<?xml ", " \n", "\ufeff "])
def test_an_opening_of_megabytes_is_read_once(piece: str) -> None:
    assert page_opening(piece * (1 << 20)) is None  # a second look from each place would take days


def scanned(
    folder: Path, format: str, name: str, markup: Markup, options: object = None
) -> list[dict[str, Any]]:
    work = as_table([Work(format, ORIGIN, LocalFiles.at(folder), (os.fsencode(name),))])
    return [
        row for batch in read_work(work.to_batches(), options, markup=markup) for row in batch.to_pylist()
    ]


def write(folder: Path, format: str) -> tuple[str, object]:
    """A file of two texts, one of which is a page, in a format; its name, and the options of its reader."""
    texts = {"a.txt": b"A text.", "b.txt": PAGE.encode()}
    if format == "text":
        (folder / "b.txt").write_text(PAGE)
        return "b.txt", None
    if format == "archive":
        (folder / "a.zip").write_bytes(zipped(texts))
        return "a.zip", None
    if format == "jsonl":
        lines = [json.dumps({"id": name, "text": text.decode()}) for name, text in texts.items()]
        (folder / "a.jsonl").write_text("\n".join(lines))
        return "a.jsonl", Fields(key="id")
    pq.write_table(
        pa.table({"id": list(texts), "text": [text.decode() for text in texts.values()]}),
        folder / "a.parquet",
    )
    return "a.parquet", Fields(key="id")


@pytest.mark.invariant("No reader lets web pages pass as prose unless the dataset keeps them.")
@pytest.mark.parametrize(
    "format, key, location",
    [
        ("text", "b.txt", "byte 0"),
        ("archive", "a.zip!/b.txt", "byte 0"),
        ("jsonl", "a.jsonl:2", "line 2"),
        ("parquet", "a.parquet:1", "row 1"),
        ("registered", "a.parquet:1", "row 1"),
    ],
)
def test_a_page_among_texts_is_one_rejected_record(
    tmp_path: Path, format: str, key: str, location: str
) -> None:
    name, options = write(tmp_path, format)
    kept = scanned(tmp_path, format, name, "keep", options)
    rows = scanned(tmp_path, format, name, "reject", options)
    [page] = [row for row in rows if row["reason"]]
    assert [row["text"] for row in rows if not row["reason"]] == [row["text"] for row in kept][:-1]
    assert (page["reason"], page["key"], page["location"]) == ("markup", key, location)
    assert page["sample"].decode() == PAGE
    reader = "`format: html`" if format == "text" else "A second dataset with `format: html` and `from`"
    fact = "The text is a web page: it begins with `<!DOCTYPE html`."
    assert page["detail"].startswith(f"{fact} {reader} reads the main text of pages")
    assert all(row["reason"] is None for row in kept)


def test_every_reader_of_plain_texts_rejects_pages() -> None:
    assert {format for format, reader in READERS.items() if reader.of_pages} == {"html", "warc"}


def test_a_member_is_a_page_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(
        tarred({"part.html": b"<p>No whole page", "a.md": b"<div>Markdown</div>"})
    )
    rows = scanned(tmp_path, "archive", "a.tar", "reject")
    assert {row["key"]: row["reason"] for row in rows} == {"a.tar!/part.html": "markup", "a.tar!/a.md": None}


def test_the_main_text_of_a_page_about_pages_is_no_page(tmp_path: Path) -> None:
    paragraph = "<p>This is how each page on this site begins, and the rest of it follows behind. </p>"
    (tmp_path / "a.html").write_text(
        f"<html><body><pre>&lt;!DOCTYPE html></pre>{paragraph * 20}</body></html>"
    )
    [row] = scanned(tmp_path, "html", "a.html", "reject", READERS["html"].options())  # type: ignore[misc]
    assert (row["reason"], row["text"][:15]) == (None, "<!DOCTYPE html>")


@pytest.mark.spark
def test_files_that_are_pages_by_name_are_refused_before_one_is_read(
    ingests: Ingests, tmp_path: Path
) -> None:
    (tmp_path / "a.HTML").write_bytes(b"\xff is no UTF-8")
    (tmp_path / "b.md").write_text("Text.")
    with pytest.raises(ConfigurationError, match=r"1 of 2 files is a web page \(`a\.HTML`\)"):
        ingests.files(tmp_path)
    assert len(outcome(ingests.files(tmp_path, exclude="**/*.HTML"))) == 1
    assert len(outcome(ingests.files(tmp_path, markup="keep"))) == 2
    assert len(outcome(ingests.files(tmp_path, repository="site"))) == 2  # code beside its pages
    (tmp_path / "repos" / "one").mkdir(parents=True)
    (tmp_path / "repos" / "one" / "a.html").write_text(PAGE)
    assert outcome(ingests.repositories(tmp_path / "repos")) == {"a.html": PAGE}


@pytest.mark.spark
def test_pages_in_registered_files_are_rejected_too(ingests: Ingests, tmp_path: Path) -> None:
    write(tmp_path, "parquet")
    assert outcome(ingests.parquet(tmp_path)) == {"a.parquet:0": "A text.", "a.parquet:1": "markup at row 1"}
    assert outcome(ingests.parquet(tmp_path, markup="keep"))["a.parquet:1"] == PAGE
