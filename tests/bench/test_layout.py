"""The bench of layouts: its pages have the rows it says, and its costs are of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import layout
from bench.layout_data import Layout, publish, repeated, write_table
from factory.lake.catalog import open_catalog
from factory.lake.files.layout import PAGE_ROWS, odd_pages
from factory.settings import Settings

ROWS = np.arange(640 * 2_048, dtype="<u2").reshape(640, 2_048)


@pytest.mark.parametrize("page_rows", [1, 8, 64])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_both_columns_have_pages_of_exactly_as_many_rows(tmp_path: Path, page_rows: int, codec: str) -> None:
    lake, one = Settings(home=tmp_path), Layout(2, page_rows, codec)
    publish(lake, write_table(lake, ROWS, one), one)
    table = open_catalog(lake).load_table("packed.layout")
    with table.transaction() as transaction:
        transaction.set_properties({PAGE_ROWS: str(page_rows)})
    assert odd_pages(table, table.current_snapshot().snapshot_id) == []


def test_a_single_row_costs_its_page_and_a_window_every_page_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "WINDOW_ROWS", 64)
    found = layout.cost(ROWS, Layout(2, 8, "none"))
    assert 2.0 < found.file_bytes < 2.1
    assert len(found.single) == len(found.window) == layout.RUNS
    assert 3 < found.single[0].read <= 8.1  # some of a step's 64 rows share one of 80 pages
    assert 1 < found.window[0].read < 1.02
    assert all(one.cpu_us > 0 for one in (*found.single, *found.window))


def test_longer_rows_have_windows_of_as_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "WINDOW_ROWS", 256)  # 64 of four times the length
    longer = Layout(2, 8, "none", 8_192)
    found = layout.cost(ROWS.reshape(-1, 8_192), longer)
    assert longer.name == "none.p8.w2.l8192"
    assert 1 < found.window[0].read < 1.02
    assert found.file_bytes < 2.01


def test_rounds_of_rows_differ_in_their_order() -> None:
    found = repeated(ROWS[:10], 25)
    assert len(found) == 25
    assert sorted(found[:10, 0].tolist()) == sorted(found[10:20, 0].tolist()) == ROWS[:10, 0].tolist()
    assert found[:10, 0].tolist() != found[10:20, 0].tolist()
