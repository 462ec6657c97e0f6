"""Documents by file and row: each column read with the pages of its rows, registered texts in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from factory.lake.files.fetch import LocatedRows, LocatedTexts
from factory.lake.files.random_access import ScatteredRows

_SMALL = ("doc_id", "source", "key", "language", "repository", "path")

Positions = npt.NDArray[np.int64]


class DocumentReader:
    """Reads documents of a table; a file's footer is read once for each column.

    `storage` has the options of the lake for files in a store. With `in_place`, texts are in files of the
    user's.
    """

    def __init__(self, storage: Mapping[str, str], *, in_place: bool) -> None:
        self._storage, self._in_place = storage, in_place
        names = _SMALL if in_place else (*_SMALL, "text")
        self._scattered = {name: ScatteredRows(storage, name, pa.string()) for name in names}

    def read(self, files: Sequence[str], rows: Positions) -> list[dict[str, Any]]:
        """Return the fields of each document; `text` is None where there is none."""
        columns = {name: self._column(name, files, rows) for name in self._scattered}
        if self._in_place:
            columns["text"] = _by_file(files, rows, LocatedTexts(self._storage).read)
        metadata = _LazyMetadata(self._storage, files, rows)
        return [
            dict(zip(columns, values, strict=True)) | {"metadata": DocumentMetadata(metadata, number)}
            for number, values in enumerate(zip(*columns.values(), strict=True))
        ]

    def _column(self, name: str, files: Sequence[str], rows: Positions) -> list[Any]:
        try:
            return self._scattered[name].read(pa.array(files, pa.string()), pa.array(rows)).to_pylist()
        except (NotImplementedError, KeyError):  # pages that need others, or a file without the column
            return _by_file(files, rows, LocatedRows(self._storage, [name]).read)


class _LazyMetadata:
    """The metadata of some documents, read in one pass when the first is asked for: few kinds ask."""

    def __init__(self, storage: Mapping[str, str], files: Sequence[str], rows: Positions) -> None:
        self._storage, self._files, self._rows = storage, files, rows

    @cached_property
    def values(self) -> list[dict[str, str]]:
        """The metadata of each document."""
        pairs = _by_file(self._files, self._rows, LocatedRows(self._storage, ["metadata"]).read)
        return [dict(fields or ()) for fields in pairs]


class DocumentMetadata(Mapping[str, str]):
    """The metadata of one document."""

    def __init__(self, documents: _LazyMetadata, number: int) -> None:
        self._documents, self._number = documents, number

    def __getitem__(self, name: str) -> str:
        return self._documents.values[self._number][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._documents.values[self._number])

    def __len__(self) -> int:
        return len(self._documents.values[self._number])


def _by_file(files: Sequence[str], rows: Positions, read: Any) -> list[Any]:
    """Return the values of one column at (file, row), each file read forwards; None where it has none."""
    values: list[Any] = [None] * len(files)
    order = sorted(range(len(files)), key=lambda number: (files[number], rows[number]))
    for file, numbers in groupby(order, key=files.__getitem__):
        positions = list(numbers)
        begin = 0
        for batch in read(file, [int(rows[number]) for number in positions]):
            column = batch.column(0).to_pylist() if batch.num_columns else [None] * batch.num_rows
            for number, cell in zip(positions[begin:], column, strict=False):
                values[number] = cell
            begin += len(column)
    return values
