"""A table at a snapshot, as `factory diff` compares it: its documents, and the reasons for missing ones.

The documents of a table are its ids, or the kept ids of a table of verdicts. The reason for a missing
document comes from the upstream tables at the snapshots of the lineage: failed rules, the kept duplicate, the
removed repository, a document without tokens, or a document that was never there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from factory.errors import ConfigurationError, NotFound, TableNotFound
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.repository import WITH_ITS_REPOSITORY, repository_id, why_removed
from factory.lake.tables import Lake

BEFORE = "before"  # `filtered.web@before` is the state published before the newest
NO_TOKENS = "no_tokens"  # the cause for a document without tokens, which no packed sequence contains
ABSENT = "absent"  # the cause for a document that no upstream table contains

CAUSES = pa.schema(
    [
        ("doc_id", pa.string()),
        ("cause", pa.string()),
        ("value", pa.float64()),
        ("threshold", pa.float64()),
        ("duplicate_of", pa.string()),
        ("repository", pa.string()),
    ]
)
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
        """Parse `namespace.name`, optionally followed by `@before` or `@<snapshot>`.

        Raises ConfigurationError for other texts, TableNotFound for a missing table or snapshot, NotFound if
        nothing was published before.
        """
        name, at, version = text.partition("@")
        table = TableName.parse(name)
        snapshot_id = lake.published(table).snapshot_id
        if version == BEFORE:
            snapshot_id = _before(lake, table, snapshot_id)
        elif at:
            if not version.isdecimal():
                raise ConfigurationError(
                    f"`{version}` is not a snapshot. Write {name}@{BEFORE} for the previous state, or an id "
                    "that factory tables --json shows."
                )
            snapshot_id = lake.published_at(table, int(version)).snapshot_id
        return cls(lake, table, snapshot_id, dict(_made_of(lake, table, snapshot_id)))

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
        found = [self._rejections(table, ids) for table in self._sources("filtered")]
        found += [self._duplicates(table, ids) for table in self._sources("dedup", "_decisions")]
        found += [self._empty(table, ids) for table in self._sources("tokenized") if table != self.table]
        known = pa.concat_tables([CAUSES.empty_table(), *found]).combine_chunks()
        rest = ids.filter(pc.invert(pc.is_in(ids, known["doc_id"])))
        return pa.concat_tables([known, _causes(doc_id=rest, cause=pa.array([ABSENT] * len(rest)))])

    def about(self, ids: pa.Array) -> pa.Table:
        """Return source, key and size of the `ids` in its raw tables: rows of `ABOUT`."""
        rows = [self._read(table, ABOUT.names).select(ABOUT.names).cast(ABOUT) for table in self._raw()]
        found = pa.concat_tables([ABOUT.empty_table(), *rows])
        return found.filter(pc.is_in(found["doc_id"], ids))

    def _raw(self) -> list[TableName]:
        return [it for it in self._sources("raw") if not it.name.endswith("_rejected")]

    def _sources(self, namespace: str, ending: str = "") -> list[TableName]:
        """Return the table itself and its upstream tables in a namespace, without earlier rounds."""
        found = sorted(it for it in {self.table, *self.made_of} if it.namespace == namespace)
        return [
            it
            for it in found
            if it.name.endswith(ending) and (it == self.table or not names.is_in_round(it.name))
        ]

    def _read(
        self,
        table: TableName,
        columns: list[str],
        where: BooleanExpression | str = AlwaysTrue(),  # noqa: B008
    ) -> pa.Table:
        return self.lake.read(table, columns, where, self._snapshot(table))

    def _snapshot(self, table: TableName) -> int:
        return self.snapshot_id if table == self.table else self.made_of[table]

    def _rejections(self, table: TableName, ids: pa.Array) -> pa.Table:
        rows = self._read(table, ["doc_id", "rejections", "kept"], "kept = false")
        rows = rows.filter(pc.is_in(rows["doc_id"], ids)).combine_chunks()
        lists = rows["rejections"].combine_chunks()
        failed = pc.list_flatten(lists)
        return _causes(
            doc_id=rows["doc_id"].combine_chunks().take(pc.list_parent_indices(lists)),
            cause=pc.struct_field(failed, "rule"),
            value=pc.struct_field(failed, "value"),
            threshold=pc.struct_field(failed, "threshold"),
        )

    def _duplicates(self, table: TableName, ids: pa.Array) -> pa.Table:
        columns = ["doc_id", "dataset", "reason", "similarity", "duplicate_of", "kept"]
        rows = self._read(table, columns, "kept = false")
        rows = rows.filter(pc.is_in(rows["doc_id"], ids))
        return _causes(
            doc_id=rows["doc_id"],
            cause=rows["reason"],
            value=rows["similarity"],
            duplicate_of=rows["duplicate_of"],
            repository=self._repositories(table, rows),
        )

    def _repositories(self, table: TableName, rows: pa.Table) -> pa.Array:
        """Return a sentence for each of `rows` that was removed with its repository, else null."""
        went = rows.filter(pc.is_in(rows["reason"], pa.array(WITH_ITS_REPOSITORY)))
        if not len(went):
            return pa.nulls(len(rows), pa.string())
        why = why_removed(self.lake, table, self._snapshot(table))
        of: dict[str, tuple[str | None, str | None]] = {}
        for raw in self._raw():
            found = self._read(raw, ["doc_id", "repository", "revision"])
            found = found.filter(pc.is_in(found["doc_id"], went["doc_id"].combine_chunks()))
            of |= {row["doc_id"]: (row["repository"], row["revision"]) for row in found.to_pylist()}

        def said(row: dict[str, str]) -> str | None:
            if row["reason"] not in WITH_ITS_REPOSITORY:
                return None
            return why(repository_id(row["dataset"], *of.get(row["doc_id"], (None, None))))

        return pa.array(map(said, rows.to_pylist()), pa.string())

    def _empty(self, table: TableName, ids: pa.Array) -> pa.Table:
        rows = self._read(table, ["doc_id"], "n_tokens = 0")["doc_id"].combine_chunks()
        rows = rows.filter(pc.is_in(rows, ids))
        return _causes(doc_id=rows, cause=pa.array([NO_TOKENS] * len(rows), pa.string()))


def _causes(**columns: pa.Array) -> pa.Table:
    """Return rows of `CAUSES`; missing columns are null."""
    n = len(columns["doc_id"])
    return pa.table({it.name: columns.get(it.name, pa.nulls(n, it.type)) for it in CAUSES}, schema=CAUSES)


def _made_of(lake: Lake, table: TableName, snapshot_id: int) -> Iterator[tuple[TableName, int]]:
    """Yield every upstream table of a snapshot with the snapshot that was read.

    The walk ends at expired snapshots and at models: their training documents, which include those of a
    variant's siblings, are not documents of the table.
    """
    waiting, seen = [(table, snapshot_id)], {table}
    while waiting:
        of, at = waiting.pop()
        try:
            upstream = lake.published_at(of, at).lineage.upstream
        except TableNotFound:
            continue
        for name, read_at in sorted(upstream.items()):
            found = TableName.parse(name)
            if found.namespace != "models" and found not in seen and _is_there(lake, found, read_at):
                seen.add(found)
                waiting.append((found, read_at))
                yield found, read_at


def _is_there(lake: Lake, table: TableName, snapshot_id: int) -> bool:
    return lake.exists(table) and lake.table(table).snapshot_by_id(snapshot_id) is not None


def _before(lake: Lake, table: TableName, snapshot_id: int) -> int:
    """Return the snapshot published before `snapshot_id`."""
    of = lake.table(table)
    parent = of.snapshot_by_id(snapshot_id).parent_snapshot_id
    while parent is not None and (snapshot := of.snapshot_by_id(parent)) is not None:
        if lake.published_at(table, parent).lineage.content:
            return int(parent)
        parent = snapshot.parent_snapshot_id
    raise NotFound(
        f"Nothing was published of {table} before its snapshot {snapshot_id}. Name a second table to compare."
    )
