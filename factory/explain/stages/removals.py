"""Why documents left: one shape for the removals by every stage, read at pinned snapshots."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, In

from factory.lake import names
from factory.lake.files.stream import stream
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.lake.tables import Lake

REMOVALS = pa.schema(
    [
        ("doc_id", pa.string()),
        ("outcome", pa.string()),  # what became of the document, one word: `filtered`, `duplicate`
        ("reason", pa.string()),  # the rule that it fails, or the word of the decision
        ("value", pa.float64()),  # what was measured: of a rule its number, of a duplicate the similarity
        ("limit", pa.float64()),  # the limit that the value breaks; null unless a rule decided
        ("partner", pa.string()),  # the document that it duplicates
        ("kept_document", pa.string()),  # the document that stayed in its place
        ("sentence", pa.string()),  # what the other columns do not tell, for a person
    ]
)
"""A document that left has a row for each rule that it fails, else one row. Its rows stand together."""

_LISTED = 10_000  # ids that are compared while a table is read; more are compared afterwards


@dataclass(frozen=True)
class Removal:
    """A row of `REMOVALS`."""

    doc_id: str
    outcome: str
    reason: str
    value: float | None = None
    limit: float | None = None
    partner: str | None = None
    kept_document: str | None = None
    sentence: str | None = None


def removals_of(**columns: pa.Array | str) -> pa.RecordBatch:
    """Return rows of `REMOVALS`; a text fills its column, a missing column is null."""
    n_rows = len(columns["doc_id"])

    def column(field: pa.Field) -> pa.Array:
        values = columns.get(field.name)
        if values is None:
            return pa.nulls(n_rows, field.type)
        return pa.repeat(values, n_rows) if isinstance(values, str) else values.cast(field.type)

    return pa.RecordBatch.from_arrays([column(field) for field in REMOVALS], schema=REMOVALS)


@dataclass(frozen=True)
class Read:
    """The tables of a lake that a stage's view may read, each at one snapshot.

    `pinned` has the snapshots; without it every table is read at its newest snapshot at the first request. In
    tables that several datasets share, only the rows of `dataset` count, if there is one. `subject` is the
    table in question: an earlier round of filters counts only if it is the subject. `advance` gets the
    numbers of rows that were streamed.
    """

    lake: Lake
    names: Collection[TableName]
    pinned: Mapping[TableName, int] | None = None
    dataset: str | None = None
    subject: TableName | None = None
    advance: Callable[[int], object] = lambda _n_rows: None
    _newest: dict[TableName, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def tables(self, namespace: str, ending: str = "") -> list[TableName]:
        """Return the tables of a namespace with an ending, sorted."""
        return sorted(
            table
            for table in self.names
            if table.namespace == namespace
            and table.name.endswith(ending)
            and (table == self.subject or not names.is_in_round(table.name))
        )

    def has_rows(self, table: TableName) -> bool:
        """Whether the table may be read, and was published."""
        if table not in self.names:
            return False
        return self.pinned is not None or self.lake.table(table).current_snapshot() is not None

    def snapshot(self, table: TableName) -> int:
        """Return the snapshot at which a table is read; raises TableNotFound for an unpublished one."""
        if self.pinned is not None:
            return self.pinned[table]
        if table not in self._newest:
            self._newest[table] = self.lake.published(table).snapshot_id
        return self._newest[table]

    def columns(self, table: TableName) -> Collection[str]:
        """Return the columns of a table at its snapshot, which an earlier version may have written."""
        iceberg_table = self.lake.table(table)
        snapshot = iceberg_table.snapshot_by_id(self.snapshot(table))
        schema_id = None if snapshot is None else snapshot.schema_id
        return iceberg_table.schemas().get(schema_id or 0, iceberg_table.schema()).column_names

    def batches(
        self,
        table: TableName,
        schema: TableSchema,
        columns: Collection[str],
        ids: pa.Array | None = None,
        **equal: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows with the values `equal`, only of the documents `ids` if given.

        A table without rows yields none. Without `ids` the table is streamed, one batch of a file in memory
        at a time.
        """
        if not self.has_rows(table):
            return
        snapshot = self.snapshot(table)
        wanted = [*columns, *(name for name in equal if name not in columns)]
        conditions: list[BooleanExpression] = [EqualTo(name, value) for name, value in equal.items()]
        if ids is None:
            projection = pa.schema([schema.columns.field(name) for name in wanted])
            yield from self._streamed(table, snapshot, projection, conditions, equal)
            return
        if len(ids) <= _LISTED:
            conditions.append(In("doc_id", ids.to_pylist()))
        rows = self.lake.read(table, wanted, _all(conditions), snapshot)
        among = ids.cast(rows.schema.field("doc_id").type)
        yield from rows.filter(pc.is_in(rows["doc_id"], among)).combine_chunks().to_batches()

    def _streamed(
        self,
        table: TableName,
        snapshot: int,
        projection: pa.Schema,
        conditions: list[BooleanExpression],
        equal: Mapping[str, Any],
    ) -> Iterator[pa.RecordBatch]:
        iceberg_table = self.lake.table(table)
        skipped = self.lake.published_at(table, snapshot).rows
        for batch in stream(iceberg_table, snapshot, projection, _all(conditions)):
            rows = batch
            for name, value in equal.items():
                rows = rows.filter(pc.equal(rows[name], value))
            yield rows
            self.advance(batch.num_rows)
            skipped -= batch.num_rows
        self.advance(skipped)


def _all(conditions: list[BooleanExpression]) -> BooleanExpression:
    return reduce(And, conditions, AlwaysTrue())
