"""Texts are read by file and row, in any order and in batches of any size."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.lake.files.fetch import LocatedTexts
from factory.lake.identity import content_hash
from factory.lake.schemas.ingest import TEXT_AT
from spark_udfs.column_fetch import over_texts
from tests.lake.files.places import place

TEXTS = [None if row % 9 == 4 else f"text {row} é" for row in range(60)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A file of a raw table, and one that has every other text in a registered file."""
    folder = tmp_path_factory.mktemp("raw")
    texts = pa.array(TEXTS, pa.string())
    pq.write_table(pa.table({"text": texts}), folder / "plain.parquet", row_group_size=7)
    pq.write_table(pa.table({"body": texts}), folder / "theirs.parquet", row_group_size=11)
    places = [place(folder / "theirs.parquet", row) if row % 2 else None for row in range(60)]
    thin = {
        "text": pa.array([None if row % 2 else text for row, text in enumerate(TEXTS)], pa.string()),
        "text_at": pa.array(places, TEXT_AT.type),
        "content_hash": [None if text is None else content_hash(text) for text in TEXTS],
    }
    pq.write_table(pa.table(thin), folder / "thin.parquet", row_group_size=13)
    return [f"file:{folder / name}.parquet" for name in ("plain", "thin")]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 59)), max_size=80), st.integers(1, 30))
def test_rows_get_their_texts(files: list[str], wanted: list[tuple[int, int]], cut: int) -> None:
    wanted.sort()
    rows = pa.RecordBatch.from_pydict(
        {
            "number": pa.array(range(len(wanted)), pa.int64()),
            "file": pa.array([files[file] for file, _ in wanted], pa.string()),
            "row": pa.array([row for _, row in wanted], pa.int64()),
        }
    )
    batches = [rows.slice(at, cut) for at in range(0, len(wanted), cut)]
    found = [row for batch in over_texts(batches, {}, iter) for row in batch.to_pylist()]
    assert found == [{"number": n, "text": TEXTS[row]} for n, (_, row) in enumerate(wanted)]


def test_a_reader_goes_back_to_earlier_rows(files: list[str]) -> None:
    texts = LocatedTexts({})
    for file, row in ((0, 50), (0, 3), (1, 20), (1, 19), (0, 50)):
        found = [text for read in texts.read(files[file], [row]) for text in read["text"].to_pylist()]
        assert found == [TEXTS[row]]


def test_a_wide_text_comes_in_arrays_of_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"text": ["x" * (1 << 20)] * 40}), path, use_dictionary=False)
    read = list(LocatedTexts({}).read(f"file:{path}", range(40)))
    assert sum(batch.num_rows for batch in read) == 40
    assert max(batch.nbytes for batch in read) < 10 << 20
