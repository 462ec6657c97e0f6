"""Rows in any order, of several files, each read with its page."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.errors import DamagedFile
from factory.lake.files.random_access import ScatteredRows

BAGS = [None if row % 7 == 3 else bytes([row]) * (row * 37 % 90) for row in range(120)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A file of small pages in several row groups, and one without an offset index, compressed."""
    folder = tmp_path_factory.mktemp("bags")
    rows = pa.table({"bag": pa.array(BAGS, pa.binary())})
    pq.write_table(
        rows, folder / "plain.parquet", compression="none", data_page_size=64, row_group_size=50,
        write_batch_size=4, use_dictionary=False, write_page_index=True,
    )  # fmt: skip
    pq.write_table(rows, folder / "other.parquet", compression="zstd", write_page_index=False)
    return [f"file:{folder / name}.parquet" for name in ("plain", "other")]


@given(st.lists(st.none() | st.tuples(st.integers(0, 1), st.integers(0, 119)), max_size=60))
def test_every_row_gets_its_value_and_no_location_none(
    files: list[str], wanted: list[tuple[int, int] | None]
) -> None:
    places = [(None, None) if place is None else (files[place[0]], place[1]) for place in wanted]
    found = ScatteredRows({}, "bag", pa.binary()).read(
        pa.array([file for file, _ in places], pa.string()), pa.array([row for _, row in places], pa.int64())
    )
    assert found.to_pylist() == [None if place is None else BAGS[place[1]] for place in wanted]
    assert found.type == pa.binary()


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    scattered = ScatteredRows({}, "bag", pa.binary())
    with pytest.raises(DamagedFile, match=r"gone\.parquet"):
        scattered.read(pa.array([f"file:{tmp_path}/gone.parquet"]), pa.array([0]))
