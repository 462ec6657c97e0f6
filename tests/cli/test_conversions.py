"""The scripts of docs/conversions.md turn exports into records that `factory check` accepts."""

from __future__ import annotations

import json
import mailbox
import os
import runpy
import sys
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.cli.command import factory
from tests.product_code import ROOT

PAGE = (ROOT / "docs" / "conversions.md").read_text()


def convert(
    section: str, folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> list[dict[str, Any]]:
    """Run the script of a section in `folder`; return the records that it prints."""
    body = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    script = folder / "script.py"
    script.write_text(body.partition("```python\n")[2].partition("```")[0])
    before = Path.cwd(), sys.argv
    try:
        os.chdir(folder)
        sys.argv = [str(script), *arguments]
        runpy.run_path(str(script), run_name="__main__")
    finally:
        os.chdir(before[0])
        sys.argv = before[1]
        script.unlink()
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def assert_read(folder: Path, records: list[dict[str, Any]], text: str = "text", more: str = "") -> None:
    """Check that a dataset of the records is correct."""
    (folder / "out.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    dataset = (
        f"{{name: out, kind: prose, format: jsonl, paths: out.jsonl, text: {text}, key: id, group: out}}"
    )
    (folder / "my.yaml").write_text(f"datasets:\n- {dataset}\n{more}")
    checked = factory("check", str(folder / "my.yaml"))
    assert checked.exit_code == 0, checked.stderr


def test_a_table_becomes_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text('id,text\n1,"two\nlines, one comma"\n')
    (tmp_path / "b.tsv").write_text("id\ttext\n2\tone, two\n")
    convert("Tables", tmp_path, capsys, "a.csv", "b.tsv")
    texts = [pq.read_table(tmp_path / name)["text"].to_pylist() for name in ("a.parquet", "b.parquet")]
    assert texts == [["two\nlines, one comma"], ["one, two"]]


SLACK = [{"user": "U1", "text": "Is the tide in?", "ts": "1"}, {"type": "join", "ts": "2"}]
DISCORD = {"guild": {}, "messages": [{"author": {"name": "ann"}, "content": "It is out."}]}


def test_a_day_of_a_chat_becomes_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "general").mkdir()
    (tmp_path / "general" / "2026-01-01.json").write_text(json.dumps(SLACK))
    (tmp_path / "talk.json").write_text(json.dumps(DISCORD))
    (tmp_path / "users.json").write_text(json.dumps([{"id": "U1", "name": "ann"}]))
    records = convert("Chats", tmp_path, capsys, ".")
    assert records == [
        {"id": "general/2026-01-01.json", "text": "U1: Is the tide in?"},
        {"id": "talk.json", "text": "ann: It is out."},
    ]
    assert_read(tmp_path, records)


def mail(number: int) -> EmailMessage:
    message = EmailMessage()
    message["Message-ID"], message["From"] = f"<{number}@example.org>", "ann@example.org"
    message["Date"], message["Subject"] = "Thu, 01 Jan 2026 10:00:00 +0000", "Tides"
    message.set_content(f"Mail {number}: über the bar.\n")
    message.add_attachment(b"\0" * 99, maintype="image", subtype="png")
    return message


def test_mails_become_records_without_headers_and_attachments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mbox, maildir = mailbox.mbox(tmp_path / "in.mbox"), mailbox.Maildir(tmp_path / "dir")
    mbox.add(mail(1))
    mbox.close()
    maildir.add(mail(2))
    (tmp_path / "c.eml").write_bytes(mail(3).as_bytes())
    records = convert("Mail", tmp_path, capsys, "in.mbox", "dir", "c.eml")
    assert [record["text"] for record in records] == [f"Mail {n}: über the bar.\n" for n in (1, 2, 3)]
    assert records[0]["id"] == "<1@example.org>"
    assert_read(tmp_path, records)


WIKI = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11">
  <page><title>Tide</title><ns>0</ns><id>1</id><revision><text>The '''tide''' turns.</text></revision></page>
  <page><title>Talk:Tide</title><ns>1</ns><id>2</id><revision><text>Why?</text></revision></page>
  <page><title>Ebb</title><ns>0</ns><id>3</id><redirect/><revision><text>#R</text></revision></page>
</mediawiki>
"""
POSTS = """<?xml version="1.0" encoding="utf-8"?>
<posts>
  <row Id="1" PostTypeId="1" Title="When?" Body="&lt;p&gt;When does the tide turn?&lt;/p&gt;" />
  <row Id="2" PostTypeId="2" Body="&lt;p&gt;Twice a day.&lt;/p&gt;" />
</posts>
"""


def test_articles_of_a_wiki_become_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dump.xml").write_text(WIKI)
    records = convert("Wikis", tmp_path, capsys, "dump.xml")
    assert records == [{"id": "1", "title": "Tide", "text": "The '''tide''' turns."}]
    assert_read(tmp_path, records)


def test_posts_of_a_forum_are_read_in_two_datasets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Posts.xml").write_text(POSTS)
    records = convert("Forums", tmp_path, capsys, "Posts.xml")
    assert [record["html"] for record in records] == [
        "<p>When does the tide turn?</p>",
        "<p>Twice a day.</p>",
    ]
    assert_read(tmp_path, records, "html", "- {name: forum, kind: prose, format: html, from: out}\n")


def test_notebooks_become_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Tides\n", "\n", "Twice a day."]},
        {"cell_type": "code", "source": ["x = 1\n", "x"], "outputs": [{"data": {"image/png": "AAAA"}}]},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    convert("Notebooks", tmp_path, capsys, ".")
    assert (tmp_path / "a.py").read_text() == "# # Tides\n#\n# Twice a day.\n\nx = 1\nx\n"
