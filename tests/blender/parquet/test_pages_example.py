"""The dataset of docs/pages.md runs as printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from blender.parquet.matrix import IndexMatrix, get_idx_matrix
from tests.blender.parquet_files import rows_per_page, write

PAGE = Path(__file__).parents[3] / "docs" / "pages.md"
ROWS = 500


@pytest.fixture(scope="module")
def dataset() -> Any:
    """The class, from the page's text."""
    (code,) = [
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "class" in block
    ]
    assert len(code.splitlines()) < 100
    names: dict[str, Any] = {}
    exec(code, names)
    return names["ShuffledTokens"]


@pytest.fixture
def matrix(tmp_path: Path) -> IndexMatrix:
    """Rows whose every token is the row's number, ten a page."""
    rows = [np.full(4, number, dtype="<i4").tobytes() for number in range(ROWS)]
    path = write(tmp_path / "file.parquet", pa.table({"tokens": rows}), **rows_per_page(10))
    return get_idx_matrix([path], "tokens")


def test_every_row_comes_once_over_all_readers(dataset: Any, matrix: IndexMatrix) -> None:
    assert len(matrix) == ROWS / 10
    found = [
        row[0]
        for reader in range(3)
        for batch in dataset(matrix, batch_rows=7, buffer_rows=60, reader=reader, readers=3)
        for row in batch
    ]
    assert sorted(found) == list(range(ROWS))


def test_rows_of_a_page_are_spread(dataset: Any, matrix: IndexMatrix) -> None:
    batches = list(dataset(matrix, batch_rows=10, buffer_rows=100))
    assert {batch.shape for batch in batches} == {(10, 4)}
    pages = [len({int(row[0]) // 10 for row in batch}) for batch in batches]
    assert np.mean(pages) > 3


def test_an_epoch_is_what_it_was_and_another_is_not(dataset: Any, matrix: IndexMatrix) -> None:
    def rows(**options: int) -> list[int]:
        return [
            int(row[0]) for batch in dataset(matrix, batch_rows=9, buffer_rows=50, **options) for row in batch
        ]

    assert rows(seed=4) == rows(seed=4)
    assert rows(seed=4) != rows(seed=4, epoch=1)
