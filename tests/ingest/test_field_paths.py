"""Fields of nested records by path: exact names first, missing parents, one result from every format."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.ingest.field_paths import ABSENT, cell_at, field_names
from spark_udfs.ingest.jsonl import jsonl_file
from spark_udfs.ingest.messages import Conversation
from spark_udfs.ingest.parquet import first_records, parquet_file
from spark_udfs.ingest.records import Fields, FirstRecords
from tests.ingest.inputs import read, source

NAMES = st.sampled_from(["a", "b", "a.b", "b.a", "a.b.a"])
RECORDS = st.recursive(
    st.dictionaries(NAMES, st.integers() | st.none(), max_size=3),
    lambda inner: st.dictionaries(NAMES, st.integers() | inner, max_size=3),
    max_leaves=8,
)


def walk(record: dict[str, Any]) -> list[tuple[tuple[str, ...], Any]]:
    """Every value of a record with the names that lead to it."""
    below = [((name,), cell) for name, cell in record.items()]
    nested = [
        ((name, *names), inner)
        for name, cell in record.items()
        if isinstance(cell, dict)
        for names, inner in walk(cell)
    ]
    return below + nested


@given(RECORDS, st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map(".".join))
def test_a_path_leads_to_the_value_whose_names_it_joins(record: dict[str, Any], path: str) -> None:
    cells = {names: cell for names, cell in walk(record) if ".".join(names) == path}
    if not cells:
        assert cell_at(record, path) is ABSENT
    else:  # the longest first name wins, on each level
        assert cell_at(record, path) == cells[max(cells, key=lambda names: [len(name) for name in names])]


@given(st.lists(RECORDS, max_size=4))
def test_every_value_of_records_has_a_listed_path(records: list[dict[str, Any]]) -> None:
    paths = {".".join(names) for record in records for names, _ in walk(record)}
    assert set(field_names(records)) == paths
    first = FirstRecords.from_records(records)
    assert all(first.has(path) for path in paths)
    assert not first.has("a.c")


def test_the_names_in_a_map_are_data_and_still_paths() -> None:
    first = FirstRecords.from_records([{"votes": {f"user{number}": number for number in range(101)}}])
    assert first.fields == ("votes",)
    assert first.has("votes.user100")
    assert not first.has("votes.nobody")


class CountedDict(dict[str, int]):
    """An object that counts how often somebody asks it for a name."""

    n_questions = 0

    def __contains__(self, name: object) -> bool:
        CountedDict.n_questions += 1
        return super().__contains__(name)


def test_the_names_of_maps_that_differ_by_record_are_read_once() -> None:
    maps = [CountedDict({f"user{record}_{number}": 1 for number in range(50)}) for record in range(40)]
    assert field_names([{"votes": votes} for votes in maps]) == ["votes"]
    assert CountedDict.n_questions <= 40 * 50


NESTED = [
    {"doc": {"text": "One", "meta": {"lang": "en", "stars": 7}}, "id": {"of": "a"}},
    {"doc": {"text": "Two", "meta": None}, "id": {"of": "b"}},
    {"doc": {"text": None, "meta": {"lang": "de", "stars": None}}, "id": {"of": "c"}},
    {"doc": None, "id": {"of": "d"}},
]
FIELDS = Fields(
    "doc.text",
    key="id.of",
    columns={"language": "doc.meta.lang", "stars": "doc.meta.stars"},
    metadata=["doc.meta.lang", "doc.meta"],
)


def shown(rows: list[dict[str, Any]]) -> list[Any]:
    columns = ("key", "text", "language", "stars", "metadata")
    return [row.get("reason") or tuple(row.get(column) for column in columns) for row in rows]


def test_nested_fields_fill_the_columns_of_documents_from_every_format(tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps(record)}\n" for record in NESTED).encode()
    pq.write_table(pa.Table.from_pylist(NESTED), tmp_path / "a.parquet", row_group_size=3)
    rows = list(parquet_file(source(tmp_path, "a.parquet"), FIELDS))
    meta = '{"lang": "en", "stars": 7}'
    assert shown(rows) == [
        ("a", "One", "en", 7, [("doc.meta.lang", "en"), ("doc.meta", meta)]),
        ("b", "Two", None, None, None),
        "no_text",
        "no_text",
    ]
    assert shown(read(jsonl_file, "a.jsonl", lines, FIELDS)) == shown(rows)
    assert shown(read(jsonl_file, "a.jsonl.gz", gzip.compress(lines), FIELDS)) == shown(rows)


def test_a_name_with_a_dot_comes_before_a_path(tmp_path: Path) -> None:
    records = [{"doc.text": "exact", "doc": {"text": "nested", "dc.title": "T"}}]
    lines = json.dumps(records[0]).encode()
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    fields = Fields("doc.text", metadata=["doc.dc.title"])
    rows = [*parquet_file(source(tmp_path, "a.parquet"), fields), *read(jsonl_file, "a.jsonl", lines, fields)]
    assert [(row["text"], row["metadata"]) for row in rows] == [("exact", [("doc.dc.title", "T")])] * 2


def test_bytes_of_a_nested_text_that_are_not_utf8_are_rejected_as_such(tmp_path: Path) -> None:
    text = pa.array([b"good", b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"doc": pa.StructArray.from_arrays([text], ["text"])}), tmp_path / "a.parquet")
    rows = list(parquet_file(source(tmp_path, "a.parquet"), Fields("doc.text")))
    assert [row.get("reason") for row in rows] == [None, "not_utf8"]


@pytest.mark.parametrize(
    "path, detail",
    [
        ("doc.txt", "The file has no column `doc.txt`, only doc, twice."),
        ("doc.text.text", "The file has no column `doc.text.text`, only doc, twice."),
        ("doc.n", "Column `doc.n` holds int64, not text."),
        ("twice.a", "The file has two columns `a`. Rename one."),
    ],
)
def test_a_file_without_a_text_at_the_path_is_one_rejected_record(
    tmp_path: Path, path: str, detail: str
) -> None:
    twice = pa.StructArray.from_arrays([pa.array(["x"]), pa.array(["y"])], ["a", "a"])
    pq.write_table(pa.table({"doc": [{"text": "x", "n": 1}], "twice": twice}), tmp_path / "a.parquet")
    [row] = parquet_file(source(tmp_path, "a.parquet"), Fields(path))
    assert row["detail"] == detail


def test_the_fields_of_messages_are_paths(tmp_path: Path) -> None:
    """As an export of chats has them: `author.role` and `content.text`."""
    turn = {"author": {"role": "user"}, "content": {"text": "Hi"}}
    records = [{"chat": {"turns": [turn, turn]}}]
    conversation = Conversation(
        "chat.turns",
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
        "author.role",
        "content.text",
    )
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    fields = Fields(conversation=conversation)
    lines = json.dumps(records[0]).encode()
    rows = [*parquet_file(source(tmp_path, "a.parquet"), fields), *read(jsonl_file, "a.jsonl", lines, fields)]
    assert [row.get("text") for row in rows] == ["user: Hi\nuser: Hi\n"] * 2


def test_first_records_of_parquet_name_nested_columns(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(NESTED), tmp_path / "a.parquet")
    first = first_records(source(tmp_path, "a.parquet"), 2)
    assert set(first.fields) == {
        "doc",
        "doc.text",
        "doc.meta",
        "doc.meta.lang",
        "doc.meta.stars",
        "id",
        "id.of",
    }
    assert first.values["doc.text"] == ["One", "Two"]
    assert first.values["doc.meta.stars"] == [7, None]
    assert set(first.texts) == {"doc.text", "doc.meta.lang", "id.of"}
