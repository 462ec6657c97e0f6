"""Rows of a table at a snapshot, read by ordinal, page by page.

A table's rows carry ordinals 0 .. n-1, and all modules above this one use ordinals only. A table has the same
rows after a compaction and from any engine.

    ordinal -> row of the snapshot, rows numbered over its files     (index/snapshot_index, index/ordinals)
    row     -> page of each column, by the indexes on disk           (index/column_pages)
    pages   -> rows of the result, all sources of a batch at once    (`gather`, native)

Opening a known snapshot reads only the files of its page index, mapped into memory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blender.arrays import as_arrow, as_numpy
from blender.errors import CorruptPage, InvalidBlend, SourceGone
from blender.rows.counts import BYTES, COUNTS, PAGES, READS, ROWS, WAIT_S
from blender.rows.index.column_pages import ColumnPages, column_pages, discard_damaged
from blender.rows.index.ordinals import Ordinals
from blender.rows.index.snapshot_index import ORDINAL, kept_files, put_runs, snapshot_index
from blender.rows.lake_pages import LakePages, reading
from blender.rows.leaves import joined, leaves
from blender.rows.snapshot_facts import SnapshotFacts, facts_of
from blender.spec.source import SEGMENT_LENGTHS
from factory import _native

if TYPE_CHECKING:
    from pyiceberg.table import Table

Ints = npt.NDArray[np.int64]
PagePart: TypeAlias = "tuple[_native.PageIndex, Ints, Ints, bool]"

TOKENS, SEGMENTS = "tokens", "segments"

ReadType = TypeVar("ReadType")

_CHECKED_WHOLE = 1 << 22  # rows of a table, whose ordinals take 32 MiB
_LENGTH = f"{SEGMENTS}.list.element.length"
_BYTES = (pa.binary(), pa.string())


class SnapshotReader:
    """One snapshot of one table, open for reading by ordinal; safe for many threads.

    Raises InvalidBlend for a table without ordinals, SourceGone for missing data, and the errors of
    `blender.rows.lake_pages.reading`.
    """

    def __init__(self, facts: SnapshotFacts, pages: LakePages, load: Callable[[], Table]) -> None:
        """`load` returns the table, and is called only for a snapshot without an index on disk."""
        self.facts = facts
        self.table, self.snapshot_id = facts.table, facts.snapshot_id
        self.pages = pages
        self.schema = pa.schema([_delivered(field) for field in facts.schema])
        if ORDINAL not in self.schema.names:
            raise InvalidBlend(
                f"Table {self.table} has no column `{ORDINAL}`, by which Blender reads. Blend a packed table."
            )
        self.token_bytes, self.sequence_length = facts.token_bytes, facts.sequence_length
        self.described = f"Table {self.table} at snapshot {self.snapshot_id}"
        self._columns: dict[str, ColumnPages] = {}
        self._lock = threading.Lock()
        self._counted = (0, 0)
        with reading(self.described):
            self._files, runs = snapshot_index(pages.indexes, pages.files, facts, load)
        self._ordinals = Ordinals(
            runs,
            self._ordinals_of,
            self._ordinals_of_runs,
            f"{self.table} at snapshot {self.snapshot_id}",
            lambda checked: put_runs(pages.indexes, facts, checked),
        )
        self.n_rows = self._ordinals.n_rows

    @classmethod
    def at(cls, table: Table, snapshot_id: int, pages: LakePages) -> SnapshotReader:
        """The rows of a loaded table at a snapshot."""
        return cls(facts_of(table, snapshot_id), pages, lambda: table)

    @property
    def paths(self) -> list[str]:
        """The data files, in the order of their ordinals."""
        return [file.path for file in self._files]

    def kept_files(self, columns: Sequence[str]) -> list[str]:
        """The files of the page index that opening the snapshot for `columns` reads."""
        indexes, key = self.pages.indexes, self.facts.key
        leaves = [indexes.column_of_snapshot(key, leaf, "pages") for leaf in self.leaves(columns)]
        return [*kept_files(indexes, self.facts), *leaves]

    def fields(self, columns: Sequence[str]) -> list[pa.Field]:
        """The fields delivered for `columns`; raises InvalidBlend for a missing column."""
        fields = []
        for column in columns:
            if column not in self.schema.names:
                known = ", ".join(f"`{name}`" for name in self.schema.names)
                raise InvalidBlend(f"Table {self.table} has no column `{column}`. Its columns: {known}.")
            fields.append(self.schema.field(column))
        if TOKENS in columns and SEGMENTS in self.schema.names:
            fields.append(pa.field(SEGMENT_LENGTHS, pa.list_(pa.int32())))
        return fields

    def prepare(self, columns: Sequence[str]) -> None:
        """Put the indexes of `columns` on disk, and check the ordinals of a small table.

        A blend of many sources has small ones, and its first batch would wait for a check in each of them.
        """
        for leaf in self.leaves(columns):
            self.column(leaf)
        if self.n_rows <= _CHECKED_WHOLE:
            self._ordinals.check()

    def leaves(self, columns: Sequence[str]) -> list[str]:
        """The leaves of `columns` by their paths in Parquet."""
        return [leaf for field in self.fields(columns) for leaf in _leaves(field)]

    def read(self, ordinals: Ints, columns: tuple[str, ...]) -> pa.RecordBatch:
        """The rows of `ordinals` in the order given, with the fields of `columns`.

        Ordinals are below `n_rows` and may repeat.
        """
        fields = self.fields(columns)
        request = RowRequest(self, ordinals, np.arange(len(ordinals)), columns)
        arrays = gather([request], len(ordinals), fields)
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def rows(self, ordinals: Ints) -> Ints:
        """The row of each ordinal, counted over `paths`."""
        return self._ordinals.rows(ordinals)

    def column(self, leaf: str) -> ColumnPages:
        """The pages of a leaf, named by its path in Parquet."""
        found = self._columns.get(leaf)
        if found is None:
            with self._lock:
                found = self._columns.get(leaf)
                if found is None:
                    with reading(self.described):
                        found = column_pages(
                            self.pages.indexes, self.pages.files, self.facts.key, self._files, leaf
                        )
                    self._columns[leaf] = found
        return found

    def mend(self, leaf: str) -> bool:
        """Drop a damaged index of a leaf, so that it is made again; whether it was damaged."""
        kept = self._columns.get(leaf)
        if kept is None or not discard_damaged(self.pages.indexes, self.facts.key, self._files, leaf, kept):
            return False
        with self._lock:
            if self._columns.get(leaf) is kept:
                del self._columns[leaf]
        return True

    def close_files(self, leaf: str) -> None:
        """Close the files of a leaf once no thread reads them; the next read opens them by their paths."""
        with self._lock:
            self._columns.pop(leaf, None)

    def count(self, rows: int, waited_s: float) -> None:
        """Add the reads since the last call, their rows and the wait, to the counters of this process."""
        COUNTS.add(WAIT_S, self.table, waited_s)
        COUNTS.add(ROWS, self.table, rows)
        with self._lock:
            so_far = [group.index.read_so_far for column in self._columns.values() for group in column.groups]
            pages, n_bytes = sum(it[0] for it in so_far), sum(it[1] for it in so_far)
            before, self._counted = self._counted, (pages, n_bytes)
        if pages > before[0]:
            COUNTS.add(PAGES, self.table, pages - before[0])
            COUNTS.add(READS, self.table, pages - before[0])
            COUNTS.add(BYTES, self.table, n_bytes - before[1])

    def _ordinals_of(self, rows: Ints) -> Ints:
        return mending([self], ORDINAL, lambda: self._read_ordinals(rows))

    def _read_ordinals(self, rows: Ints) -> Ints:
        parts = [(*part, False) for part in self.column(ORDINAL).parts(rows, np.arange(len(rows)))]
        with reading(self.described):
            found = _native.gather_pages(parts[0][0].type, len(rows), parts, self.pages.cache)
        return as_numpy(found).astype(np.int64)

    def _ordinals_of_runs(self, rows: Ints, lengths: Ints) -> list[Ints]:
        """The ordinals of `lengths` rows from each of `rows` on; a run is in one file."""
        return mending([self], ORDINAL, lambda: self._read_runs(rows, lengths))

    def _read_runs(self, rows: Ints, lengths: Ints) -> list[Ints]:
        found: list[Ints] = [np.empty(0, dtype=np.int64)] * len(rows)
        with reading(self.described):
            for index, first, numbers in self.column(ORDINAL).parts(rows, np.arange(len(rows))):
                ends = (first + lengths[numbers] - 1).tolist()
                begin = np.array([index.page_of_row(row) for row in first.tolist()])
                n_pages = np.array([index.page_of_row(row) for row in ends]) + 1 - begin
                within = np.arange(n_pages.sum()) - np.repeat(np.cumsum(n_pages) - n_pages, n_pages)
                pages = iter(index.read_pages(np.repeat(begin, n_pages) + within, self.pages.cache))
                for number, row, page, n in zip(numbers.tolist(), first, begin, n_pages, strict=True):
                    read = np.concatenate([as_numpy(next(pages)) for _ in range(n)]).astype(np.int64)
                    skipped = int(row) - index.page(int(page))[3]
                    found[number] = read[skipped : skipped + int(lengths[number])]
        return found


@dataclass(frozen=True)
class RowRequest:
    """Rows of one source and their positions in a batch."""

    reader: SnapshotReader
    ordinals: Ints
    positions: Ints
    columns: tuple[str, ...]
    reuse_pages: bool = False
    """Whether other rows of the same pages will be requested soon: their pages stay in the cache."""


def gather(requests: Sequence[RowRequest], n: int, fields: Sequence[pa.Field]) -> list[pa.Array]:
    """The columns of a batch of `n` rows, each page read once; null in rows of sources without the column.

    All sources belong to one lake.
    """
    pages, began = requests[0].reader.pages, time.perf_counter()
    located = [(request, request.reader.rows(request.ordinals)) for request in requests]
    arrays = []
    for field in fields:
        name = TOKENS if field.name == SEGMENT_LENGTHS else field.name
        having = [
            (one, rows)
            for one, rows in located
            if name in one.columns and (field.name != SEGMENT_LENGTHS or SEGMENTS in one.reader.schema.names)
        ]
        parts = [_leaf(leaf, field, having, n, pages) for leaf in _leaves(field)]
        arrays.append(_lengths(parts[0]) if field.name == SEGMENT_LENGTHS else joined(field.type, parts))
    waited = time.perf_counter() - began
    for request in requests:
        request.reader.count(len(request.ordinals), waited * len(request.ordinals) / max(1, n))
    return arrays


def _leaf(
    leaf: str, field: pa.Field, having: Sequence[tuple[RowRequest, Ints]], n: int, pages: LakePages
) -> pa.Array:
    """One leaf of a column for all sources; each type of it is read on its own."""
    readers = [one.reader for one, _ in having]
    return mending(readers, leaf, lambda: _read_leaf(leaf, field, having, n, pages))


def mending(readers: Sequence[SnapshotReader], leaf: str, read: Callable[[], ReadType]) -> ReadType:
    """The result of `read`, which is retried after damaged page indexes are made again and files reopened.

    A restored file usually replaces the damaged one under the same path, but a file that is already open
    stays the damaged one. Closing every file after a failure lets the next read open the restored ones.
    """
    try:
        return read()
    except SourceGone as error:
        for reader in readers:
            if isinstance(error, CorruptPage):
                reader.mend(leaf)
            reader.close_files(leaf)
    try:
        return read()
    except SourceGone:
        for reader in readers:
            reader.close_files(leaf)
        raise


def _read_leaf(
    leaf: str, field: pa.Field, having: Sequence[tuple[RowRequest, Ints]], n: int, pages: LakePages
) -> pa.Array:
    kinds: dict[str, list[PagePart]] = {}
    for one, rows in having:
        for index, of_index, positions in one.reader.column(leaf).parts(rows, one.positions):
            kind = "" if field.type in _BYTES else str(index.type)
            kinds.setdefault(kind, []).append((index, of_index, positions, one.reuse_pages))
    described = having[0][0].reader.described if len(having) == 1 else "The sources of a blend"
    with reading(described):
        if len(kinds) == 1:
            (parts,) = kinds.values()
            kind = field.type if field.type in _BYTES else parts[0][0].type
            try:
                return _native.gather_pages(kind, n, parts, pages.cache)
            except NotImplementedError:
                by_ids = _by_field_ids(parts)
                if len(by_ids) == 1:
                    raise
                return _of_several(by_ids, _plain(kind), n, pages)
        return _of_several(list(kinds.values()), field.type, n, pages)


def _by_field_ids(parts: Sequence[PagePart]) -> list[list[PagePart]]:
    """Parts of one nested type by the ids that their table gave to its fields.

    A table with another column, such as one of pictures, has other ids in all its nested columns.
    """
    groups: dict[bytes, list[PagePart]] = {}
    for part in parts:
        groups.setdefault(pa.schema([pa.field("", part[0].type)]).serialize().to_pybytes(), []).append(part)
    return list(groups.values())


def _of_several(by_kind: Sequence[list[PagePart]], kind: pa.DataType, n: int, pages: LakePages) -> pa.Array:
    """One array from leaves of several types, or of none."""
    found, indices = [pa.nulls(1, kind)], np.zeros(n, dtype=np.int64)
    rows = 1
    for parts in by_kind:
        compact, first = [], 0
        for index, of_index, positions, again in parts:
            compact.append((index, of_index, np.arange(first, first + len(positions)), again))
            indices[positions] = rows + np.arange(first, first + len(positions))
            first += len(positions)
        array = _native.gather_pages(parts[0][0].type, first, compact, pages.cache)
        found.append(array.cast(kind))
        rows += first
    return pa.concat_arrays(found).take(as_arrow(indices))


def _leaves(field: pa.Field) -> list[str]:
    return [_LENGTH] if field.name == SEGMENT_LENGTHS else leaves(field.name, field.type)


def _lengths(segments: pa.Array) -> pa.Array:
    if segments.type == pa.list_(pa.int32()):  # no source has segments
        return segments
    lengths = pc.struct_field(segments.values, 0).cast(pa.int32())
    mask = segments.is_null() if segments.null_count else None
    return pa.ListArray.from_arrays(segments.offsets.cast(pa.int32()), lengths, mask=mask)


def _delivered(field: pa.Field) -> pa.Field:
    """The field as delivered: one type per column, whichever variant an engine wrote."""
    return pa.field(field.name, _plain(field.type))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([_delivered(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    return kind
