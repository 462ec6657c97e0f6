"""The field of the text and the field of the key, by names and first values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.orchestration.datasets.record_fields import key_field, text_field
from spark_udfs.ingest.records import FirstRecords


def first(**columns: list[Any]) -> FirstRecords:
    rows = zip(*columns.values(), strict=True)
    return FirstRecords.from_records([dict(zip(columns, row, strict=True)) for row in rows])


@pytest.mark.parametrize(
    "columns, key",
    [
        ({"ID#": [1, 2], "title": ["a b", "c d"]}, "ID#"),
        ({"url": ["a", "b"], "uid": ["a", "b"]}, "uid"),
        ({"user_id": [1, 2], "id": [3, 4]}, "id"),
        ({"paperId": ["x", "y"], "n": [1, 2]}, "paperId"),
        ({"id": [1, 1]}, None),
        ({"id": [1, None]}, None),
        ({"id": [1, "1"]}, None),  # the same key, as text
        ({"id": [True, False]}, None),
        ({"id": ["", "a"]}, None),
        ({"id": ["a" * 201, "b"]}, None),
        ({"video": [1, 2]}, None),  # no word of the name is `id`
        ({"score": [0.5, 0.25]}, None),
    ],
)
def test_a_field_whose_values_all_differ_is_the_key_by_its_name(
    columns: dict[str, list[Any]], key: str
) -> None:
    assert key_field([first(**columns)], []) == key


def test_a_field_of_any_name_is_the_key_of_many_records() -> None:
    many = range(200)
    assert key_field([first(row=list(many))], []) == "row"
    assert key_field([first(row=[f"r{number}" for number in many])], []) == "row"
    assert key_field([first(n_bytes=[number * 977 for number in many])], []) is None
    assert key_field([first(title=[f"a title {number}" for number in many])], []) is None
    assert key_field([first(row=list(many)[:50])], []) is None


def test_a_field_that_is_taken_or_missing_somewhere_is_no_key() -> None:
    assert key_field([first(id=[1, 2])], ["id"]) is None
    assert key_field([first(id=[1, 2]), first(id=[2, 3])], []) is None
    assert key_field([first(id=[1, 2]), first(other=[3])], []) is None
    assert key_field([], []) is key_field([first(text=[])], []) is None


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers() | st.text() | st.none()), max_size=9))
def test_first_records_have_a_value_for_each_field_of_each_record(records: list[dict[str, Any]]) -> None:
    fields = FirstRecords.from_records(records)
    assert set(fields.fields) == {name for record in records for name in record}
    for name in fields.fields:
        assert list(fields.values[name]) == [record.get(name) for record in records]


def test_the_text_has_a_usual_name_or_is_the_longest() -> None:
    assert text_field(first(title=["a long title"], content=["a"])) == "content"
    assert text_field(first(title=["short"], essay=["rather long"])) == "essay"
    assert text_field(first(n=[1])) is None
