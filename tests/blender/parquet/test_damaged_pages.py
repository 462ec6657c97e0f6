"""Damaged Parquet files raise an error that names file, column and page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blender.errors import CorruptPage, InvalidRequest, SourceGone, UnsupportedPageLayout
from blender.parquet.matrix import get_idx_matrix, read_page
from factory.errors import ConfigurationError
from tests.blender.parquet_files import every_type, write

N = 400


@pytest.mark.invariant(
    "A page read alone equals pyarrow's reading of the file, for every writer, mix of encodings and "
    "reader; damaged bytes raise an error that names file, column and page."
)
@pytest.mark.parametrize("codec", ["none", "zstd", "snappy", "gzip"])
@pytest.mark.parametrize("checksum", [True, False])
def test_damaged_bytes_are_an_error_or_other_values_and_never_more(
    codec: str, checksum: bool, tmp_path: Path
) -> None:
    table = every_type(150).select(["string", "int64", "list", "boolean", "fixed"])
    path = write(tmp_path / "file.parquet", table, compression=codec, write_page_checksum=checksum)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    noticed = []
    for _ in range(150):
        damaged = bytearray(whole)
        for at in random.integers(0, len(whole), random.integers(1, 4)):
            damaged[at] ^= 1 << random.integers(0, 8)
        path.write_bytes(damaged)
        for leaf in ("string", "int64", "list", "boolean", "fixed"):
            try:
                get_idx_matrix([path], leaf).read_rows(range(150)).validate(full=True)
            except (CorruptPage, UnsupportedPageLayout, ConfigurationError, InvalidRequest) as error:
                noticed.append(str(error))
    assert len(noticed) > 100
    assert all(str(path) in sentence or "index" in sentence for sentence in noticed)


def test_a_flipped_bit_in_a_page_with_a_checksum_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "file.parquet", every_type(N), write_page_checksum=True, compression="none")
    matrix = get_idx_matrix([path], "string")
    page = matrix[5]
    (begin, end), _ = matrix.native.byte_ranges(page.number)
    damaged = bytearray(path.read_bytes())
    damaged[end - 3] ^= 1
    path.write_bytes(damaged)
    assert begin < end - 3
    _, row_group, number = page.index
    location = rf"file\.parquet, column `string`, row group {row_group}, page {number}"
    with pytest.raises(CorruptPage, match=rf"{location}: .*checksum"):
        read_page(page)
    assert len(read_page(matrix[6])) == matrix[6].n_rows


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "file.parquet", every_type(50).select(["string"]))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CorruptPage, match=r"file\.parquet"):
            get_idx_matrix([path], "string")


def test_a_file_cut_short_or_removed_after_it_was_indexed_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "file.parquet", every_type(N))
    matrix = get_idx_matrix([path], "string")
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(CorruptPage, match=r"file\.parquet has .* bytes, its page index says"):
        matrix.read_rows([0])
    path.unlink()
    with pytest.raises(SourceGone, match=r"file\.parquet cannot be read"):
        matrix.read_rows([0])
