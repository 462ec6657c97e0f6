"""The bench of first batches: its tables give the expected rows, and its indexes hold every page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.first_batch.data import SAME, STEP_ROWS, expected, write
from bench.first_batch.measure import uneven
from bench.first_batch.reader import batch, index
from blender.parquet.matrix import get_idx_matrix

FILE_ROWS, FILES = 30_000, 6


@pytest.fixture(scope="module", params=[1, 3])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six files in tables of one blend."""
    made = tmp_path_factory.mktemp("first_batch") / f"{request.param}"
    write(made, FILE_ROWS, request.param, FILES)
    return made


def test_every_step_has_the_rows_that_were_written(home: Path) -> None:
    for step in (0, 7, 10**9):
        found = batch(home, step)
        assert found["right"]
        assert found["rows"] == STEP_ROWS


def test_the_index_is_rebuilt_and_has_every_page(home: Path) -> None:
    assert batch(home, 0)["right"]
    found = index(home)
    paths = list(home.glob("*.parquet"))
    assert len(paths) == FILES
    pages = [len(get_idx_matrix(paths, column)) for column in ("ordinal", "tokens")]
    assert found["pages"] == sum(pages) > 2 * FILES
    assert 0 < found["bytes"] < sum(path.stat().st_size for path in (home / "lake").rglob("*.pages"))
    assert found["s"] < found["checked_s"]


def test_tokens_follow_from_ordinals() -> None:
    assert expected(pa.array([0, SAME - 1, SAME])) == [b"\0\0", b"\0\0", b"\1\0"]


def test_a_page_of_the_large_index_is_a_row(tmp_path: Path) -> None:
    matrix = get_idx_matrix([uneven(tmp_path / "pages.parquet", 500)] * 3, "tokens")
    assert len(matrix) == matrix.n_rows == 1500
    kept = pq.read_table(tmp_path / "pages.parquet")["tokens"].to_pylist()
    assert len({len(value) for value in kept}) == 8
    assert matrix.read_rows(np.array([499, 500, 1001])).to_pylist() == [kept[499], kept[0], kept[1]]
