"""The lengths of every row of a snapshot, in a file by ordinal that is mapped into memory.

    index = CostIndex(reader)                   # made once a snapshot: one pass over the lengths of segments
    index.of(ordinals)["squared_lengths"]       # array of uint64

A row's documents decide its cost (`blender.loading.costs`). Reading them row by row in shuffled order takes
microseconds a row on a disk and a request a page in a store, in a mapped file nanoseconds. No token is read.

    record of a row, little-endian     n_tokens u32 | check u32 | squared_lengths u64

A damaged record is noticed when it is read, and the file made again (`checked_records`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_numpy
from blender.errors import CorruptPage, InvalidRequest
from blender.loading.checked_records import (
    MOST_SMALL,
    RECORD,
    Records,
    file_errors,
    has_records,
    new_file,
    path_of,
    records_at,
    records_of,
    values_of,
)
from blender.loading.costs import Costs
from blender.rows.snapshot_reader import SEGMENTS, TOKENS, RowRequest, SnapshotReader, gather
from blender.spec.row_order import Origins
from blender.spec.source import SEGMENT_LENGTHS

Ints = npt.NDArray[np.int64]

LENGTHS = ("n_tokens", "squared_lengths")
"""The facts of a row: its tokens, and the sum of the squares of its documents' tokens."""

_CHUNK = 1 << 16  # rows read at a time


class CostIndex:
    """The lengths of the rows of a snapshot; safe for many threads."""

    def __init__(self, reader: SnapshotReader, advance: Callable[[int], object] | None = None) -> None:
        """Make the file if it is not there; `advance` is called with the number of rows that were read.

        Raises InvalidRequest for a table without segments, UnsupportedPageLayout for files without an offset
        index, MachineError where the file cannot be written or read, and the errors of reading.
        """
        self._reader = reader
        self.path = _path(reader)
        with file_errors(self.path):
            if not is_made(reader):
                _make(reader, self.path, advance)
            self.records = records_at(self.path, reader.n_rows)

    def make_again(self) -> None:
        """Replace a damaged file."""
        with file_errors(self.path):
            _make(self._reader, self.path)
            self.records = records_at(self.path, self._reader.n_rows)

    def of(self, ordinals: Ints) -> dict[str, Costs]:
        """The facts `LENGTHS` of rows, each an array of the ordinals' shape."""
        none = np.zeros_like(ordinals)
        return lengths([self], Origins(none, none, ordinals))


def is_made(reader: SnapshotReader) -> bool:
    """Whether the index of a snapshot has its file, whole; raises OSError where it cannot be looked up."""
    return has_records(_path(reader), reader.n_rows)


def lengths(indexes: Sequence[CostIndex], origins: Origins) -> dict[str, Costs]:
    """The facts `LENGTHS` of rows of several sources; the indexes are in the order of their numbers.

    Records are gathered by source and checked together: each call of numpy takes microseconds, and a blend
    has hundreds of sources.
    """
    n_tokens, squared_lengths, wrong = _read(indexes, origins)
    if len(wrong):
        for number in np.unique(origins.source[wrong]).tolist():
            indexes[number].make_again()
        n_tokens, squared_lengths, wrong = _read(indexes, origins)
    if len(wrong):
        path = indexes[int(origins.source[wrong[0]])].path
        raise CorruptPage(f"{path} was made again and is damaged again. Check the disk of FACTORY_HOME.")
    return {"n_tokens": n_tokens, "squared_lengths": squared_lengths}


def _read(indexes: Sequence[CostIndex], origins: Origins) -> tuple[Costs, Costs, Ints]:
    records = np.empty(len(origins.ordinal), RECORD)
    for number, rows in origins.by_source():
        records[rows] = indexes[number].records[origins.ordinal[rows]]
    return values_of(records, origins.ordinal)


def _path(reader: SnapshotReader) -> Path:
    return path_of(reader, "lengths")


def _make(reader: SnapshotReader, path: Path, advance: Callable[[int], object] | None = None) -> None:
    if SEGMENTS not in reader.schema.names or TOKENS not in reader.schema.names:
        raise InvalidRequest(
            f"{reader.described} has no column `{SEGMENTS}`, whose lengths decide the cost of a row. "
            "Plan with a packed table."
        )
    with new_file(path) as file:
        for first in range(0, reader.n_rows, _CHUNK):
            ordinals = np.arange(first, min(first + _CHUNK, reader.n_rows))
            file.write(_records(reader, ordinals).tobytes())
            if advance is not None:
                advance(len(ordinals))


def _records(reader: SnapshotReader, ordinals: Ints) -> Records:
    field = pa.field(SEGMENT_LENGTHS, pa.list_(pa.int32()))
    request = RowRequest(reader, ordinals, np.arange(len(ordinals)), (TOKENS,))
    (lists,) = gather([request], len(ordinals), [field])
    lengths_of_segments = as_numpy(lists.values).astype(np.int64)
    if len(lengths_of_segments) and lengths_of_segments.min() < 0:
        raise CorruptPage(f"{reader.described} has a segment of a negative length. Pack the table again.")
    offsets = as_numpy(lists.offsets).astype(np.int64)
    n_tokens = _sums(lengths_of_segments, offsets)
    squared_lengths = _sums(lengths_of_segments * lengths_of_segments, offsets)
    if n_tokens.max(initial=0) > MOST_SMALL:
        raise InvalidRequest(f"{reader.described} has a row of {n_tokens.max():,} tokens, above 2^32 - 1.")
    return records_of(n_tokens, squared_lengths, ordinals)


def _sums(values: Ints, offsets: Ints) -> Costs:
    return np.diff(np.concatenate([[0], np.cumsum(values)])[offsets]).astype(np.uint64)
