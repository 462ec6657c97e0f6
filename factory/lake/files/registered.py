"""Texts that stay in somebody's own Parquet files: registered as an Iceberg table, read where they lie.

    registered.<dataset>      every column of the files, as they are     (files added, nothing copied)
    raw.<dataset>             ids and hashes; instead of a text its place, `text_at`
        text_at               file, column, row ----------------------> the text

A place also holds the size and the time of the file as they were when it was registered, so that a file
that changed since is told and never read for what it was. Readers of raw tables (`Lake.read`,
`factory.lake_spark.read`) fill in the text and leave the place out. `factory.lake.files.registration` makes
the registered table.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from factory.errors import DamagedFile, SourceChanged
from factory.lake.files.parquet import UNREADABLE, fault, open_parquet
from factory.lake.files.sequential import ForwardReader
from factory.lake.schemas import TEXT_AT

SCHEME = "file://"
_PIECE_BYTES = 64 << 20  # of texts handed over at once
_MARK = "\ufeff".encode()  # a byte order mark is no text


class Place(NamedTuple):
    """Where a text lies: the fields of `TEXT_AT`."""

    file: str
    column: str
    row: int
    file_bytes: int
    modified_ns: int


def location(path: str | bytes) -> str:
    """The location of a file as tables name it."""
    return SCHEME + os.fsdecode(path)


def filled(rows: pa.Table) -> pa.Table:
    """Rows of a raw table with their texts filled in and without the column `text_at`."""
    if TEXT_AT.name not in rows.column_names:
        return rows
    if "text" in rows.column_names:
        read = pa.chunked_array(
            list(Texts().read(rows[TEXT_AT.name].combine_chunks().to_pylist())), pa.string()
        )
        text = pc.coalesce(rows["text"], read.cast(rows["text"].type))
        rows = rows.set_column(rows.column_names.index("text"), rows.schema.field("text"), text)
    return rows.drop_columns([TEXT_AT.name])


class Texts:
    """Reads texts by their places. Places in the order of files and rows cost one pass over the column."""

    def __init__(self) -> None:
        self._open: _Column | None = None

    def read(self, places: Sequence[Mapping[str, Any] | None]) -> Iterator[pa.Array]:
        """The texts at `places`, null where there is none, as arrays of bounded size one after the other.

        Raises SourceChanged for a file that is not as it was when it was registered.
        """
        by_file: dict[tuple[str, str, int, int], list[tuple[int, int]]] = defaultdict(list)
        for index, place in enumerate(places):
            if place is not None:
                at = Place(**place)
                by_file[(at.file, at.column, at.file_bytes, at.modified_ns)].append((at.row, index))
        taken: list[pa.Array] = []
        order: list[int | None] = [None] * len(places)
        read = 0
        for key in sorted(by_file):
            wanted = sorted(by_file[key])
            if self._open is None or self._open.key != key:
                self._open = _Column(key)
            taken += self._open.take([row for row, _ in wanted])
            for _, index in wanted:
                order[index], read = read, read + 1
        texts = pa.concat_arrays(taken) if taken else pa.array([], pa.large_binary())
        yield from _pieces(texts.take(pa.array(order, pa.int64())))


def _pieces(texts: pa.Array) -> Iterator[pa.Array]:
    if texts.nbytes > _PIECE_BYTES and len(texts) > 1:
        yield from _pieces(texts[: len(texts) // 2])
        yield from _pieces(texts[len(texts) // 2 :])
    else:
        yield _without_marks(texts).cast(pa.binary()).cast(pa.string())


def _without_marks(texts: pa.Array) -> pa.Array:
    """`texts` without the byte order mark at their beginning."""
    marked = pc.starts_with(texts, _MARK).fill_null(False)
    # `binary_slice` fails where nothing is left of a value.
    without = pc.binary_replace_slice(texts.filter(marked), 0, len(_MARK), b"")
    return pc.replace_with_mask(texts, marked, without)


class _Column:
    """One column of a file, read forwards from wherever it is; a row before that starts its group again."""

    def __init__(self, key: tuple[str, str, int, int]) -> None:
        self.key = key
        file, self._name, *_ = key
        self._path = file.removeprefix(SCHEME)
        self._require_unchanged()
        try:
            parquet = open_parquet(self._path, pre_buffer=False)
        except (*UNREADABLE, DamagedFile) as error:
            raise self._unreadable(error) from None
        self._reader = ForwardReader(parquet, [self._name])

    def take(self, rows: Sequence[int]) -> list[pa.Array]:
        """The values of ascending `rows`, as arrays one after the other."""
        try:
            found = [batch.column(0).cast(pa.large_binary()) for batch in self._reader.take(rows)]
        except UNREADABLE as error:
            with pa.OSFile(self._path) as file:
                said = fault(self._path, [self._name], file)
            raise self._unreadable(DamagedFile(said) if said else error) from None
        self._require_unchanged()
        return found

    def _require_unchanged(self) -> None:
        _, _, n_bytes, modified_ns = self.key
        try:
            now = Path(self._path).lstat()
        except OSError as error:
            raise self._unreadable(error) from None
        if (now.st_size, now.st_mtime_ns) != (n_bytes, modified_ns):
            raise SourceChanged(
                f"The file {self._path} changed since its rows were registered "
                f"(it had {n_bytes:,} bytes and has {now.st_size:,}, or was written again). {_REMEDY}"
            )

    def _unreadable(self, error: Exception) -> SourceChanged:
        cause = getattr(error, "strerror", None) or " ".join(str(error).split())
        return SourceChanged(
            f"The file {self._path}, whose rows are registered, cannot be read ({cause}). {_REMEDY}"
        )


_REMEDY = "Put it back as it was, or materialize the raw table that reads it again."
