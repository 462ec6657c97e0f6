"""Files of many documents are told by their names and beginnings, and plain texts are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.ingest.containers import N_FILES, container_warnings
from spark_udfs.ingest.place import LocalFiles

MAIL = "Return-Path: <a@b.org>\nReceived: from b.org\n\tby c.org; 1 Jan\nSubject: Tides\n\nTwice a day.\n"
CONTAINERS = {
    "in.mbox": (f"From a@b.org Thu Jan  1 10:00:00 2026\n{MAIL}", "a mailbox"),
    "archive": (f"From a@b.org Thu Jan  1 10:00:00 2026\n{MAIL}", "a mailbox"),
    "1795.M1P2.host:2,S": (MAIL, "a mail"),
    "a.eml": (MAIL, "a mail"),
    "dump.xml": ('<mediawiki xml:lang="en">\n<page/>', "a dump of a wiki"),
    "Posts.xml": ('\ufeff<?xml version="1.0" encoding="utf-8"?>\n<posts>\n', "a dump of a forum"),
    "feed.xml": ('<?xml version="1.0"?>\n<rss/>', "a file of XML"),
    "a.csv": ("id,text\n1,one\n", "a table"),
    "day.json": ('[\n  {"user": "U1"}]', "a file of JSON"),
    "lines.txt": ('{"text": "one"}\n', "a file of JSON"),
}
TEXTS = {
    "note.md": "From the harbor the tide is seen to turn.\nDate: today\n",
    "letter.txt": "Subject: Tides\n\nDear Ann,\n",
    "list.md": "[link](a.md)\n\n- {one}\n",
    "front.md": "---\ntitle: Tides\ndate: 2026\nauthor: Ann\n---\nTwice a day.\n",
    "paper.tex": "\\documentclass{article}\n",
    "page.txt": '<?xml version="1.0"?>\n<html>\n',
    "empty.txt": "",
}


def warnings(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return list(container_warnings("web", [(LocalFiles.at(folder), name.encode()) for name in texts]))


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    text, noun = CONTAINERS[name]
    [sentence] = warnings(tmp_path, **{name: text, **TEXTS})
    files = f"1 of the {len(TEXTS) + 1} files of `web`"
    fact = f"{files} is {noun}, such as `{name}`, and each would be one document."
    assert sentence.startswith(fact)
    assert "(docs/conversions.md of the repository, " in sentence


def test_plain_texts_are_no_containers(tmp_path: Path) -> None:
    assert warnings(tmp_path, **TEXTS) == []


def test_a_sample_of_many_files_is_looked_into(tmp_path: Path) -> None:
    files = {f"{number:03}.csv": "a,b\n" for number in range(2 * N_FILES)}
    [sentence] = warnings(tmp_path, **files)
    assert sentence.startswith("200 of the 200 of 400 files of `web` are tables, such as `000.csv`")
