"""Texts made of several fields by a template."""

from __future__ import annotations

import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.errors import ConfigurationError
from spark_udfs.ingest.jsonl import jsonl_file
from spark_udfs.ingest.parquet import parquet_file
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.text_template import is_template, text_template
from tests.ingest.inputs import read, source

ALPACA = "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n{output}"
WORDS = st.text(st.sampled_from("ab{}\n :."), max_size=6)
FIELD = st.sampled_from(["a", "b.c", "d e", "dc:title", "x!r"])


@st.composite
def templates(draw: st.DrawFn) -> tuple[str, list[str | tuple[str]]]:
    """A template, and its parts: words, and fields as tuples of their name."""
    parts: list[str | tuple[str]] = [*draw(st.lists(WORDS | st.tuples(FIELD), max_size=6)), (draw(FIELD),)]
    written = [
        f"{{{part[0]}}}" if isinstance(part, tuple) else part.replace("{", "{{").replace("}", "}}")
        for part in parts
    ]
    return "".join(written), parts


@given(
    templates(), st.dictionaries(FIELD, st.text(st.characters(codec="utf-8"), min_size=1).map("x".__add__))
)
def test_a_template_writes_the_texts_of_fields_among_its_words(
    template: tuple[str, list[str | tuple[str]]], texts: dict[str, str]
) -> None:
    written, parts = template
    parsed = text_template(written)
    fields = [part[0] for part in parts if isinstance(part, tuple)]
    assert list(parsed.fields) == list(dict.fromkeys(fields))
    full = {name: texts.get(name, "y") for name in fields}
    expected = "".join(full[part[0]] if isinstance(part, tuple) else part for part in parts)
    assert parsed.render(full) == expected
    assert is_template(written)


@pytest.mark.parametrize(
    "template, texts, text",
    [
        ("{a}\n{b}\n{c}", {"a": "A", "b": "", "c": "C"}, "A\nC"),
        ("{a}\n{b}\n{c}", {"a": "", "b": " \n", "c": "C"}, "C"),
        ("{a} ({b})\n", {"a": "A", "b": ""}, "A ()\n"),  # a line with one of its fields
        ("Q: {a}\nA: {b}", {"a": "A", "b": ""}, "Q: A"),
        ("Title\n{a}\n{b}", {"a": "", "b": "B"}, "Title\nB"),
        (ALPACA, {"instruction": "I", "input": "", "output": "O"}, "### Instruction:\nI\n\n### Response:\nO"),
        ("\n{a}\n \n\n{b}\n", {"a": "", "b": "B"}, "\nB\n"),
        ("\n{a}\n \n\n{b}\n", {"a": "A", "b": ""}, "\nA\n"),
        ("{a}{{{a}}}", {"a": "A"}, "A{A}"),
    ],
)
def test_lines_and_paragraphs_of_empty_fields_are_left_out(
    template: str, texts: dict[str, str], text: str
) -> None:
    assert text_template(template).render(texts) == text


@pytest.mark.parametrize(
    "template, sentence",
    [
        ("{a", "Character 1 of the template is a `{` without its `}`. Write `{{` for a brace in the text."),
        ("{a}}", "Character 4 of the template is a `}` without its `{`. Write `}}` for a brace in the text."),
        ("{a}{b{c}}", "Character 4 of the template is a `{` without its `}`."),
        ("x {}", "Character 3 of the template begins `{}`, which names no field. Name one."),
        ("{{a}}", "The template `{{a}}` names no field."),
    ],
)
def test_a_mistake_in_a_template_is_one_sentence(template: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Fields(template)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("fields", [{"metadata": ["empty_fields"]}, {"columns": {"stars": "empty_fields"}}])
def test_a_field_does_not_replace_the_fact_that_names_the_empty_fields(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="Field `empty_fields` would replace the fact of that name"):
        Fields("{a} {b}", **fields)
    assert Fields("a", **fields).template is None


def outcomes(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row.get("reason") or row["text"], dict(row.get("metadata") or ())) for row in rows]


def test_records_of_every_format_become_texts_and_name_their_empty_fields(tmp_path: Path) -> None:
    records = [
        {"q": "How far?", "a": {"text": "Far.", "n": 2}},
        {"q": "Why?", "a": {"text": None, "n": 1}},
        {"q": " ", "a": {"text": "So.", "n": None}},
        {"q": None, "a": None},
        {"q": "", "a": None},
    ]
    fields = Fields("{q}\n{a.text}\nin {a.n} words")
    lines = "".join(f"{json.dumps(record)}\n" for record in records).encode()
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    rows = list(parquet_file(source(tmp_path, "a.parquet"), fields))
    assert outcomes(rows) == [
        ("How far?\nFar.\nin 2 words", {}),
        ("Why?\nin 1 words", {"empty_fields": "a.text"}),
        ("So.", {"empty_fields": "q,a.n"}),
        ("no_text", {}),
        ("empty", {}),
    ]
    assert outcomes(read(jsonl_file, "a.jsonl", lines, fields)) == outcomes(rows)


def test_a_file_without_a_column_of_the_template_has_documents_of_the_others(tmp_path: Path) -> None:
    pq.write_table(pa.table({"q": ["Why?"], "n": [[1]]}), tmp_path / "a.parquet")
    file = source(tmp_path, "a.parquet")
    assert outcomes(list(parquet_file(file, Fields("{q}\n{a}")))) == [("Why?", {"empty_fields": "a"})]
    [row] = parquet_file(file, Fields("{b}\n{a}"))
    assert (row["reason"], row["detail"]) == (
        "no_text",
        "The file has no column `b` and no column `a`, only q, n.",
    )
    [row] = parquet_file(file, Fields("{q}\n{n}"))
    assert (row["reason"], row["detail"]) == (
        "text_not_a_string",
        "Column `n` holds list<element: int64>, not text.",
    )


def test_a_list_in_a_template_and_a_long_text_are_rejected(tmp_path: Path) -> None:
    lines = b'{"q": "Why?", "a": ["So."]}\n{"q": "Why?", "a": "So, so."}\n'
    rows = read(jsonl_file, "a.jsonl", lines, Fields("{q} {a}"))
    assert rows[0]["detail"] == "Field `a` of the template holds list, not text."
    assert rows[1]["text"] == "Why? So, so."
    pq.write_table(pa.table({"q": ["Why?"], "a": ["So, so."]}), tmp_path / "a.parquet")
    [row] = parquet_file(source(tmp_path, "a.parquet"), Fields("{q} {a}", max_bytes=11))
    assert (row["reason"], row["sample"]) == ("too_long", b"Why? So, so.")


def test_values_of_parquet_are_words_without_quotes(tmp_path: Path) -> None:
    columns = {
        "long": pa.array([timedelta(days=1, seconds=2)]),
        "day": pa.array([date(2026, 1, 2)]),
        "price": pa.array([Decimal("1.50")]),
        "yes": pa.array([True]),
        "uuid": pa.array([b"0123456789abcdef"], pa.uuid()),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    [row] = parquet_file(source(tmp_path, "a.parquet"), Fields("{long}, {day}, {price}, {yes}, {uuid}"))
    assert row["text"] == "1 day, 0:00:02, 2026-01-02, 1.50, true, 30313233-3435-3637-3839-616263646566"


def test_a_field_that_is_named_like_a_template_comes_before_it(tmp_path: Path) -> None:
    records = [{"body{en}": "Exact.", "en": "Why?"}, {"body{en}": None, "en": "So."}]
    lines = "".join(f"{json.dumps(record)}\n" for record in [*records, {"en": "Far."}]).encode()
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    rows = list(parquet_file(source(tmp_path, "a.parquet"), Fields("body{en}")))
    assert outcomes(rows) == [("Exact.", {}), ("no_text", {})]
    of_lines = outcomes(read(jsonl_file, "a.jsonl", lines, Fields("body{en}")))
    assert of_lines == [*outcomes(rows), ("bodyFar.", {})]
    pq.write_table(pa.table({"{n}": [1], "n": ["One."]}), tmp_path / "b.parquet")
    [row] = parquet_file(source(tmp_path, "b.parquet"), Fields("{n}"))
    assert row["detail"] == "Column `{n}` holds int64, not text."
