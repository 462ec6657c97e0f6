"""`factory init` and `factory check` on folders as people have them: what is read, what is left, and why."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.cli.command import factory

SENTENCE = "The tide turns twice a day along this coast, and the boats follow it out. "


def write(folder: Path, **contents: str | bytes) -> None:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def init(folder: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the entries of the file that `init` writes by name, and the lines that it prints."""
    written = factory("init", str(folder))
    assert written.exit_code == 0, written.stderr
    entries = yaml.safe_load((folder / "datasets.yaml").read_text())["datasets"]
    checked = factory("check", str(folder))
    assert checked.exit_code == 0, checked.stderr
    return {entry["name"]: entry for entry in entries}, written.stdout.splitlines()


def row_of(lines: list[str], name: str) -> list[str]:
    """The line of a dataset in the table that `check` prints: name, kind, format, files."""
    return next(line.split() for line in lines if line.split()[:1] == [name])


def test_a_checkout_leaves_out_what_it_installed_vendored_built_and_git_ignores(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    write(
        shop,
        **{".git/HEAD": "ref: refs/heads/main\n", ".gitignore": "/build/\n*.gen.js\n"},
        **{f"src/{name}.js": "export const one = 1\n" for name in "abcdefghij"},
        **{f"node_modules/p{n}/index.js": "module.exports = 1\n" for n in range(290)},
        **{f"node_modules/p{n}/README.md": "A package.\n" for n in range(10)},
        **{"vendor/jquery/jquery.js": "1\n", "src/lib.min.js": "1\n", "build/out.js": "1\n"},
        **{"src/api.gen.js": "1\n", ".storybook/main.js": "1\n", "README.md": "A shop.\n"},
    )
    entries, lines = init(shop)
    assert entries["shop"]["exclude"] == [
        *("**/node_modules/**", "**/vendor/**", "**/*.min.js", "**/build/**", "**/*.gen.js", "**/.*/**"),
    ]
    assert row_of(lines, "shop") == ["shop", "code", "files", "10"]
    assert (
        "`shop` leaves out 295 files by `exclude`: 290 by `**/node_modules/**`, 1 by `**/vendor/**`, 1 by "
        "`**/*.min.js`, 1 by `**/build/**`, 1 by `**/*.gen.js` and 1 by `**/.*/**`. Remove a pattern to read "
        "its files."
    ) in lines
    text = (shop / "datasets.yaml").read_text()
    assert '      - "**/node_modules/**" # 290 files, vendored\n' in text
    assert '      - "**/build/**" # 1 file, ignored by git\n' in text
    assert (
        "No dataset reads 10 files under node_modules: installed packages. To read them: factory init "
        f"{shop}/node_modules"
    ) in lines
    packages = factory("init", str(shop / "node_modules"))
    assert row_of(packages.stdout.splitlines(), "node_modules") == [
        "node_modules",
        "code",
        "repositories",
        "290",
    ]


def test_folders_of_vendors_are_no_vendored_code(tmp_path: Path) -> None:
    write(
        tmp_path, **{f"contracts/vendor/{n}.md": SENTENCE for n in range(3)}, **{"contracts/a.md": SENTENCE}
    )
    entries, _ = init(tmp_path)
    assert "exclude" not in entries["contracts"]


CARD = """\
---
license: odc-by
language: [en]
pretty_name: Tides
configs: [{config_name: default, data_files: [{split: train, path: "data/train-*"}]}]
---
# Tides
"""


def test_a_copy_of_a_checkout_without_git_is_one_dataset_without_ignored_files(tmp_path: Path) -> None:
    sources = {f"{folder}/{name}.py": "a = 1\n" for folder in ("src", "lib") for name in ("a", "b.gen")}
    write(tmp_path / "copy", **{".gitignore": "*.gen.py\ngen/\n", **sources, "lib/gen/c.py": "c = 1\n"})
    entries, lines = init(tmp_path / "copy")
    assert list(entries) == ["copy"]
    assert row_of(lines, "copy") == ["copy", "code", "files", "2"]


def test_folders_of_data_with_a_gitignore_are_a_dataset_each(tmp_path: Path) -> None:
    records = {"web/a.jsonl": '{"text": "one"}\n', "books/b.jsonl": '{"content": "one"}\n'}
    write(tmp_path, **{".gitignore": "*.tmp\n", "notes/a.md": SENTENCE, "fetch.py": "a = 1\n"}, **records)
    entries, _ = init(tmp_path)
    assert [entry.get("text") for entry in entries.values()] == [None, "content", None, "text"]


def test_a_folder_that_git_ignores_as_a_whole_is_read(tmp_path: Path) -> None:
    write(tmp_path / "notes", **{".gitignore": "*\n", "a.md": SENTENCE, "b.md": SENTENCE})
    _, lines = init(tmp_path / "notes")
    assert row_of(lines, "notes") == ["notes", "prose", "files", "2"]


def test_a_download_of_the_hub_is_one_dataset_with_the_license_of_its_card(tmp_path: Path) -> None:
    folder = tmp_path / "tides"
    junk = {".gitattributes": "*.parquet", ".cache/huggingface/download/data/a.parquet.metadata": "1"}
    write(folder, **{"README.md": CARD, **junk, "data/ignored": ""})
    for number in range(2):
        rows = pa.table({"id": ["a", "b"], "text": [SENTENCE * 9] * 2})
        pq.write_table(rows, folder / "data" / f"train-0000{number}-of-00002.parquet")
    entries, lines = init(folder)
    assert list(entries) == ["tides"]
    assert {entries["tides"][field] for field in ("format", "paths", "license")} == {"parquet", ".", "odc-by"}
    about = 'README.md is its card and not a document. It gives name "Tides", license "odc-by" and language'
    assert lines[0] == f'`tides`: {about} "en".'
    assert row_of(lines, "tides") == ["tides", "prose", "parquet", "2"]
    for fields in ("license: [mit, odc-by]\nlanguage: [en, de]\n", "task_categories: [text-generation]\n"):
        (folder / "README.md").write_text(f"---\n{fields}---\n# Tides\n")
        (folder / "datasets.yaml").unlink()
        entries, lines = init(folder)
        assert list(entries) == ["tides"]
        assert lines[0] == "`tides`: README.md is its card and not a document. It gives no single license."
    write(tmp_path, **{"other/README.md": "# No card\n", "other/a.jsonl": '{"text": "one"}\n'})
    entries, lines = init(tmp_path)
    assert not any("license" in entry for entry in entries.values())
    assert {entry["format"] for entry in entries.values()} == {"parquet", "jsonl"}


PROSE = " ".join(f"{SENTENCE}On day {n} it was the {word} that came." for n, word in enumerate("abcdefgh"))


def lines_of(n_records: int, **fields: str) -> bytes:
    return gzip.compress(
        "".join(f"{json.dumps({'text': PROSE, **fields})}\n" for _ in range(n_records)).encode()
    )


def test_the_files_of_c4_are_one_dataset(tmp_path: Path) -> None:
    names = ("c4-train.00000-of-01024", "c4-train.00001-of-01024", "c4-validation.00000-of-00008")
    for name in names:
        write(tmp_path, **{f"en/{name}.json.gz": lines_of(3, url=f"http://a.org/{name}")})
    entries, lines = init(tmp_path)
    assert (entries["en"]["format"], entries["en"]["text"]) == ("jsonl", "text")
    assert row_of(lines, "en")[-1] == "3"


def test_many_loose_files_of_dolma_are_one_dataset_of_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "dolma"
    for number in range(13):
        write(folder, **{f"cc_en_head-{number:04}.json.gz": lines_of(2, id=f"{number}", source="cc")})
    entries, lines = init(folder)
    assert (entries["dolma"]["format"], entries["dolma"]["paths"]) == ("jsonl", ".")
    assert row_of(lines, "dolma")[-1] == "13"


def test_papers_are_their_latex_and_archives_without_figures_and_styles(tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    for number in range(13):
        paper = {
            "main.tex": f"\\section{{Tides}}\n{PROSE}",
            "fig.pdf": "%PDF-1.5",
            "aps.sty": "x",
            "a.bib": "@a{}",
        }
        write(folder, **{f"2401.000{number:02}/{name}": text for name, text in paper.items()})
    with tarfile.open(folder / "2401.99999.tar.gz", "w:gz") as archive:
        archive.add(folder / "2401.00000" / "main.tex", "main.tex")
    entries, lines = init(folder)
    archives, papers = entries.values()
    assert (archives["format"], archives["paths"]) == ("archive", "2401.99999.tar.gz")
    assert (papers["format"], len(papers["paths"]), papers["include"]) == ("files", 13, ["**/*.tex"])
    assert "`papers_files`: 13 folders are read alike, so they are one dataset." in "\n".join(lines)
    assert "No dataset reads 39 other files:" in lines


def test_notebooks_and_tables_beside_code_are_left_with_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    write(
        folder,
        **{"a.ipynb": '{"cells": []}', "b.ipynb": '{"cells": []}', "data.csv": "a,b\n", "util.py": "x = 1\n"},
    )
    _, lines = init(folder)
    assert row_of(lines, "work") == ["work", "code", "files", "1"]
    assert lines[lines.index("No dataset reads 3 other files:") + 1 :][:2] == [
        "  2 .ipynb. Convert notebooks to scripts, as with `jupyter nbconvert --to script`.",
        "  1 .csv. Convert tables to JSON lines or Parquet (docs/conversions.md of the repository).",
    ]


def test_books_are_unpacked_and_read_as_pages(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    write(folder, **{"a.txt": PROSE, "b.pdf": "%PDF-1.5", "c.docx": "PK\3\4"})
    with zipfile.ZipFile(folder / "d.epub", "w") as book:
        page = f"<html><head><title>Tides</title></head><body><p>{PROSE}</p><p>{PROSE}</p></body></html>"
        book.writestr("OEBPS/one.xhtml", page)
    _, lines = init(folder)
    assert row_of(lines, "books") == ["books", "prose", "files", "1"]
    unpack = "Unpack an EPUB (`python -m zipfile -e BOOK.epub BOOK`) and read the folder with `format: html`."
    assert f"  1 .epub. {unpack}" in lines
    (tmp_path / "my.yaml").write_text("datasets:\n- {name: a, kind: prose, format: archive, paths: books}\n")
    assert unpack in factory("check", str(tmp_path / "my.yaml")).stderr
    with zipfile.ZipFile(folder / "d.epub") as book:
        book.extractall(tmp_path / "d")
    (tmp_path / "my.yaml").write_text("datasets:\n- {name: a, kind: prose, format: html, paths: d}\n")
    assert factory("check", str(tmp_path / "my.yaml")).exit_code == 0


def test_a_crawl_is_read_as_web_archives(tmp_path: Path) -> None:
    write(tmp_path, **{"crawl/a.warc.wet.gz": gzip.compress(WET.encode())}, **{"crawl/index.cdx": "x"})
    entries, lines = init(tmp_path)
    assert (entries["crawl"]["format"], row_of(lines, "crawl")[-1]) == ("warc", "1")
    assert (
        "  1 .cdx. Leave other files out, or read those that are text with `format: files` and `include`."
        in lines
    )


BODY = PROSE.encode()
WET = (
    "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a.org/\r\n"
    "WARC-Date: 2026-01-01T00:00:00Z\r\n"
    "WARC-Record-ID: <urn:uuid:0b5ad9a1-0000-4000-8000-000000000000>\r\nContent-Type: text/plain\r\n"
    f"Content-Length: {len(BODY)}\r\n\r\n{PROSE}\r\n\r\n"
)
MAIL = "Received: from c.org\nDate: Thu, 1 Jan 2026\nSubject: Tides\n\nIn.\n"
MAILS = f"From a@b.org Thu Jan  1 10:00:00 2026\n{MAIL}"
EXPORTS: dict[str, tuple[dict[str, str], str, str]] = {
    "wiki": ({"dump.xml": "<mediawiki>\n<page/>\n</mediawiki>", "images/a.png": "x"}, "page", "Wikis"),
    "forum": ({"Posts.xml": '<?xml version="1.0"?>\n<posts>\n</posts>'}, "post", "Forums"),
    "chat": (
        {"general/2026-01-01.json": '[{"user": "U1", "text": "In?"}]', "users.json": "[]"},
        "of",
        "Chats",
    ),
    "mails": ({"in.mbox": MAILS, "dir/cur/1.M1.host": MAIL}, "message", "Mail"),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_of_wikis_forums_chats_and_mails_are_converted_first(tmp_path: Path, name: str) -> None:
    """`init` says what to do, and `check` warns of the files that would be one document each."""
    texts, unit, section = EXPORTS[name]
    folder = tmp_path / name
    write(folder, **texts)
    written = factory("init", str(folder))
    assert written.exit_code == 2
    assert written.stderr.rstrip().endswith(f"(docs/conversions.md of the repository, {section}).")
    assert re.search(f"Write each {unit}\\b", written.stderr)
    assert not (folder / "datasets.yaml").exists()
    (tmp_path / "my.yaml").write_text(
        f"datasets:\n- {{name: a, kind: prose, format: files, paths: {name}, exclude: 'images/**'}}\n"
    )
    checked = factory("check", str(tmp_path / "my.yaml"))
    assert checked.exit_code == 0
    assert f"and each would be one document. Write each {unit}" in checked.stdout
    assert f"(docs/conversions.md of the repository, {section})." in checked.stdout


def test_pages_in_the_records_of_parquet_take_two_datasets(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    page = f"<!DOCTYPE html><html><head><title>Tides</title></head><body><p>{PROSE}</p></body></html>"
    pq.write_table(pa.table({"id": ["a", "b"], "html": [page] * 2}), tmp_path / "web" / "a.parquet")
    one = "{name: pages, kind: prose, format: parquet, paths: web, text: html, key: id, group: pages}"
    html = "{name: pages, kind: prose, format: html, paths: web}"
    two = "{name: main, kind: prose, format: html, from: pages}"
    outputs = []
    for datasets in ([one], [html], [one, two]):
        (tmp_path / "my.yaml").write_text("datasets:\n" + "".join(f"- {dataset}\n" for dataset in datasets))
        outputs.append(factory("check", str(tmp_path / "my.yaml")))
    assert [output.exit_code for output in outputs] == [2, 2, 0]
    assert "A second dataset with `format: html` and `from` reads the main text of pages" in outputs[0].stderr
    assert (
        "need two datasets: one with `format: parquet` and `text`, and one with `format: html`"
        in outputs[1].stderr
    )


def test_notes_with_front_matter_are_no_download(tmp_path: Path) -> None:
    note = f"---\ntitle: Tides\n---\n{PROSE}"
    write(tmp_path, **{"README.md": note, "deep/b.md": note}, **{"deep/c.jsonl": '{"text": "one"}\n'})
    entries, _ = init(tmp_path)
    assert {entry["format"] for entry in entries.values()} == {"files", "jsonl"}
    assert "license" not in str(entries)
