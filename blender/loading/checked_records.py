"""Records of 16 bytes with a check, in files of a snapshot that are mapped into memory.

    record, little-endian     small u32 | check u32 | large u64

The check depends on all bits of a record and on its number in the file, so that a damaged record is noticed
when it is read. The files are a cache like the rest of the page index: a damaged one is made again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from blender.loading.costs import Costs
from blender.rows.snapshot_reader import SnapshotReader
from factory.atomic_file import drop_abandoned, replacing
from factory.errors import MachineError, first_line

Ints = npt.NDArray[np.int64]
Records = npt.NDArray[np.complex128]

# numpy copies a number of 16 bytes at once; a structure of that size takes it seven times as long.
RECORD = np.dtype("<c16")
MOST_SMALL = (1 << 32) - 1

_ODD = tuple(np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))
_HALF = np.uint64(32)


def path_of(reader: SnapshotReader, name: str) -> Path:
    """The file of records of a snapshot."""
    return Path(reader.pages.indexes.of_snapshot(reader.facts.key, name))


def records_of(small: Costs, large: Costs, numbers: Ints) -> Records:
    """The records of these numbers in a file; `small` is at most MOST_SMALL."""
    words = np.empty((len(numbers), 2), dtype="<u8")
    words[:, 0] = small | _check(small, large, numbers) << _HALF
    words[:, 1] = large
    return words.view(RECORD).reshape(-1)


def values_of(records: Records, numbers: Ints) -> tuple[Costs, Costs, Ints]:
    """Both values of the records of these numbers, and the places of damaged ones."""
    words = records.view("<u8").reshape(-1, 2)
    small, large = words[:, 0] & np.uint64(MOST_SMALL), words[:, 1].copy()
    return small, large, np.flatnonzero(words[:, 0] >> _HALF != _check(small, large, numbers))


def records_at(path: Path, n: int) -> Records:
    """The `n` records of a file."""
    if not n:  # an empty file cannot be mapped
        return np.empty(0, RECORD)
    return np.memmap(path, RECORD, mode="r", shape=(n,)).view(np.ndarray)


def has_records(path: Path, n: int) -> bool:
    """Whether a file is there with `n` records; raises OSError where it cannot be looked up."""
    return path.is_file() and path.stat().st_size == n * RECORD.itemsize


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A new file at `path`, which is there once it is whole and on disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drop_abandoned(path.parent)
    with replacing(path) as temporary, temporary.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system into a sentence that names the file and the setting."""
    try:
        yield
    except OSError as error:
        cause = error.strerror or first_line(error)
        raise MachineError(
            f"The cost index {path} cannot be written or read ({cause}). Remove what stands there, or "
            "set FACTORY_HOME to a folder that can be written."
        ) from error


def _check(small: Costs, large: Costs, numbers: Ints) -> Costs:
    """32 bits that depend on all bits of a record and on its place."""
    mixed = large * _ODD[0] ^ small * _ODD[1] ^ (numbers.astype(np.uint64) + _HALF) * _ODD[2]
    return (mixed ^ mixed >> _HALF) * _ODD[0] >> _HALF
