"""Rows of DataFrames as documents: columns by name, the rest into metadata, bad rows with their reason."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from factory.errors import ConfigurationError
from factory.ingest.frame import documents_of_frame
from factory.lake.identity import content_hash, doc_id
from spark_udfs.ingest import records
from spark_udfs.ingest.frame import read_frame


def read_batch(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for scanned_rows in read_frame([batch], "books") for row in scanned_rows.to_pylist()]


def read_rows(*rows: dict[str, Any], schema: pa.Schema | None = None) -> list[dict[str, Any]]:
    return read_batch(pa.RecordBatch.from_pylist(list(rows), schema))


def test_columns_of_raw_are_taken_by_name_and_the_rest_is_metadata() -> None:
    [row] = read_rows(
        {
            "text": "A text.",
            "key": 7,
            "license": "MIT",
            "stars": "12",
            "created_at": "2024-05-04",
            "quality": "good",
            "media_type": "text/markdown",
            "title": "A",
            "tags": [{"b": 1, "a": None}],
            "nothing": None,
            "doc_id": "parent",
            "n_bytes": 1,
        }
    )
    assert row["doc_id"] == doc_id("books", "7")
    assert (row["key"], row["source"], row["media_type"]) == ("7", "books", "text/markdown")
    assert (row["content_hash"], row["n_bytes"]) == (content_hash("A text."), 7)
    assert (row["license"], row["stars"]) == ("MIT", 12)
    assert row["created_at"] == datetime(2024, 5, 4, tzinfo=UTC)
    assert dict(row["metadata"]) == {
        "quality": "good",
        "title": "A",
        "tags": '[{"a": null, "b": 1}]',
        "derived_from": "parent",
    }
    assert row["reason"] is None


def test_a_map_of_metadata_is_merged() -> None:
    kinds = {"text": pa.string(), "metadata": pa.map_(pa.string(), pa.int64()), "b": pa.string()}
    schema = pa.schema({**kinds, "source": pa.string()})
    entries = [("a", 1), ("b", 2), ("c", None)]
    [row] = read_rows({"text": "x", "metadata": entries, "b": "two", "source": "shelf"}, schema=schema)
    assert dict(row["metadata"]) == {"a": "1", "b": "two"}
    assert row["doc_id"] == doc_id("shelf", row["key"])


def test_a_column_partition_is_metadata_unless_the_dataset_has_partitions() -> None:
    batch = pa.RecordBatch.from_pylist([{"text": "x", "partition": "de"}])
    [row] = read_batch(batch)
    assert dict(row["metadata"]) == {"partition": "de"}
    [rows] = read_frame([batch], "books", in_partitions=True)
    assert [(row["metadata"], row["partition"]) for row in rows.to_pylist()] == [(None, None)]


def test_a_source_and_a_media_type_that_are_not_text_are_metadata() -> None:
    [row] = read_rows({"text": "x", "source": 7, "media_type": {"a": 1}})
    assert (row["source"], row["media_type"]) == ("books", "text/plain")
    assert dict(row["metadata"]) == {"source": "7", "media_type": '{"a": 1}'}


@pytest.mark.parametrize(
    "kind, key, as_json",
    [
        (pa.date32(), date(2024, 5, 4), "2024-05-04"),
        (pa.timestamp("us"), datetime(2024, 5, 4, 1), "2024-05-04 01:00:00"),
        (pa.binary(), b"a", "a"),
        (pa.binary(), b"\xff", "ff"),
        (pa.int64(), 1, "1"),
    ],
)
def test_keys_of_maps_and_bytes_in_lists_are_text(kind: pa.DataType, key: Any, as_json: str) -> None:
    schema = pa.schema(
        {"text": pa.string(), "m": pa.map_(kind, pa.list_(pa.binary())), "metadata": pa.map_(kind, pa.int8())}
    )
    [row] = read_rows({"text": "x", "m": [(key, [b"b", b"\xfe"])], "metadata": [(key, 3)]}, schema=schema)
    assert dict(row["metadata"]) == {"m": f'{{"{as_json}": ["b", "fe"]}}', as_json: "3"}


def test_a_map_with_structs_as_keys_costs_its_rows_alone() -> None:
    kind = pa.map_(pa.struct({"a": pa.int8()}), pa.int8())
    schema = pa.schema({"text": pa.string(), "m": kind})
    rows = read_rows({"text": "x", "m": [({"a": 1}, 2)]}, {"text": "y", "m": None}, schema=schema)
    assert [row["reason"] for row in rows] == ["bad_value", None]


@pytest.mark.parametrize(
    "cells, reason",
    [
        ({"key": "a"}, "no_text"),
        ({"key": "a", "text": b""}, "empty"),
        ({"key": "a", "text": b"a\0b"}, "nul_byte"),
        ({"key": "a", "text": b"\xe9"}, "not_utf8"),
        ({"text": b"a text"}, "no_key"),
        ({"key": "", "text": b"a text"}, "no_key"),
        ({"key": "k" * 20_000, "text": b"a text"}, "too_long"),
    ],
)
def test_a_row_that_is_no_document_says_why(cells: dict[str, Any], reason: str) -> None:
    schema = pa.schema({"key": pa.string(), "text": pa.binary(), "n": pa.int32()})
    [row, good] = read_rows({"n": 1, **cells}, {"key": "b", "text": b"good"}, schema=schema)
    assert (row["reason"], row["source"], row["key"].split()[0]) == (reason, "books", "row")
    assert row["sample"] == (cells.get("text") or b"")
    assert row["location"].startswith("key " if "key" in cells else "row ")
    assert len(row["location"]) < 300
    assert (good["reason"], good["text"]) == (None, "good")


def test_a_text_that_is_too_long_is_rejected() -> None:
    long = "x" * (records.MAX_TEXT_BYTES + 1)
    assert [row["reason"] for row in read_rows({"text": long})] == ["too_long"]


def test_text_that_is_not_utf8_in_a_string_costs_its_row_alone() -> None:
    latin = pa.array([b"\xe9", b"fine"], pa.binary()).view(pa.string())
    structs = pa.StructArray.from_arrays([latin[::-1]], ["a"])
    rows = read_batch(pa.RecordBatch.from_arrays([latin, structs], ["text", "more"]))
    assert [row["reason"] for row in rows] == ["not_utf8", "bad_value"]
    rows = read_batch(pa.RecordBatch.from_arrays([latin, latin[::-1]], ["title", "text"]))
    assert [(row["reason"], row["metadata"]) for row in rows] == [
        (None, [("title", "e9")]),
        ("not_utf8", None),
    ]


TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b\0"]), st.text(max_size=3))
ROWS = st.lists(
    st.fixed_dictionaries({"text": TEXTS, "n": st.one_of(st.none(), st.integers(0, 3))}), max_size=8
)


@settings(max_examples=50)
@given(ROWS, st.integers(0, 9))
def test_a_row_gives_the_same_in_any_order_of_rows_and_columns(rows: list[dict[str, Any]], seed: int) -> None:
    schema = pa.schema({"text": pa.string(), "n": pa.int64()})
    in_order = read_rows(*rows, schema=schema)
    random.Random(seed).shuffle(rows)
    shuffles = read_rows(*rows, schema=pa.schema(list(schema)[::-1]))
    assert len(in_order) == len(rows)
    assert sorted(map(str, in_order)) == sorted(map(str, shuffles))
    documents = {row["doc_id"] for row in in_order if row["reason"] is None}
    assert documents.isdisjoint(row["doc_id"] for row in in_order if row["reason"] is not None)


@pytest.mark.spark
def test_one_row_of_each_key_is_a_document_and_equal_rows_are_counted(spark: SparkSession) -> None:
    rows = [
        ("a", "one"),
        ("a", "two"),
        ("a", "two"),
        ("b", "b"),
        ("b", "b"),
        ("c", "c"),
        ("d", ""),
        ("d", ""),
    ]
    for frame in (
        spark.createDataFrame(rows, "key string, text string"),
        spark.createDataFrame(rows[::-1], "key string, text string").repartition(3),
    ):
        reading = documents_of_frame(frame, "books")
        documents = sorted((row.key, row.text) for row in reading.documents.collect())
        bad_rows = sorted((row.location, row.reason, row.n_records) for row in reading.rejected.collect())
        reading.release()
        winner = dict(documents)["a"]
        assert documents == [("a", winner), ("b", "b"), ("c", "c")]
        assert bad_rows.count(("key b", "key_taken", None)) == 1
        assert ("key d", "empty", 2) in bad_rows
        n_of_a = [n or 1 for place, _, n in bad_rows if place == "key a"]
        assert sorted(n_of_a) == ([2] if winner == "one" else [1, 1])
        ids = [row.doc_id for row in reading.rejected.collect()]
        assert len(ids) == len(set(ids))


@pytest.mark.spark
def test_rows_without_a_key_are_documents_by_their_hash(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1), ("a", 1), ("a", 2)], "text string, n long")
    reading = documents_of_frame(frame, "books")
    assert reading.documents.count() == 2
    assert [(row.reason, row.n_records) for row in reading.rejected.collect()] == [("key_taken", None)]
    reading.release()


@pytest.mark.spark
def test_a_frame_without_texts_is_refused_by_its_columns(spark: SparkSession) -> None:
    for frame, sentence in (
        (spark.range(1), "have no column `text`, only `id`. Name one of them so"),
        (spark.range(1).select(F.col("id").alias("text")), "Column `text` of the rows of `books` is bigint"),
        (
            spark.range(1).select(F.lit("a").alias("text"), F.lit("b").alias("text")),
            "have two columns `text`",
        ),
    ):
        with pytest.raises(ConfigurationError, match=sentence):
            documents_of_frame(frame, "books")
