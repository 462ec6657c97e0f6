"""The commands that read a lake: tables, samples, traces and blends as they are printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.cli import root
from factory.lake.names import TableName, filtered, raw, rejected
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.ingest import RAW, REJECTED
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.cli.command import factory
from tests.explain.lakes import document, pack, publish
from tests.terminal import in_columns


def test_tables_lists_what_is_published(lake: Lake) -> None:
    assert "raw.book" in factory("tables").stdout
    listed = json.loads(factory("tables", "--json").stdout)
    assert [(it["table"], it["rows"], it["stage"]) for it in listed] == [
        ("raw.book", 10, "ingest"),
        ("filtered.book", 10, "filters"),
    ]


def test_tables_cuts_no_name_on_a_narrow_screen(lake: Lake) -> None:
    name = TableName.parse("raw.a_dataset_whose_name_is_long")
    publish(lake, name, RAW, [])
    lines = in_columns(60, "tables").stdout.splitlines()
    assert len(lines) == 4  # the header and a line a table
    assert any(str(name) in line for line in lines)


def test_an_empty_lake_is_an_empty_table_and_says_how_to_fill_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root, "lake_settings", lambda: Settings(home=tmp_path))
    result = factory("tables")
    assert result.exit_code == 0
    assert result.stdout.split() == ["table", "stage", "rows", "MB", "published", "content"]
    assert result.stderr == "No table is published yet. Run the pipeline: factory materialize '*'.\n"
    plain = factory("tables", "--json")
    assert (plain.exit_code, json.loads(plain.stdout), plain.stderr) == (0, [], "")


def test_a_sample_is_the_same_for_the_same_seed_and_another_for_another(lake: Lake) -> None:
    first, again = factory("sample", "raw.book", "-n", "3"), factory("sample", "raw.book", "-n", "3")
    assert first.stdout == again.stdout
    assert first.stdout.count("text of page") == 3
    assert factory("sample", "raw.book", "-n", "3", "--seed", "1").stdout != first.stdout


def test_a_sample_of_rejected_documents_shows_their_text_and_reason(lake: Lake) -> None:
    shown = factory("sample", "filtered.book", "--rejected-by", "word_count").stdout
    assert shown.count("word_count = 3 (limit 50)") == 4
    assert shown.count("text of page") == 4
    assert shown.count("key page ") == shown.count("source book") == 4


def test_a_sample_of_verdicts_names_rules_without_a_value(lake: Lake) -> None:
    failing = [
        {"rule": "word_count", "value": 3.0, "threshold": 50.0},
        {"rule": "stars", "value": None, "threshold": 10.0},
    ]
    verdicts = [
        {"doc_id": f"{1:032x}", "kept": False, "rejections": failing, "without_value": []},
        {"doc_id": f"{2:032x}", "kept": True, "rejections": [], "without_value": ["perplexity", "quality"]},
    ]
    publish(lake, filtered("other"), FILTERED, verdicts)
    lines = [line.strip("│ ") for line in factory("sample", "filtered.other", "-n", "2").stdout.splitlines()]
    assert "rejections word_count = 3 (limit 50), stars has no value" in lines
    assert "without_value perplexity, quality" in lines
    assert not [line for line in lines if line.endswith("[]")]
    named = factory("sample", "filtered.other", "--rejected-by", "stars").stdout
    assert "stars has no value" in named


def test_a_sample_shows_rejected_bytes_as_text_and_escapes_the_rest(lake: Lake) -> None:
    record = {
        "doc_id": "f" * 32,
        "source": "book",
        "key": "bad.py",
        "location": "byte 8",
        "reason": "not_utf8",
    }
    given = {"n_bytes": 999, "sample": b'print("b\xf6se")\x1b[2J\n\tna\xc3\xafve'}
    publish(lake, rejected("book"), REJECTED, [{**record, "detail": "Byte 8 is not UTF-8.", **given}])
    lines = [line.strip("│ ") for line in factory("sample", "raw.book_rejected").stdout.splitlines()]
    assert 'print("b\\xf6se")\\x1b[2J' in lines
    assert "naïve" in lines
    assert "... (first 25 of 999 bytes)" in lines


def test_a_sample_says_how_much_of_a_text_it_shows(lake: Lake) -> None:
    rows = [{**document("a"), "text": "x" * 1_200}, {**document("b"), "text": "y" * 34_567}]
    publish(lake, raw("long"), RAW, [{**row, "path": "p" * 201} for row in rows])
    shown = re.sub(r"[\s│]", "", factory("sample", "raw.long").stdout)  # lines break anywhere
    assert shown.count("x" * 1_200) == shown.count("y" * 1_200) == 1
    assert shown.count("...(first1,200of34,567characters)") == 1
    assert shown.count("...(first200of201characters)") == 2
    assert shown.count("...(first") == 3


def test_a_rule_that_rejected_nothing_is_named_with_those_that_did(lake: Lake) -> None:
    result = factory("sample", "filtered.book", "--rejected-by", "mean_word_length")
    assert result.exit_code == 8
    assert result.stderr.endswith("`mean_word_length`. Rules that rejected some: word_count.\n")
    misspelled = factory("sample", "filtered.book", "--rejected-by", "wordcount")
    assert "Did you mean `word_count`?" in misspelled.stderr


def test_a_sample_without_raw_documents_skips_unpublished_tables(lake: Lake) -> None:
    lake.create(raw("half"), RAW)
    verdict = {"doc_id": f"{1:032x}", "kept": True, "rejections": []}
    publish(lake, filtered("other"), FILTERED, [verdict])
    assert "text of page 1" in factory("sample", "filtered.other").stdout


def test_trace_follows_a_rejected_document_to_its_reason(lake: Lake) -> None:
    shown = factory("trace", "document", "page 2").stdout
    assert "rejected by 1 rule(s): word_count is 3 (limit 50)" in " ".join(shown.split())
    (plain,) = json.loads(factory("trace", "document", "page 2", "--json").stdout)
    assert plain["outcome"] == "filtered"


def test_trace_shows_the_literal_key_and_skips_unpublished_tables(lake: Lake) -> None:
    lake.create(raw("half"), RAW)
    result = factory("trace", "document", "page [id].tsx [/]")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "book / page [id].tsx [/]" in result.stdout


def test_trace_takes_the_name_that_it_prints_and_suggests_near_ones(lake: Lake) -> None:
    for name in ("book / page 2", "book/page 2", "shelf/book/page 2"):
        assert factory("trace", "document", name).stdout.startswith("book / page 2 ")
    result = factory("trace", "document", "book/pgae 2")
    assert (result.exit_code, result.stdout) == (8, "")
    assert "Did you mean `book / page 2`" in result.stderr


def test_blends_lists_what_there_is(lake: Lake) -> None:
    assert "No blend yet" in factory("blend", "list").stdout
    pack(lake, "book", "a")
    source = Source(table="packed.book", weight=1, columns=("n_tokens",))
    made = open_blends(lake.settings).create([source])
    assert made.id in in_columns(50, "blend", "list").stdout


def test_blends_shows_which_blend_another_updates_and_from_which_step(lake: Lake) -> None:
    pack(lake, "book", "a", "b", "c", "d")
    blends = open_blends(lake.settings)
    first = blends.create([Source(table="packed.book", weight=1, columns=("n_tokens",))])
    second = blends.update(first.id, 1, {"packed.book": 2})
    third = blends.update(second.id, 2, {"packed.book": 1})
    lines = in_columns(120, "blend", "list").stdout.splitlines()
    after = {
        line.split()[0]: following.split() for line, following in zip(lines, [*lines[1:], ""], strict=True)
    }
    assert after[second.id] == ["updates", first.id, "from", "step", "1", "on"]
    assert after[third.id] == ["updates", second.id, "from", "step", "2", "on"]
    assert factory("blend", "show", third.id).stdout.splitlines()[-2:] == [
        f"Before step 2 it equals blend {second.id}.",
        f"Before step 1 it equals blend {first.id}.",
    ]
    assert "Before step" not in factory("blend", "show", first.id).stdout


def test_clean_drops_what_failed_runs_left(lake: Lake) -> None:
    table = lake.table(raw("book"))
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "failed_abc").commit()  # type: ignore[union-attr]
    assert factory("clean").stdout == "Dropped of raw.book: failed_abc.\n"
    assert factory("clean").stdout == "Nothing to drop.\n"
    assert json.loads(factory("clean", "--json").stdout) == {}
