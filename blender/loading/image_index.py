"""The sizes of every picture of a snapshot, in two files that are mapped into memory.

    index = ImageIndex(reader)                  # made once a snapshot: one pass over widths and heights
    pictures([index], origins).width            # array of int64, a value a picture

A row has any number of pictures, so one file has a record a row, and another a record a picture. No byte of a
picture is read, because widths and heights are columns of their own.

    record of a row         pictures u32 | check u32 | number of its first picture u64
    record of a picture     width u32 | check u32 | height u64
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_numpy
from blender.errors import CorruptPage, InvalidRequest
from blender.loading.checked_records import (
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
from blender.loading.image_plan import StepImages
from blender.rows.snapshot_reader import RowRequest, SnapshotReader, gather
from blender.spec.row_order import Origins

Ints = npt.NDArray[np.int64]

IMAGES = "images"
"""The column of pictures."""
_SIZES = pa.field(IMAGES, pa.list_(pa.struct([("width", pa.int32()), ("height", pa.int32())])))
_CHUNK = 1 << 16  # rows read at a time


@dataclass(frozen=True)
class _Files:
    """The records of a snapshot's rows and of their pictures."""

    rows: Records
    pictures: Records


class ImageIndex:
    """The pictures of the rows of a snapshot; safe for many threads."""

    def __init__(self, reader: SnapshotReader, advance: Callable[[int], object] | None = None) -> None:
        """Make the files if they are not there; `advance` is called with the number of rows that were read.

        The table has pictures (`has_images`). Raises InvalidRequest for a picture without an extent, and the
        errors of `CostIndex`.
        """
        self._reader = reader
        self.path, self._pictures_path = _paths(reader)
        with file_errors(self.path):
            self.files = _mapped(reader) if is_made(reader) else _made(reader, advance)

    @property
    def bytes(self) -> int:
        """The bytes of both files."""
        return int(self.files.rows.nbytes + self.files.pictures.nbytes)

    def make_again(self) -> None:
        """Replace damaged files."""
        with file_errors(self.path):
            self.files = _made(self._reader)


def has_images(reader: SnapshotReader) -> bool:
    """Whether the rows of a snapshot may have pictures."""
    if IMAGES not in reader.schema.names:
        return False
    kind = reader.schema.field(IMAGES).type
    picture = kind.value_type if pa.types.is_list(kind) else kind
    names = {field.name for field in picture} if pa.types.is_struct(picture) else set()
    return {"width", "height"} <= names


def is_made(reader: SnapshotReader) -> bool:
    """Whether the index of a snapshot has its files, whole; raises OSError where they cannot be looked up."""
    rows, pictures = _paths(reader)
    return has_records(rows, reader.n_rows) and has_records(pictures, _n_pictures(reader))


def pictures(indexes: Mapping[int, ImageIndex], origins: Origins) -> StepImages:
    """The pictures of rows; the indexes are by the number of their source, and other sources have none."""
    images, faulty = _read(indexes, origins)
    if faulty:
        for number in faulty:
            indexes[number].make_again()
        images, faulty = _read(indexes, origins)
    if faulty:
        path = indexes[faulty[0]].path
        raise CorruptPage(f"{path} was made again and is damaged again. Check the disk of FACTORY_HOME.")
    return images


def _read(indexes: Mapping[int, ImageIndex], origins: Origins) -> tuple[StepImages, list[int]]:
    """The pictures of rows, and the sources with damaged files."""
    n_rows = len(origins.ordinal)
    counts, firsts = np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows, dtype=np.int64)
    of_source = [(number, rows) for number, rows in origins.by_source() if number in indexes]
    faulty = []
    for number, rows in of_source:
        files, ordinals = indexes[number].files, origins.ordinal[rows]
        n, first, wrong = values_of(files.rows[ordinals], ordinals)
        if len(wrong):
            faulty.append(number)
            continue
        counts[rows], firsts[rows] = n.astype(np.int64), first.astype(np.int64)
    begins = np.cumsum(counts) - counts
    row = np.repeat(np.arange(n_rows), counts)
    number_in_row = np.arange(len(row)) - begins[row]
    width, height = np.zeros(len(row), dtype=np.int64), np.zeros(len(row), dtype=np.int64)
    for number, rows in of_source:
        of_rows = counts[rows]
        place = _spread(begins[rows], of_rows)
        numbers = firsts[row[place]] + number_in_row[place]
        across, down, wrong = values_of(indexes[number].files.pictures[numbers], numbers)
        if len(wrong):
            faulty.append(number)
        width[place], height[place] = across.astype(np.int64), down.astype(np.int64)
    return StepImages(row, number_in_row, width, height), faulty


def _spread(begins: Ints, counts: Ints) -> Ints:
    """The numbers from each begin on, `counts` of them each."""
    ends = np.cumsum(counts)
    return np.repeat(begins - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def _paths(reader: SnapshotReader) -> tuple[Path, Path]:
    return path_of(reader, "images"), path_of(reader, "image-sizes")


def _n_pictures(reader: SnapshotReader) -> int:
    """The pictures of all rows, by the record of the last row; -1 if it is damaged."""
    if not reader.n_rows:
        return 0
    last = reader.n_rows - 1
    records = records_at(_paths(reader)[0], reader.n_rows)
    n, first, wrong = values_of(np.asarray(records[last:]), np.array([last]))
    return -1 if len(wrong) else int(n[0]) + int(first[0])


def _mapped(reader: SnapshotReader) -> _Files:
    rows, pictures = _paths(reader)
    return _Files(records_at(rows, reader.n_rows), records_at(pictures, _n_pictures(reader)))


def _made(reader: SnapshotReader, advance: Callable[[int], object] | None = None) -> _Files:
    rows, pictures = _paths(reader)
    n_pictures = 0
    with new_file(rows) as of_rows, new_file(pictures) as of_pictures:  # rows take their name last
        for first in range(0, reader.n_rows, _CHUNK):
            ordinals = np.arange(first, min(first + _CHUNK, reader.n_rows))
            counts, width, height = _sizes(reader, ordinals)
            begins = n_pictures + np.cumsum(counts) - counts
            of_rows.write(records_of(_costs(counts), _costs(begins), ordinals).tobytes())
            numbers = n_pictures + np.arange(len(width))
            of_pictures.write(records_of(_costs(width), _costs(height), numbers).tobytes())
            n_pictures += len(width)
            if advance is not None:
                advance(len(ordinals))
    return _Files(records_at(rows, reader.n_rows), records_at(pictures, n_pictures))


def _sizes(reader: SnapshotReader, ordinals: Ints) -> tuple[Ints, Ints, Ints]:
    """The pictures of each row, and the width and height of each picture."""
    request = RowRequest(reader, ordinals, np.arange(len(ordinals)), (IMAGES,))
    (lists,) = gather([request], len(ordinals), [_SIZES])
    offsets: Ints = as_numpy(lists.offsets).astype(np.int64)
    counts = offsets[1:] - offsets[:-1]
    width, height = (as_numpy(lists.values.field(name)).astype(np.int64) for name in ("width", "height"))
    empty = np.flatnonzero((width < 1) | (height < 1))
    if len(empty):
        row = int(np.repeat(ordinals, counts)[empty[0]])
        raise InvalidRequest(
            f"{reader.described} has a picture of {width[empty[0]]} x {height[empty[0]]} pixels in the row "
            f"of ordinal {row:,}. Ingest the dataset again, which leaves out pictures that do not decode."
        )
    return counts, width, height


def _costs(values: Ints) -> Costs:
    return values.astype(np.uint64)
