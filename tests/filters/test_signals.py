"""Batches of documents become batches of signals, row for row, as Spark's workers run them."""

from __future__ import annotations

import pyarrow as pa

from factory.lake.schemas.filters import signals_table
from spark_udfs.filters.signals import measure

WORDS = signals_table(["word_count"]).columns
INPUT = pa.schema([("doc_id", pa.string()), ("text", pa.string()), ("partition", pa.string())])


def documents(*rows: tuple[str, str | None, str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [dict(zip(INPUT.names, row, strict=True)) for row in rows], schema=INPUT
    )


def test_every_document_gives_one_row_in_its_place() -> None:
    first = documents(("a", "two words", "p1"), ("b", None, None))
    batches = [first, documents(), documents(("c", "", None))]
    schema = signals_table(["code_chars", "word_count"]).columns
    measured = list(measure(iter(batches), schema))
    assert [batch.schema for batch in measured] == [schema] * 3
    assert pa.Table.from_batches(measured).to_pylist() == [
        {"doc_id": "a", "code_chars": 9.0, "word_count": 2.0, "partition": "p1"},
        {"doc_id": "b", "code_chars": None, "word_count": None, "partition": None},
        {"doc_id": "c", "code_chars": 0.0, "word_count": 0.0, "partition": None},
    ]


def test_large_strings_are_measured_too() -> None:
    batch = documents(("a", "two words", None))
    large = batch.cast(pa.schema([(name, pa.large_string()) for name in INPUT.names]))
    assert list(measure(iter([large]), WORDS)) == list(measure(iter([batch]), WORDS))


def test_batches_are_measured_one_at_a_time() -> None:
    def endless():
        while True:
            yield documents(("a", "text", None))

    assert next(measure(endless(), WORDS)).num_rows == 1
