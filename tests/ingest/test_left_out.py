"""Files that a reader leaves out of a folder are counted by ending, and a run says them."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest
import zstandard

from factory.ingest.items import Tree, files_of
from factory.ingest.left_out import (
    count_endings,
    ending_of,
    endings_excluded,
    endings_left_out,
    endings_phrase,
    files_excluded,
    left_out_phrase,
)
from factory.ingest.listing import UNWANTED
from factory.ingest.readers import Ingests
from factory.orchestration.datasets.remedies import left_out_sentence, remedies
from factory.orchestration.table.declaration import Tables
from spark_udfs.ingest.archive import archive_file
from spark_udfs.ingest.files import NOTEBOOK_REMEDY, text_file
from spark_udfs.ingest.json_document import is_json_document
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.registry import RECORD_FILES
from spark_udfs.ingest.rows import Origin
from tests.ingest import inputs
from tests.ingest.inputs import zipped


@pytest.mark.parametrize(
    "name, ending",
    [
        (b"a.csv", ".csv"),
        (b"folder.d/A.CSV", ".csv"),
        (b"a.json.gz", ".json.gz"),
        (b"a.tar.bz2", ".tar.bz2"),
        (b"part.0001.gz", ".gz"),
        (b"a.gz", ".gz"),
        (b"Makefile", ""),
        (b".hidden", ""),
        (b"a sentence. With a point", ""),
        (b"x.\xff", ""),
        (b"x." + b"y" * 40, ""),
    ],
)
def test_the_ending_of_a_name_holds_what_is_compressed(name: bytes, ending: str) -> None:
    assert ending_of(name) == ending


def test_the_most_frequent_endings_are_named() -> None:
    counts = count_endings([f"{n}.e{n % 9}".encode() for n in range(60)] + [b"LICENSE"])
    assert sum(counts.values()) == 61
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    shown = endings_phrase(counts)
    assert shown.startswith("7 .e0, 7 .e1, 7 .e2, 7 .e3, 7 .e4, 7 .e5 and 19 of other endings")
    assert endings_phrase({"": 2}) == "2 without an ending"
    assert left_out_phrase({".csv": 1}) == "1 file left out: 1 .csv"
    assert left_out_phrase({}) == ""


def test_each_kind_of_file_has_a_remedy_and_media_have_none() -> None:
    by_sentence = remedies({".csv": 3, ".tsv.gz": 2, ".png": 9, ".ipynb": 1, ".md": 4, ".xyz": 1})
    assert list(by_sentence.values()) == [
        {".png": 9},
        {".csv": 3, ".tsv.gz": 2},
        {".md": 4},
        {".ipynb": 1},
        {".xyz": 1},
    ]
    nothing, tables, *_ = by_sentence
    assert (nothing, tables) == (
        "",
        "Convert tables to JSON lines or Parquet (docs/conversions.md of the repository).",
    )
    assert "`python -m zipfile -e BOOK.epub BOOK`" in left_out_sentence({".epub": 1}, "`web` leaves out")
    assert left_out_sentence({".odt": 1}, "`web` leaves out") == (
        "`web` leaves out 1 file: 1 .odt. "
        "Convert books and documents of word processors to Markdown or plain text."
    )
    assert "Read web archives with `format: warc`." in left_out_sentence({".warc.zst": 2}, "It skips")
    assert left_out_sentence({}, "`web` leaves out") == ""


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('{"text": "a text"}\n')


def test_marks_of_other_programs_and_the_card_of_a_dataset_are_no_data(tmp_path: Path) -> None:
    fill(
        tmp_path, "a.jsonl", "b/c.CSV", "_SUCCESS", ".cache/x.csv", "README.md", "b/README.md", "_posts/d.md"
    )
    (tmp_path / "link.csv").symlink_to(tmp_path / "b" / "c.CSV")
    assert endings_left_out([tmp_path, tmp_path], RECORD_FILES["jsonl"]) == {".csv": 1, ".md": 2}
    assert endings_left_out([tmp_path / "a.jsonl"], RECORD_FILES["jsonl"]) == {}


LISTS = {  # what is one JSON value, and not a record per line
    "pretty.json.gz": gzip.compress(json.dumps([{"text": "a"}, {"text": "b"}], indent=1).encode()),
    "object.json.xz": lzma.compress(json.dumps({"version": 1, "items": []}, indent=2).encode()),
    "by_hand.json.bz2": bz2.compress(b'\n{"version": 1,\n "items": []}\n'),
    "line.json.zst": zstandard.compress(b'[{"text": "a"}, {"text": "b"}]'),
    "long.JSON.GZ": gzip.compress(b"[" + b'{"text": "a"},' * 100_000),
    "mark.json.gz": gzip.compress(b"\xef\xbb\xbf[\n]"),
}
RECORDS = {
    "one.json.gz": gzip.compress(b'{"text": "a"}'),
    "two.json.zst": zstandard.compress(b'{"text": "a"}\n{"text": "b"}\n'),
    "odd.json.gz": gzip.compress(b'{"text": NaN}\n{"text": "b"}\n'),
    "cut.json.gz": gzip.compress(b'{"text": "a lost en\n{"text": "b"}\n'),
    "long.json.gz": gzip.compress(b'{"text": "' + b"a" * 200_000 + b'"}\n'),
    "empty.json.gz": gzip.compress(b""),
    "damaged.json.gz": b"no gzip",
    "list.jsonl.gz": LISTS["pretty.json.gz"],
    "list.json": b"[\n]",
}


@pytest.mark.parametrize("name", [*LISTS, *RECORDS])
def test_the_first_line_tells_a_json_document_from_records(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes((LISTS | RECORDS)[name])
    assert is_json_document(LocalFiles.at(tmp_path), name.encode()) == (name in LISTS)


def test_a_json_list_in_a_folder_of_records_is_left_out_and_counted(tmp_path: Path) -> None:
    fill(tmp_path, "a.jsonl", "b.json")
    for name in ("pretty.json.gz", "one.json.gz", "two.json.zst"):
        (tmp_path / name).write_bytes((LISTS | RECORDS)[name])
    work = [item.names for item in files_of("jsonl", tmp_path, Origin(""))]
    assert work == [(b"a.jsonl",), (b"one.json.gz",), (b"two.json.zst",)]
    left_out = endings_left_out([tmp_path], RECORD_FILES["jsonl"])
    assert left_out == {".json": 1, ".json.gz": 1}
    assert "a list becomes lines by `jq -c '.[]'`" in left_out_sentence(left_out, "`web` leaves out")
    [by_name] = files_of("jsonl", tmp_path / "pretty.json.gz", Origin(""))
    assert by_name.names == (b"pretty.json.gz",)


def test_files_that_the_user_excludes_are_not_counted(tmp_path: Path) -> None:
    fill(tmp_path, "a.html", "b.png", "tests/c.png")
    assert endings_left_out([tmp_path], ["**/*.html"], ["tests/**"]) == {".png": 1}


def test_files_that_only_exclude_keeps_from_a_reader_are_counted(tmp_path: Path) -> None:
    fill(tmp_path, "a.js", "node_modules/b/c.js", "node_modules/d.png", "e.min.js", ".git/f.js", "g/h.min.js")
    exclude = (*UNWANTED, "**/node_modules/**", "*.min.js")
    assert list(files_excluded(LocalFiles.at(tmp_path), ["**/*.js"], exclude)) == [
        ("*.min.js", b"e.min.js"),
        ("**/node_modules/**", b"node_modules/b/c.js"),
    ]
    trees = [Tree(LocalFiles.at(folder), Origin("")) for folder in (tmp_path, tmp_path / "g")]
    assert endings_excluded(trees, "**/*.js", exclude) == {".js": 3}


def test_a_notebook_is_a_rejected_record_with_what_to_do() -> None:
    notebook = b'{"cells": [], "nbformat": 4}'
    [row] = inputs.read(text_file, "Plain.ipynb", notebook)
    archive = zipped({"a/plain.IPYNB": notebook, "a.py": b"x = 1\n"})
    member, document = inputs.read(archive_file, "part.zip", archive)
    for rejection in (row, member):
        assert (rejection["reason"], rejection["detail"]) == ("notebook", NOTEBOOK_REMEDY)
    assert document["text"] == "x = 1\n"


@pytest.mark.invariant("A reader of records counts the files of a folder that it leaves out, by ending.")
@pytest.mark.spark
def test_records_of_every_compression_are_read_and_other_files_are_said(
    tmp_path: Path, ingests: Ingests
) -> None:
    line = b'{"text": "one line"}\n'
    files = {
        "a.jsonl": line,
        "b.ndjson": line,
        "c.json.gz": gzip.compress(line),
        "d.jsonl.xz": lzma.compress(line),
        "e.jsonl.bz2": bz2.compress(line),
        "f.json.zst": zstandard.compress(line),
        "g.json": line,
        "h.csv": line,
        "i.csv": line,
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    ingested = ingests.jsonl(tmp_path)
    assert ingested.documents.count() == 6
    assert ingested.rejected.count() == 0
    assert ingested.left_out == {".csv": 2, ".json": 1}
    tables = Tables.of(ingested)
    assert tables.note == "3 files left out: 2 .csv, 1 .json"
    assert tables.facts["files left out: .csv"] == 2
    assert Tables.of(ingests.jsonl(tmp_path, limit=1)).note == "the first record"
    chosen = ingests.files(tmp_path, include="*.csv", exclude="i.*")
    assert (chosen.documents.count(), dict(chosen.left_out)) == (1, {".csv": 1})
