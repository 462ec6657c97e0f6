"""Texts that stay in the user's own Parquet files, registered as an Iceberg table and read in place.

    registered.<dataset>      every column of the files, unchanged       (files added, nothing copied)
    raw.<dataset>             ids and hashes, and `text_at` instead of the text
        text_at               file, column, row ----------------------> the text

`text_at` also holds the size and modification time of the file at registration (of an object in a store a
number made of its ETag), so that a reader detects a file that has changed since. Pages of the user's files
may lack checksums, so a reader also compares each text with its hash in the raw table
(`native/src/lake/content_hash.rs`), at a sixth of the CPU time of reading it. Readers of raw tables
(`Lake.read`, `factory.lake_spark.read`) fill in the text and drop the column.
`factory.lake.registration` makes the registered table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from factory import _native
from factory.errors import DamagedFile, SourceChanged
from factory.lake.files.location import local_path
from factory.lake.files.parquet import UNREADABLE, fault, open_parquet
from factory.lake.files.sequential import ForwardReader
from factory.lake.files.storage import FileVersion, opened, version_of
from factory.lake.schemas.ingest import TEXT_AT

_PIECE_BYTES = 64 << 20  # of texts per array
_REQUEST_BYTES = 1 << 20  # of a column in a store; readers stop behind the last text that they need
_MARK = "\ufeff".encode()  # byte order mark


class TextLocation(NamedTuple):
    """The location of a text: the fields of `TEXT_AT`; `modified_ns` is `FileVersion.stamp`."""

    file: str
    column: str
    row: int
    file_bytes: int
    modified_ns: int


def filled(rows: pa.Table, texts: RegisteredTexts | None = None) -> pa.Table:
    """Return rows of a raw table with `text` filled in and without `text_at`.

    Rows with a `text` need their `content_hash`. `texts` keeps a file open from one call to the next.
    """
    if TEXT_AT.name not in rows.column_names:
        return rows
    if "text" in rows.column_names:
        places = rows[TEXT_AT.name].combine_chunks().to_pylist()
        hashes = rows["content_hash"].combine_chunks()
        read = pa.chunked_array(list((texts or RegisteredTexts()).read(places, hashes)), pa.string())
        text = pc.coalesce(rows["text"], read.cast(rows["text"].type))
        rows = rows.set_column(rows.column_names.index("text"), rows.schema.field("text"), text)
    return rows.drop_columns([TEXT_AT.name])


class RegisteredTexts:
    """Reads texts by location. Locations in file and row order cost one pass over the column."""

    def __init__(self, storage: Mapping[str, str] = MappingProxyType({})) -> None:
        """`storage` has the options of the lake for files in a store, as `opened` takes them."""
        self._storage = storage
        self._open: _Column | None = None

    def read(
        self, places: Sequence[Mapping[str, Any] | None], hashes: pa.StringArray | pa.LargeStringArray
    ) -> Iterator[pa.StringArray]:
        """Yield the texts at `places`, null for null places, in arrays of bounded size.

        `hashes` has the content hash of each text. Raises SourceChanged for a file that has changed since its
        registration, DamagedFile for a text with changed bytes in a file of the same size and time.
        """
        by_file: dict[tuple[str, str, int, int], list[tuple[int, int]]] = defaultdict(list)
        for index, place in enumerate(places):
            if place is not None:
                at = TextLocation(**place)
                by_file[(at.file, at.column, at.file_bytes, at.modified_ns)].append((at.row, index))
        taken: list[pa.Array] = []
        order: list[int | None] = [None] * len(places)
        read = 0
        for key in sorted(by_file):
            wanted = sorted(by_file[key])
            if self._open is None or self._open.key != key:
                self._open = _Column(key, self._storage)
            taken += self._open.take([row for row, _ in wanted])
            for _, index in wanted:
                order[index], read = read, read + 1
        values = pa.concat_arrays(taken) if taken else pa.array([], pa.large_binary())
        located = pa.array([place is not None for place in places], pa.bool_())
        hashes = pc.if_else(located, hashes.cast(pa.string()), None)
        first = 0
        for texts in _pieces(values.take(pa.array(order, pa.int64()))):
            changed = _native.first_changed_text(texts, hashes.slice(first, len(texts)))
            if changed is not None:
                raise _changed_text(places[first + changed])
            yield texts.cast(pa.string(), safe=False)  # the hash is of a text that was UTF-8
            first += len(texts)


def _pieces(texts: pa.Array) -> Iterator[pa.Array]:
    if texts.nbytes > _PIECE_BYTES and len(texts) > 1:
        yield from _pieces(texts[: len(texts) // 2])
        yield from _pieces(texts[len(texts) // 2 :])
    else:
        yield _without_marks(texts).cast(pa.binary())


def _without_marks(texts: pa.Array) -> pa.Array:
    marked = pc.starts_with(texts, _MARK).fill_null(False)
    # `binary_slice` fails where nothing is left of a value.
    without = pc.binary_replace_slice(texts.filter(marked), 0, len(_MARK), b"")
    return pc.replace_with_mask(texts, marked, without)


def _changed_text(place: Mapping[str, Any] | None) -> DamagedFile:
    """Return the error for a text with another hash than in its raw table."""
    assert place is not None
    text = TextLocation(**place)
    return DamagedFile(
        f"The text in row {text.row:,}, column `{text.column}`, of the registered file "
        f"{local_path(text.file) or text.file} is not the one that was registered: its hash differs, "
        "although the file has the same size and time. Put the file back from a copy, or materialize the raw "
        "table that reads it again to take the text as it is now."
    )


class _Column:
    """One column of a file, read forwards; going back restarts the row group."""

    def __init__(self, key: tuple[str, str, int, int], storage: Mapping[str, str]) -> None:
        self.key, self._storage = key, storage
        self._file, self._name, *_ = key
        local = local_path(self._file)
        self._shown = local or self._file
        self._require_unchanged()
        try:
            if local is not None:
                parquet = open_parquet(local, pre_buffer=False)
            else:
                stream = opened(self._file, storage)
                parquet = open_parquet(stream, pre_buffer=False, buffer_size=_REQUEST_BYTES)
        except (*UNREADABLE, DamagedFile) as error:
            raise self._unreadable(error) from None
        self._reader = ForwardReader(parquet, [self._name])

    def take(self, rows: Sequence[int]) -> list[pa.Array]:
        """Yield the values at ascending `rows` in arrays."""
        try:
            found = [batch.column(0).cast(pa.large_binary()) for batch in self._reader.take(rows)]
        except UNREADABLE as error:
            with opened(self._file, self._storage) as file:
                said = fault(self._shown, [self._name], file)
            raise self._unreadable(DamagedFile(said) if said else error) from None
        self._require_unchanged()
        return found

    def _require_unchanged(self) -> None:
        _, _, n_bytes, modified_ns = self.key
        try:
            now = version_of(self._file, self._storage)
        except OSError as error:
            raise self._unreadable(error) from None
        if now != FileVersion(n_bytes, modified_ns):
            raise SourceChanged(
                f"The file {self._shown} changed since its rows were registered "
                f"(it had {n_bytes:,} bytes and has {now.n_bytes:,}, or was written again). {_REMEDY}"
            )

    def _unreadable(self, error: Exception) -> SourceChanged:
        cause = getattr(error, "strerror", None) or " ".join(str(error).split())
        return SourceChanged(
            f"The file {self._shown}, whose rows are registered, cannot be read ({cause}). {_REMEDY}"
        )


_REMEDY = "Put it back as it was, or materialize the raw table that reads it again."
