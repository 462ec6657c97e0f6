"""Pages of a table's files against what its properties say of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io import InputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.table import Table

from factory.lake.catalog import open_catalog
from factory.lake.files.layout import PAGE_ROWS, odd_pages
from factory.settings import Settings

ROWS = pa.table(
    {"ordinal": pa.array(range(50), pa.int64()), "tokens": [b"%03d" % number for number in range(50)]}
)


def written(home: Path, *, page_rows: int, properties: dict[str, str], indexed: bool = True) -> Table:
    """A table of one file: row groups of 20 rows, pages of `page_rows` in both columns."""
    catalog = open_catalog(Settings(home=home))
    catalog.create_namespace("packed")
    table = catalog.create_table("packed.some", schema=ROWS.schema, properties=properties)
    path = home / "some.parquet"
    pq.write_table(
        ROWS,
        path,
        row_group_size=20,
        write_batch_size=page_rows,
        data_page_size=1,
        use_dictionary=False,
        write_page_index=indexed,
    )
    table.add_files([path.as_uri()])
    return table


def odd(table: Table) -> list[str]:
    """The odd pages of the newest snapshot."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return odd_pages(table, snapshot.snapshot_id)


@pytest.mark.parametrize("indexed", [True, False])
def test_a_row_group_may_end_with_a_shorter_page_and_only_end(tmp_path: Path, indexed: bool) -> None:
    # 8 + 8 + 4, twice, and 8 + 2
    table = written(tmp_path, page_rows=8, properties={PAGE_ROWS: "8"}, indexed=indexed)
    assert odd(table) == []
    with table.transaction() as transaction:
        transaction.set_properties({PAGE_ROWS: "10"})
    (sentence,) = odd(table)
    assert f"File {(tmp_path / 'some.parquet').as_uri()} has pages of other than 10 rows" in sentence
    assert "`ordinal` has 5 of 8, the first is page 0 of row group 0 with 8 rows" in sentence
    assert "`tokens` has 5 of 8" in sentence


class Counting(PyArrowFileIO):
    """A lake's files, and which were opened."""

    def __init__(self, properties: dict[str, str]) -> None:
        super().__init__(properties)
        self.opened: list[str] = []

    def new_input(self, location: str) -> PyArrowFile:
        found = super().new_input(location)
        opening = found.open

        def opened(seekable: bool = True) -> InputStream:
            self.opened.append(location)
            return opening(seekable)

        found.open = opened
        return found


def test_a_file_is_opened_once_for_all_its_columns(tmp_path: Path) -> None:
    table = written(tmp_path, page_rows=8, properties={PAGE_ROWS: "8"})
    table.io = counting = Counting(table.io.properties)
    assert odd(table) == []
    assert counting.opened.count((tmp_path / "some.parquet").as_uri()) == 1


@pytest.mark.invariant(
    "In a packed table the pages of all columns end at the same rows, as its property "
    "`write.parquet.page-row-limit` says. A check warns about files with other pages; their rows are "
    "correct all the same."
)
def test_a_page_that_is_too_long_is_odd_even_as_the_last(tmp_path: Path) -> None:
    (sentence,) = odd(written(tmp_path, page_rows=20, properties={PAGE_ROWS: "8"}))
    assert "`tokens` has 3 of 3, the first is page 0 of row group 0 with 20 rows" in sentence
    assert "row-group-check-min-record-count` of the table to 8" in sentence


def test_a_table_that_says_nothing_of_its_pages_has_no_odd_ones(tmp_path: Path) -> None:
    assert odd(written(tmp_path, page_rows=3, properties={})) == []
