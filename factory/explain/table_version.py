"""A table at a snapshot, as `factory diff` compares it: its documents, and the reasons for missing ones.

The documents of a table are its ids, or the kept ids of a table of verdicts. The reason for a missing
document comes from the upstream tables at the snapshots of the lineage, as the stages' views read them
(`factory.explain.stages`); or the document was never there.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from factory.errors import ConfigurationError
from factory.explain.named_state import named_state
from factory.explain.stages.registry import STAGES
from factory.explain.stages.removals import REMOVALS, Read
from factory.explain.upstream import made_of
from factory.lake.names import TableName, holds_bad_records
from factory.lake.tables import Lake

ABSENT = "absent"  # the cause for a document that no upstream table contains

_CAUSE_OF_REMOVAL = {  # the columns of a cause, and of the removal that it is
    "doc_id": "doc_id",
    "cause": "reason",
    "value": "value",
    "threshold": "limit",
    "duplicate_of": "partner",
    "kept_document": "kept_document",
    "repository": "sentence",
}
CAUSES = pa.schema([(name, REMOVALS.field(column).type) for name, column in _CAUSE_OF_REMOVAL.items()])
ABOUT = pa.schema(
    [("doc_id", pa.string()), ("source", pa.string()), ("key", pa.string()), ("n_bytes", pa.int64())]
)


@dataclass(frozen=True)
class TableVersion:
    """A table at a snapshot, with the snapshots of all its upstream tables."""

    lake: Lake
    table: TableName
    snapshot_id: int
    made_of: dict[TableName, int]

    @classmethod
    def of(cls, lake: Lake, text: str) -> TableVersion:
        """Return the version that `text` names; raises what `named_state` raises."""
        state = named_state(lake, text)
        upstream = dict(made_of(lake, state.table, state.snapshot_id))
        return cls(lake, state.table, state.snapshot_id, upstream)

    def documents(self) -> pa.Array:
        """Return the sorted ids of its documents; raise ConfigurationError for a table without documents."""
        columns = self.lake.table(self.table).schema().column_names
        if "segments" in columns:
            segments = self._read(self.table, ["segments"])["segments"].combine_chunks()
            ids = pc.struct_field(pc.list_flatten(segments), "doc_id")
        elif "doc_id" in columns:
            where = "kept = true" if "kept" in columns else AlwaysTrue()
            ids = self._read(self.table, ["doc_id"], where)["doc_id"].combine_chunks()
        else:
            raise ConfigurationError(
                f"{self.table} has no documents to compare, its columns are {', '.join(columns)}. "
                "Compare tables such as filtered, deduplicated or packed."
            )
        ids = ids.unique()
        return ids.take(pc.sort_indices(ids))

    def causes(self, ids: pa.Array) -> pa.Table:
        """Return why each of `ids` is missing: one or more rows of `CAUSES` each."""
        removals = pa.Table.from_batches(
            [batch for view in STAGES for batch in view.removals(self._pinned, ids)], REMOVALS
        )
        causes = removals.select(list(_CAUSE_OF_REMOVAL.values())).rename_columns(list(_CAUSE_OF_REMOVAL))
        unexplained = ids.filter(pc.invert(pc.is_in(ids, causes["doc_id"].combine_chunks())))
        absent = {"doc_id": unexplained, "cause": pa.repeat(ABSENT, len(unexplained))}
        missing = [absent.get(field.name, pa.nulls(len(unexplained), field.type)) for field in CAUSES]
        return pa.concat_tables([causes.cast(CAUSES), pa.table(missing, schema=CAUSES)]).combine_chunks()

    def verdicts(self) -> list[tuple[TableName, int]]:
        """Return the tables of verdicts behind it, or itself, with the snapshot of each."""
        return [(table, self._pinned.snapshot(table)) for table in self._pinned.tables("filtered")]

    def about(self, ids: pa.Array) -> pa.Table:
        """Return source, key and size of the `ids` in its raw tables: rows of `ABOUT`."""
        raw = [table for table in self._pinned.tables("raw") if not holds_bad_records(table)]
        rows = [self._read(table, ABOUT.names).select(ABOUT.names).cast(ABOUT) for table in raw]
        every = pa.concat_tables([ABOUT.empty_table(), *rows])
        return every.filter(pc.is_in(every["doc_id"], ids))

    @property
    def _pinned(self) -> Read:
        """The table and its upstream tables, each at its snapshot."""
        pinned = {**self.made_of, self.table: self.snapshot_id}
        return Read(self.lake, pinned.keys(), pinned, subject=self.table)

    def _read(
        self,
        table: TableName,
        columns: list[str],
        where: BooleanExpression | str = AlwaysTrue(),  # noqa: B008
    ) -> pa.Table:
        return self.lake.read(table, columns, where, self._pinned.snapshot(table))
