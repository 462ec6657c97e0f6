"""Rows of a table at a snapshot, read by ordinal.

A table's rows carry ordinals 0 .. n-1, and everything above this file speaks of ordinals alone. Which file
and row group hold an ordinal is learned from the footers (and, where a row group's ordinals are not one
run, from the column itself), so a table that was compacted or written by another engine gives the same
rows. Row groups are decoded whole and kept, sorted by ordinal, in a cache that all sources share.

    ordinals      0 ........ 99 | 100 ..... 149 | 150 ........... 399
    runs          group 0, row 0 | group 2, row 0 | group 1, row 0          sorted by first ordinal
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.table import Table

from blender.arrays import as_arrow, as_numpy
from blender.cache import SharedCache
from blender.config import SEGMENT_LENGTHS
from blender.errors import InvalidBlend, SourceGone
from factory.lake.schemas import SEQUENCE_LENGTH, TOKEN_BYTES

Ints = npt.NDArray[np.int64]
RowGroupCache = SharedCache[pa.RecordBatch]

ORDINAL, TOKENS, SEGMENTS = "ordinal", "tokens", "segments"


def row_group_cache(budget_bytes: int) -> RowGroupCache:
    """A cache of decoded row groups under `budget_bytes`."""
    return SharedCache(budget_bytes, lambda batch: batch.nbytes)


@dataclass(frozen=True)
class _RowGroup:
    path: str
    number: int
    metadata: pq.FileMetaData


@dataclass(frozen=True)
class _Run:
    """Consecutive ordinals at consecutive places of a row group sorted by ordinal."""

    first: int
    rows: int
    group: int
    place: int


class SnapshotReader:
    """One snapshot of one table, open for reading by ordinal; safe for many threads.

    Raises InvalidBlend for a table that cannot be read by ordinal and SourceGone for data that is not there.
    """

    def __init__(self, table: Table, snapshot_id: int, cache: RowGroupCache) -> None:
        self.table = ".".join(table.name())
        self.snapshot_id = snapshot_id
        self._io = table.io
        self._cache = cache
        snapshot = table.snapshot_by_id(snapshot_id)
        if snapshot is None:
            raise SourceGone(
                f"Table {self.table} has no snapshot {snapshot_id}: it has expired. Create the blend anew."
            )
        schema_id = snapshot.schema_id
        schema = table.schema() if schema_id is None else table.schemas()[schema_id]
        self.schema = pa.schema([_delivered(field) for field in schema.as_arrow()])
        if ORDINAL not in self.schema.names:
            raise InvalidBlend(
                f"Table {self.table} has no column `{ORDINAL}`, by which Blender reads. Blend a packed table."
            )
        # The table's own properties are those of its newest rows, perhaps of another tokenizer.
        said = snapshot.summary.additional_properties if snapshot.summary else {}
        self.token_bytes = said.get(TOKEN_BYTES, table.properties.get(TOKEN_BYTES))
        self.sequence_length = said.get(SEQUENCE_LENGTH, table.properties.get(SEQUENCE_LENGTH))
        self._groups: list[_RowGroup] = []
        runs = self._index(table)
        self._first = np.array([run.first for run in runs], dtype=np.int64)
        self._run_group = np.array([run.group for run in runs], dtype=np.int64)
        self._place = np.array([run.place for run in runs], dtype=np.int64)
        self.n_rows = runs[-1].first + runs[-1].rows if runs else 0

    def fields(self, columns: Sequence[str]) -> list[pa.Field]:
        """The fields delivered for `columns`; raises InvalidBlend for one the table lacks."""
        fields = []
        for column in columns:
            if column not in self.schema.names:
                known = ", ".join(f"`{name}`" for name in self.schema.names)
                raise InvalidBlend(f"Table {self.table} has no column `{column}`. Its columns: {known}.")
            fields.append(self.schema.field(column))
        if self._with_lengths(columns):
            fields.append(pa.field(SEGMENT_LENGTHS, pa.list_(pa.int32())))
        return fields

    def read(self, ordinals: Ints, columns: tuple[str, ...]) -> pa.RecordBatch:
        """The rows of `ordinals`, each below `n_rows`, in the order asked for, with the fields of `columns`.

        An ordinal may be asked for more than once. Raises SourceGone where a file cannot be read.
        """
        run = np.searchsorted(self._first, ordinals, side="right") - 1
        groups, places = self._run_group[run], self._place[run] + ordinals - self._first[run]
        parts, chosen = [], []
        for group in np.unique(groups):
            of_group = np.flatnonzero(groups == group)
            parts.append(self._row_group(int(group), columns).take(as_arrow(places[of_group])))
            chosen.append(of_group)
        if not parts:
            fields = self.fields(columns)
            return pa.RecordBatch.from_arrays(
                [pa.nulls(0, one.type) for one in fields], schema=pa.schema(fields)
            )
        if len(parts) == 1:
            return parts[0]
        return pa.concat_batches(parts).take(as_arrow(np.argsort(np.concatenate(chosen), kind="stable")))

    def _row_group(self, group: int, columns: tuple[str, ...]) -> pa.RecordBatch:
        """A decoded row group, sorted by ordinal, with the fields of `columns`."""
        where = self._groups[group]
        return self._cache.get((where.path, where.number, columns), lambda: self._decode(where, columns))

    def _with_lengths(self, columns: Sequence[str]) -> bool:
        return TOKENS in columns and SEGMENTS in self.schema.names

    def _index(self, table: Table) -> list[_Run]:
        runs: list[_Run] = []
        tasks = sorted(
            table.scan(snapshot_id=self.snapshot_id).plan_files(), key=lambda task: task.file.file_path
        )
        for task in tasks:
            if task.delete_files:
                raise InvalidBlend(
                    f"Table {self.table} has delete files at snapshot {self.snapshot_id}, which Blender does "
                    "not read. Rewrite its data files first."
                )
            metadata = self._metadata(task.file.file_path)
            for number in range(metadata.num_row_groups):
                group = _RowGroup(task.file.file_path, number, metadata)
                runs.extend(self._runs(group))
                self._groups.append(group)
        runs.sort(key=lambda run: run.first)
        expected = 0
        for run in runs:
            if run.first != expected:
                what = "is missing" if run.first > expected else "is there twice"
                raise InvalidBlend(
                    f"Table {self.table}: ordinal {min(run.first, expected):,} {what} at snapshot "
                    f"{self.snapshot_id}. Blender needs each of 0 .. n-1 once; write the table anew."
                )
            expected += run.rows
        return runs

    def _runs(self, group: _RowGroup) -> list[_Run]:
        number, rows = len(self._groups), group.metadata.row_group(group.number).num_rows
        if rows == 0:
            return []
        statistics = self._ordinal_statistics(group)
        if statistics is not None and statistics[1] - statistics[0] + 1 == rows:
            return [_Run(statistics[0], rows, number, 0)]
        ordinals = np.sort(as_numpy(_single(self._read(group, [ORDINAL]).column(ORDINAL))))
        starts = np.flatnonzero(np.diff(ordinals, prepend=ordinals[0] - 2) != 1)
        lengths = np.diff(starts, append=rows)
        return [
            _Run(int(ordinals[start]), int(length), number, int(start))
            for start, length in zip(starts, lengths, strict=True)
        ]

    def _ordinal_statistics(self, group: _RowGroup) -> tuple[int, int] | None:
        row_group = group.metadata.row_group(group.number)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            if column.path_in_schema == ORDINAL:
                found = column.statistics
                return (found.min, found.max) if found is not None and found.has_min_max else None
        raise InvalidBlend(
            f"File {group.path} of table {self.table} lacks column `{ORDINAL}`. Write the table anew."
        )

    def _metadata(self, path: str) -> pq.FileMetaData:
        try:
            with self._io.new_input(path).open() as file:
                return pq.read_metadata(file)
        except (OSError, pa.ArrowInvalid) as error:
            raise self._gone(path, error) from error

    def _read(self, group: _RowGroup, leaves: list[str]) -> pa.Table:
        try:
            with self._io.new_input(group.path).open() as file:
                return pq.ParquetFile(file, metadata=group.metadata).read_row_group(
                    group.number, columns=leaves
                )
        except (OSError, pa.ArrowInvalid) as error:
            raise self._gone(group.path, error) from error

    def _gone(self, path: str, error: Exception) -> SourceGone:
        reason = str(error).splitlines()[0]
        return SourceGone(
            f"File {path} of table {self.table} at snapshot {self.snapshot_id} cannot be read ({reason}). "
            "Restore it, or materialize the table again and create the blend anew."
        )

    def _decode(self, group: _RowGroup, columns: tuple[str, ...]) -> pa.RecordBatch:
        present = [group.metadata.schema.column(number).path for number in range(len(group.metadata.schema))]
        wanted = {ORDINAL, *columns}
        leaves = [path for path in present if path.split(".")[0] in wanted]
        if (
            self._with_lengths(columns) and SEGMENTS not in columns
        ):  # only the lengths: ids are most of the bytes
            leaves += [
                path for path in present if path.split(".")[0] == SEGMENTS and path.endswith(".length")
            ]
        table = self._read(group, leaves)
        ordinals = as_numpy(_single(table.column(ORDINAL)))
        if np.any(np.diff(ordinals) <= 0):
            order = np.argsort(ordinals, kind="stable")
            if np.any(np.diff(ordinals[order]) == 0):  # statistics alone do not show it
                raise SourceGone(
                    f"File {group.path} of table {self.table} holds an ordinal twice. Write the table anew."
                )
            table = table.take(as_arrow(order))
        arrays = [_column(table, field) for field in self.fields(columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(self.fields(columns)))


def _column(table: pa.Table, field: pa.Field) -> pa.Array:
    if field.name == SEGMENT_LENGTHS:
        segments = _single(table.column(SEGMENTS))
        return pa.ListArray.from_arrays(
            segments.offsets.cast(pa.int32()), pc.struct_field(segments.values, "length").cast(pa.int32())
        )
    if field.name not in table.column_names:  # a file older than the column
        return pa.nulls(table.num_rows, field.type)
    return _single(table.column(field.name)).cast(field.type)


def _single(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)


def _delivered(field: pa.Field) -> pa.Field:
    """The field as it is delivered: one type for each column, whatever an engine chose."""
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
