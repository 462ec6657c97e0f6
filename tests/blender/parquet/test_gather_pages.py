"""`gather_pages` returns the requested type of byte strings, however pages store them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory import _native

BYTE_TYPES = [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()]


def index_of(path: Path) -> _native.PageIndex:
    """The index of column `value` of a local file."""
    return _native.PageIndex(_native.join_pages("value", _native.scan_pages([str(path)], "value")))


def gathered(index: _native.PageIndex, kind: pa.DataType, rows: list[int], keep_pages: bool) -> pa.Array:
    """The values of `rows`, through a cache of their own."""
    part = (index, np.array(rows, dtype=np.int64), np.arange(len(rows), dtype=np.int64), keep_pages)
    array = _native.gather_pages(kind, len(rows), [part], _native.PageCache(1 << 20))
    array.validate(full=True)
    return array


def mixed_chunk(path: Path, stored: pa.DataType) -> list[bytes]:
    """Write a column chunk of dictionary pages and then plain pages; return its values."""
    values = [f"word {row % 7} ö".encode() for row in range(300)] + [
        f"another word {row}".encode() for row in range(300)
    ]
    column = pa.array(values, pa.binary()).cast(stored)
    pq.write_table(
        pa.table({"value": column}),
        path,
        dictionary_pagesize_limit=400,
        data_page_size=100,
        write_batch_size=10,
    )
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(pq.read_metadata(path).row_group(0).column(0).encodings)
    return values


@pytest.mark.parametrize("keep_pages", [True, False])
@pytest.mark.parametrize("kind", BYTE_TYPES, ids=str)
@pytest.mark.parametrize("stored", BYTE_TYPES, ids=str)
def test_dictionary_and_plain_pages_of_one_chunk_give_the_requested_type(
    stored: pa.DataType, kind: pa.DataType, keep_pages: bool, tmp_path: Path
) -> None:
    values = mixed_chunk(tmp_path / "file.parquet", stored)
    index = index_of(tmp_path / "file.parquet")
    for rows in ([3], [599], [3, 599], [599, 3, 4, 3], list(range(600)), list(range(599, -1, -7))):
        array = gathered(index, kind, rows, keep_pages)
        assert array.type == kind
        assert array.cast(pa.large_binary()).to_pylist() == [values[row] for row in rows]


@pytest.mark.parametrize("keep_pages", [True, False])
def test_only_a_value_that_is_not_utf8_is_called_so(keep_pages: bool, tmp_path: Path) -> None:
    values = [b"\xff\xfe"] * 3 + [f"word {row % 5}".encode() for row in range(300)]
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"value": values}), path, data_page_size=50, write_batch_size=3)
    index = index_of(path)
    assert gathered(index, pa.large_binary(), [0, 300], keep_pages).to_pylist() == [values[0], values[300]]
    assert gathered(index, pa.string(), [9, 300], keep_pages).to_pylist() == ["word 1", "word 2"]
    with pytest.raises(
        ValueError, match=r"file\.parquet, column `value`, row group 0, page 0: a value is not UTF-8"
    ):
        gathered(index, pa.large_string(), [300, 1], keep_pages)


def test_dictionaries_share_the_budget_of_pages_and_are_evicted(tmp_path: Path) -> None:
    column = pa.array([f"{row % 100}".zfill(1000) for row in range(1000)])
    indexes = []
    for number in range(20):
        pq.write_table(pa.table({"value": column}), tmp_path / f"{number}.parquet", data_page_size=10)
        indexes.append(index_of(tmp_path / f"{number}.parquet"))
    dictionary_bytes = 100 * 1004
    cache = _native.PageCache(5 * dictionary_bytes + 10_000)

    def read(index: _native.PageIndex) -> int:
        """Read one row; return the number of pages that this took."""
        before = index.read_so_far[0]
        part = (index, np.array([7]), np.array([0]), False)
        assert _native.gather_pages(pa.string(), 1, [part], cache)[0] == column[7]
        return index.read_so_far[0] - before

    assert read(indexes[0]) == 2
    assert dictionary_bytes < cache.used < dictionary_bytes + 1000
    assert read(indexes[0]) == 1
    for index in indexes:
        read(index)
        assert cache.used <= 5 * dictionary_bytes + 10_000
    assert cache.used > 4 * dictionary_bytes
    assert read(indexes[-1]) == 1
    assert read(indexes[1]) == 2
    assert indexes[0].read_pages(np.array([0]), cache)[0][0] == column[0]
    assert cache.used <= 5 * dictionary_bytes + 10_000
