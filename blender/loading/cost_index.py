"""The lengths of every row of a snapshot, in a file by ordinal that is mapped into memory.

    index = CostIndex(reader)                   # made once a snapshot: one pass over the lengths of segments
    index.of(ordinals)["squared_lengths"]       # array of uint64

A row's documents decide its cost (`blender.loading.costs`). Reading them row by row in shuffled order takes
microseconds a row on a disk and a request a page in a store, in a mapped file nanoseconds. No token is read.

    record of a row, little-endian     n_tokens u32 | check u32 | squared_lengths u64

The check tells a damaged record when it is read; the file is then made again, because it is a cache like the
rest of the page index.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_numpy
from blender.errors import CorruptPage, InvalidRequest
from blender.loading.costs import Costs
from blender.rows.snapshot_reader import SEGMENTS, TOKENS, RowRequest, SnapshotReader, gather
from blender.spec.row_order import Origins
from blender.spec.source import SEGMENT_LENGTHS
from factory.atomic_file import drop_abandoned, replacing
from factory.errors import MachineError, first_line

Ints = npt.NDArray[np.int64]
Records = npt.NDArray[np.complex128]

LENGTHS = ("n_tokens", "squared_lengths")
"""The facts of a row: its tokens, and the sum of the squares of its documents' tokens."""

# numpy copies a number of 16 bytes at once; a structure of that size takes it seven times as long.
_RECORD = np.dtype("<c16")
_CHUNK = 1 << 16  # rows read at a time
_ODD = tuple(np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))
_HALF = np.uint64(32)


class CostIndex:
    """The lengths of the rows of a snapshot; safe for many threads."""

    def __init__(self, reader: SnapshotReader, advance: Callable[[int], object] | None = None) -> None:
        """Make the file if it is not there; `advance` is called with the number of rows that were read.

        Raises InvalidRequest for a table without segments, UnsupportedPageLayout for files without an offset
        index, MachineError where the file cannot be written or read, and the errors of reading.
        """
        self._reader = reader
        self.path = _path(reader)
        with _file_errors(self.path):
            whole = is_made(reader)
            self.records = _mapped(self.path, reader.n_rows) if whole else _made(reader, self.path, advance)

    def make_again(self) -> None:
        """Replace a damaged file."""
        with _file_errors(self.path):
            self.records = _made(self._reader, self.path)

    def of(self, ordinals: Ints) -> dict[str, Costs]:
        """The facts `LENGTHS` of rows, each an array of the ordinals' shape."""
        none = np.zeros_like(ordinals)
        return lengths([self], Origins(none, none, ordinals))


def is_made(reader: SnapshotReader) -> bool:
    """Whether the index of a snapshot has its file, whole; raises OSError where it cannot be looked up."""
    path = _path(reader)
    return path.is_file() and path.stat().st_size == reader.n_rows * _RECORD.itemsize


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
    records = np.empty(len(origins.ordinal), _RECORD)
    for number, rows in origins.by_source():
        records[rows] = indexes[number].records[origins.ordinal[rows]]
    return _decoded(records, origins.ordinal)


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system into a sentence that names the file and the setting."""
    try:
        yield
    except OSError as error:
        cause = error.strerror or first_line(error)
        raise MachineError(
            f"The cost index {path} cannot be written or read ({cause}). Remove what stands there, or "
            "set FACTORY_HOME to a folder that can be written."
        ) from error


def _path(reader: SnapshotReader) -> Path:
    return Path(reader.pages.indexes.of_snapshot(reader.facts.key, "lengths"))


def _mapped(path: Path, n_rows: int) -> Records:
    if not n_rows:  # an empty file cannot be mapped
        return np.empty(0, _RECORD)
    return np.memmap(path, _RECORD, mode="r", shape=(n_rows,)).view(np.ndarray)


def _made(reader: SnapshotReader, path: Path, advance: Callable[[int], object] | None = None) -> Records:
    if SEGMENTS not in reader.schema.names or TOKENS not in reader.schema.names:
        raise InvalidRequest(
            f"{reader.described} has no column `{SEGMENTS}`, whose lengths decide the cost of a row. "
            "Plan with a packed table."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    drop_abandoned(path.parent)
    with replacing(path) as temporary, temporary.open("wb") as file:
        for first in range(0, reader.n_rows, _CHUNK):
            ordinals = np.arange(first, min(first + _CHUNK, reader.n_rows))
            file.write(_records(reader, ordinals).tobytes())
            if advance is not None:
                advance(len(ordinals))
        file.flush()
        os.fsync(file.fileno())
    return _mapped(path, reader.n_rows)


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
    if n_tokens.max(initial=0) >> _HALF:
        raise InvalidRequest(f"{reader.described} has a row of {n_tokens.max():,} tokens, above 2^32 - 1.")
    words = np.empty((len(ordinals), 2), dtype="<u8")
    words[:, 0] = n_tokens | _check(n_tokens, squared_lengths, ordinals) << _HALF
    words[:, 1] = squared_lengths
    return words.view(_RECORD).reshape(-1)


def _decoded(records: Records, ordinals: Ints) -> tuple[Costs, Costs, Ints]:
    """Tokens and squared lengths of the records of these ordinals, and the numbers of damaged records."""
    words = records.view("<u8").reshape(-1, 2)
    n_tokens, squared_lengths = words[:, 0] & np.uint64(0xFFFFFFFF), words[:, 1].copy()
    check = _check(n_tokens, squared_lengths, ordinals)
    return n_tokens, squared_lengths, np.flatnonzero(words[:, 0] >> _HALF != check)


def _sums(values: Ints, offsets: Ints) -> Costs:
    return np.diff(np.concatenate([[0], np.cumsum(values)])[offsets]).astype(np.uint64)


def _check(n_tokens: Costs, squared_lengths: Costs, ordinals: Ints) -> Costs:
    """32 bits that depend on all bits of a record and on its place."""
    mixed = squared_lengths * _ODD[0] ^ n_tokens * _ODD[1] ^ (ordinals.astype(np.uint64) + _HALF) * _ODD[2]
    return (mixed ^ mixed >> _HALF) * _ODD[0] >> _HALF
