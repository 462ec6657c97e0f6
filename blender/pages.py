"""Single pages of anybody's Parquet files (Youmu's calls): the public names of `blender.parquet`."""

from blender.parquet.buffer_shuffle import BufferShuffle
from blender.parquet.matrix import (
    IndexMatrix,
    Page,
    PageList,
    data_files,
    get_idx_matrix,
    open_idx_matrix,
    read_page,
    shuffle_index,
)
from blender.parquet.page_ranges import StoreRanges

__all__ = [
    "BufferShuffle",
    "IndexMatrix",
    "Page",
    "PageList",
    "StoreRanges",
    "data_files",
    "get_idx_matrix",
    "open_idx_matrix",
    "read_page",
    "shuffle_index",
]
