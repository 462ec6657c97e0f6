"""Result files as rows of tables: items with counts, records, refusals, and records above a cap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.errors import DamagedFile
from factory.lake.identity import doc_id
from factory.lake.schemas.ingest import REJECTED
from factory.lake.schemas.synthesis import ITEMS
from factory.lake.schemas.synthesis_results import RESULT
from factory.synthesis.kind import ItemOutcome, NewRecord, Refusal, WorkItem
from factory.synthesis.results import Attempt, SliceWriter, result_batches
from spark_udfs.synthesis.results import FILE, capped_rows, item_rows, record_rows, refusal_rows

OUTCOMES = st.lists(
    st.one_of(
        st.builds(NewRecord, st.text("ab", min_size=1), st.text("xyz"), st.just({"n": 1})),
        st.builds(Refusal, st.text("ab"), st.just("bad"), st.text("xyz"), st.binary(max_size=600)),
    ),
    max_size=6,
)


def batches(slices: Sequence[Sequence[ItemOutcome]]) -> tuple[pa.RecordBatch, dict[str, bytes]]:
    """Files with an item for each list of outcomes, one file a slice: their addresses, and their bytes."""
    files = {}
    for number, items in enumerate(slices):
        writer = SliceWriter(Attempt(1, "worker", "host"))
        document = WorkItem(f"id{number}", "web", f"page {number}", "text")
        writer.add(number, document, list(items), 0.5)
        files[f"file {number}"] = writer.close()
    return pa.record_batch({FILE: pa.array(files, pa.string())}), files


def rows(parts: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in parts for row in batch.to_pylist()]


@given(st.lists(OUTCOMES, min_size=1, max_size=4))
def test_every_outcome_is_one_row_and_every_item_counts_them(slices: list[list[ItemOutcome]]) -> None:
    addresses, files = batches(slices)

    def read(name: str) -> Iterator[pa.RecordBatch]:
        reader = pq.ParquetFile(pa.BufferReader(files[name]))
        yield from reader.read().cast(RESULT).to_batches(max_chunksize=2)

    items = rows(item_rows([addresses], read))
    records = rows(record_rows([addresses], read))
    refusals = rows(refusal_rows([addresses], read, "made"))
    for number, outcomes in enumerate(slices):
        of_item = [outcome for outcome in outcomes if isinstance(outcome, NewRecord)]
        [about] = [row for row in items if row["doc_id"] == f"id{number}"]
        assert (about["n_records"], about["n_refusals"]) == (len(of_item), len(outcomes) - len(of_item))
        texts = [row["text"] for row in records if row["doc_id"] == f"id{number}"]
        assert texts == [outcome.text for outcome in of_item]
    assert sum(row["n_refusals"] for row in items) == len(refusals)
    for row in refusals:
        assert row["source"] == "web/made"
        assert row["doc_id"] == doc_id(row["source"], row["key"])
        assert len(row["sample"]) <= 256 <= 256 + row["n_bytes"]
    assert [set(row) for row in items] == [set(ITEMS.names)] * len(slices)


def test_a_record_above_a_cap_says_of_what() -> None:
    record = {"source": "web/made", "key": "page#a", "text": "long", "repository": "r"}
    [row] = rows(capped_rows([pa.RecordBatch.from_pylist([record])], "repository", 2))
    assert (row["reason"], row["location"]) == ("above_cap", "repository r")
    assert row["detail"] == "`r` has 2 records with a smaller hash, the cap of a repository."
    assert set(row) == set(REJECTED.names)


def test_a_result_that_is_damaged_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 and no more PAR1")
    with pytest.raises(DamagedFile, match=r"a\.parquet cannot be read .*Delete it"):
        list(result_batches(f"file://{path}", {}))
