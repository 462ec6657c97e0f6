"""Datasets whose texts are nested fields or made of several: their sentences, guesses, and documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.errors import ConfigurationError
from factory.lake import names
from factory.lake.tables import Lake
from factory.orchestration.datasets.check import check
from factory.orchestration.datasets.empty_fields import empty_field_checks
from factory.orchestration.datasets.file import datasets_file
from factory.orchestration.datasets.guess import guess
from factory.orchestration.datasets.template import template
from factory.orchestration.declare.located_yaml import LocatedYaml
from factory.settings import Settings
from tests.orchestration.declared import declared, refusal
from tests.orchestration.runs import run

TEXT = """datasets:
- name: NAME
  kind: prose
  format: parquet
  paths: a.parquet
  key: meta.id
  text: "{question.body}\\nAnswer: {answer}"
  columns: {language: meta.lang}
  metadata: [meta.url]
  rules: [c4]
  predicates: {metadata.empty_fields: {none_of: ["*answer*"]}}
"""
WRITTEN = '"{question.body}\\nAnswer: {answer}"'
RECORDS = [
    {"meta": {"id": 7, "lang": "en", "url": "u7"}, "question": {"body": "How far?"}, "answer": "Far."},
    {"meta": {"id": 8, "lang": None, "url": None}, "question": {"body": "Why?"}, "answer": None},
    {"meta": {"id": 9, "lang": "de", "url": "u9"}, "question": None, "answer": "So."},
    {"meta": {"id": 10, "lang": "de", "url": "u10"}, "question": None, "answer": None},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(RECORDS), tmp_path / "a.parquet")
    return tmp_path


def test_check_counts_the_documents_with_empty_fields(folder: Path) -> None:
    (folder / "my.yaml").write_text(TEXT.replace("NAME", "web"))
    [dataset] = check(folder / "my.yaml").datasets
    assert dataset.advice == (
        "In the first 3 documents of `web`, fields of the template are empty: `question.body` in 1, "
        "`answer` in 1. Lines of empty fields are left out of the text; to leave out the documents, add a "
        "predicate on `metadata.empty_fields`.",
    )


def test_a_field_with_a_comma_in_its_name_is_counted_as_one(tmp_path: Path) -> None:
    records = [{"a,b": None, "a": "One.", "b": None}, {"a,b": "Two.", "a": "Three.", "b": "Four."}]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    (tmp_path / "my.yaml").write_text(
        "datasets:\n- {name: web, kind: prose, format: jsonl, paths: a.jsonl, text: '{a}: {a,b}, {b}'}\n"
    )
    [dataset] = check(tmp_path / "my.yaml").datasets
    assert dataset.advice[0].startswith(
        "In the first 2 documents of `web`, fields of the template are empty: `a,b` in 1, `b` in 1. Lines"
    )
    [entry] = LocatedYaml.read(tmp_path / "my.yaml").build(datasets_file()).datasets
    _, of_comma, of_b = empty_field_checks(entry)
    assert "'a%2Cb'" in of_comma.violations
    assert "'b'" in of_b.violations


@pytest.mark.parametrize(
    "text, n_sentences", [(r"'{q}\n{a}'", 1), (r"Q {q}\n{a}", 1), (r'"{q}\n{a}"', 0), (r"'Q: {q}'", 0)]
)
def test_check_tells_a_backslash_and_an_n_from_a_line_break(
    tmp_path: Path, text: str, n_sentences: int
) -> None:
    (tmp_path / "a.jsonl").write_text('{"q": "Why?", "a": "So."}\n')
    fields = ["name: web", "kind: prose", "format: jsonl", "paths: a.jsonl", f"text: {text}"]
    (tmp_path / "my.yaml").write_text("datasets:\n- " + "\n  ".join(fields) + "\n")
    [dataset] = check(tmp_path / "my.yaml").datasets
    sentence = (
        "The template of `web` has a backslash and an n (`\\n`), which stay in each text. For a line break, "
        "write the template in double quotes."
    )
    assert list(dataset.advice) == [sentence] * n_sentences


@pytest.mark.parametrize("name", ["body{en}", "{q} {a}"])
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_check_reads_a_field_that_is_named_like_a_template(tmp_path: Path, format: str, name: str) -> None:
    records = [{"id": number, name: f"Text {number}."} for number in range(3)]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    entry = f"{{name: web, kind: prose, format: {format}, paths: a.{format}, key: id, text: '{name}'}}"
    (tmp_path / "my.yaml").write_text(f"datasets:\n- {entry}\n")
    [dataset] = check(tmp_path / "my.yaml").datasets
    assert (dataset.files, dataset.advice) == (1, ())


@pytest.mark.parametrize(
    "good, bad, sentence",
    [
        (
            "{answer}",
            "{answer",
            "line 7, datasets[0].text: Character 25 of the template is a `{` without its",
        ),
        ("{answer}", "{}", "line 7, datasets[0].text: Character 25 of the template begins `{}`, which names"),
        (
            "[meta.url]",
            "[empty_fields]",
            "line 9, datasets[0].metadata: Field `empty_fields` would replace the fact of that name, which ",
        ),
        (
            "meta.lang",
            "empty_fields",
            "line 8, datasets[0].columns: Field `empty_fields` would replace the fact",
        ),
    ],
)
def test_a_mistake_in_a_template_is_told_with_file_line_and_field(
    folder: Path, good: str, bad: str, sentence: str
) -> None:
    assert refusal(folder, TEXT.replace("NAME", "web").replace(good, bad)).startswith(f"my.yaml, {sentence}")


@pytest.mark.parametrize(
    "good, bad, sentence",
    [
        (
            "{answer}",
            "{anwser}",
            "line 7, datasets[0].text: The first records of `a.parquet` have no field `anw",
        ),
        (
            "{question.body}",
            "{body}",
            "have no field `body`, only `meta`, `meta.id`, `meta.lang`, `meta.url`, ",
        ),
        ("{question.body}", "{body}", "Did you mean `question.body`?"),
        ("key: meta.id", "key: id", "line 6, datasets[0].key: The first records of `a.parquet` have no fi"),
        ("key: meta.id", "key: id", "Did you mean `meta.id`?"),
        ("[meta.url]", "[meta.uri]", "line 9, datasets[0].metadata[0]: The first records of `a.parquet` ha"),
        ("lang}", "lamg}", "line 8, datasets[0].columns.language: The first records of `a.parquet` ha"),
        (WRITTEN, "body", "Did you mean `question.body`?"),
        (WRITTEN, "question", "Column `question` holds struct<body: string>, not text."),
    ],
)
def test_a_path_that_no_first_record_has_is_named_with_the_nearest(
    folder: Path, good: str, bad: str, sentence: str
) -> None:
    text = TEXT.replace("NAME", "web").replace(good, bad)
    assert text != TEXT.replace("NAME", "web")
    (folder / "my.yaml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        check(folder / "my.yaml")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


LONG = "Over the hills and far away the moon goes up."


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    "record, declared_text, reason",
    [
        (
            {"id": "a1b2c3", "doc": {"text": "x y"}},
            "doc.text",
            "has the most words of 2 text fields",
        ),
        (
            {"id": "a1b2c3" * 9, "doc": {"words": "One two."}},
            "doc.words",
            "has the most words of 2 text fields",
        ),
        (
            {"id": "a1b2c3" * 9, "doc": {"text": "月亮"}},
            "doc.text",
            "has the most words of 2 text fields",
        ),
        ({"id": "a1b2c3", "label": "x"}, "label", "has the most words of 2 text fields"),
        ({"url": "https://a.b/c", "n": 1}, None, "no field of its first records looks like a text"),
        ({"id": "7", "text": "a b", "meta": {"body": LONG}}, "text", "a usual name for them"),
        (
            {"image": "iVBORw0KGgo" * 99, "caption": "A moon."},
            "caption",
            "has the most words of 2 text fields",
        ),
        (
            {"image": "iVBORw0KGgo" * 99, "page": "One two. " * 99},
            "page",
            "has the most words of 2 text fields",
        ),
        (
            {"instruction": "Add.", "input": "", "output": LONG},
            "{instruction}\n{input}\n{output}",
            "each text is made of `instruction`, `input`, `output`",
        ),
        ({"prompt": "Hi there", "completion": LONG}, "{prompt}\n{completion}", "`prompt`, `completion`"),
        ({"id": "q1", "question": "Why so?", "answer": LONG}, "{question}\n{answer}", "`question`, `answer`"),
        ({"Question": "Why so?", "Answer": LONG, "n": 1}, "{Question}\n{Answer}", "`Question`, `Answer`"),
        (
            {"prompt": "Hi there", "response": LONG, "score": 0.5},
            "{prompt}\n{response}",
            "`prompt`, `response`",
        ),
        ({"instruction": "Add.", "output": LONG, "text": f"Add. {LONG}"}, "text", "a usual name for them"),
    ],
)
def test_the_text_of_records_is_guessed_by_their_content(
    tmp_path: Path, format: str, record: dict[str, Any], declared_text: str | None, reason: str
) -> None:
    (tmp_path / "data").mkdir()
    if format == "jsonl":
        (tmp_path / "data" / "a.jsonl").write_text(f"{json.dumps(record)}\n" * 3)
    else:
        pq.write_table(pa.Table.from_pylist([record] * 3), tmp_path / "data" / "a.parquet")
    guesses = guess(tmp_path)
    fields = guesses[0].fields
    assert fields is not None
    assert fields.text == declared_text
    assert reason in fields.reason
    if declared_text is None:
        return
    (tmp_path / "datasets.yaml").write_text(template(guesses, "datasets.yaml"))
    assert ("# a template" in template(guesses, "datasets.yaml")) == ("{" in declared_text)
    assert [dataset.files for dataset in check(tmp_path / "datasets.yaml").datasets] == [1]


@pytest.mark.parametrize("n_row_groups", [0, 1])
@pytest.mark.parametrize(
    "columns, text, reason",
    [
        ({"id": pa.string(), "doc": pa.struct({"text": pa.string()})}, "doc.text", "by the names and sizes"),
        ({"id": pa.string(), "essay": pa.string()}, "essay", "by the names and sizes"),
        ({"id": pa.string(), "url": pa.string()}, None, "no field of its first records looks like a text"),
        ({"id": pa.string(), "text": pa.string()}, "text", "a usual name for them"),
    ],
)
def test_the_text_of_a_file_without_rows_is_guessed_by_the_names_of_its_fields(
    tmp_path: Path, columns: dict[str, pa.DataType], text: str | None, reason: str, n_row_groups: int
) -> None:
    schema = pa.schema(columns)
    with pq.ParquetWriter(tmp_path / "a.parquet", schema) as file:
        for _ in range(n_row_groups):
            file.write_table(schema.empty_table())
    [dataset] = guess(tmp_path)
    assert dataset.fields is not None
    assert dataset.fields.text == text
    assert reason in dataset.fields.reason


@pytest.mark.spark
def test_nested_fields_and_templates_are_documents_whose_empty_fields_predicates_compare(
    lake_settings: Settings, unique: str, folder: Path
) -> None:
    lake = Lake(lake_settings)
    keys = [dg.AssetKey(f"raw.{unique}{end}") for end in ("", "_rejected")]
    keys += [dg.AssetKey(f"{stage}.{unique}") for stage in ("signals", "filtered")]
    assets = declared(folder, TEXT.replace("NAME", unique)).assets
    result = run(lake_settings, *assets, selection=keys)
    assert result.success
    rows = {row["key"]: row for row in lake.read(names.raw(unique)).to_pylist()}
    assert {key: (row["text"], row["language"]) for key, row in rows.items()} == {
        "7": ("How far?\nAnswer: Far.", "en"),
        "8": ("Why?", None),
        "9": ("Answer: So.", "de"),
    }
    assert dict(rows["9"]["metadata"]) == {"empty_fields": "question.body", "meta.url": "u9"}
    assert lake.read(names.rejected(unique), ["reason"])["reason"].to_pylist() == ["no_text"]
    verdicts = lake.read(names.filtered(unique), ["doc_id", "rejections"]).to_pylist()
    rules = {row["doc_id"]: [rejection["rule"] for rejection in row["rejections"]] for row in verdicts}
    assert [key for key, row in rows.items() if "metadata.empty_fields" in rules[row["doc_id"]]] == ["8"]
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert checks["answer_is_filled"].passed
    assert checks["answer_is_filled"].metadata["measured"].value == pytest.approx(1 / 3)
    assert checks["question_body_1_is_filled"].metadata["measured"].value == pytest.approx(1 / 3)
