"""The tables of the lake through PyIceberg: create them, resolve snapshots, read at a snapshot.

`Lake` is cheap to create and holds no state but the catalog.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

from factory.errors import ConfigurationError, DamagedFile, TableNotFound
from factory.lake.catalog import asking_catalog, make_namespace, open_catalog
from factory.lake.catalog_file import table_files
from factory.lake.files.damage import UNPARSED, damaged_metadata, planning, require_manifests, scanning
from factory.lake.files.location import local_path
from factory.lake.files.registered import RegisteredTexts, filled
from factory.lake.fingerprint import Fingerprint
from factory.lake.lineage import Lineage
from factory.lake.names import STAGE_OF_NAMESPACE, TableName
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.ingest import TEXT_AT
from factory.settings import Settings

if TYPE_CHECKING:  # PyIceberg takes a second to import, and the definitions of assets open no table
    from pyiceberg.catalog import Catalog
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_LOG = logging.getLogger(__name__)

_PROPERTIES = {
    "format-version": "2",  # PyIceberg cannot write format 3
    "write.parquet.compression-codec": "zstd",
    "commit.retry.num-retries": "20",  # with 4, concurrent PyIceberg appends were seen to give up
}


@dataclass(frozen=True)
class Published:
    """The published state of a table: a snapshot of main with its lineage."""

    table: TableName
    snapshot_id: int
    rows: int
    size_bytes: int
    timestamp_ms: int
    lineage: Lineage
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the snapshot's rows (`said_of`)."""


@dataclass(frozen=True)
class Partitions:
    """The lineage with which each partition of a table was last replaced, by key.

    `complete` is False if further rows may exist: a snapshot has expired, or another writer has committed.
    """

    lineage: dict[str, Lineage] = field(default_factory=dict)
    complete: bool = True

    def content(self, key: str) -> Fingerprint | None:
        """Return the fingerprint of a partition's rows, None if it is unknown."""
        if key in self.lineage:
            return Fingerprint.parse(self.lineage[key].partitions[key])
        return Fingerprint() if self.complete else None


class Lake:
    """The tables of one lake."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def catalog(self) -> Catalog:
        """The PyIceberg catalog, opened on first use."""
        return open_catalog(self.settings)

    def table(self, name: TableName) -> Table:
        """Load a table; raises TableNotFound, and DamagedFile if its metadata cannot be read."""
        with asking_catalog(self.settings):
            try:
                return self.catalog.load_table(name.identifier)
            except (NoSuchTableError, NoSuchNamespaceError) as error:
                raise unknown_table(name) from error
            except UNPARSED as error:
                raise damaged_metadata(name, self.metadata_files([name]).get(name), error) from error

    def metadata_files(self, names: Iterable[TableName]) -> dict[TableName, str]:
        """Return the newest metadata file of each existing table, in one query.

        Empty for a REST catalog, which has no such query.
        """
        from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
        from sqlalchemy import select

        if not isinstance(self.catalog, SqlCatalog):
            return {}
        wanted = set(names)
        columns = (IcebergTables.table_namespace, IcebergTables.table_name, IcebergTables.metadata_location)
        asked = select(*columns).where(
            IcebergTables.catalog_name == self.catalog.name,
            IcebergTables.table_namespace.in_({name.namespace for name in wanted}),
        )
        with asking_catalog(self.settings), self.catalog.engine.connect() as connection:
            found = [(TableName(*of), file) for *of, file in connection.execute(asked)]
        return {name: file for name, file in found if file and name in wanted}

    def exists(self, name: TableName) -> bool:
        """Whether the catalog has the table, published or not, damaged or not."""
        from pyiceberg.catalog.sql import SqlCatalog

        if isinstance(self.catalog, SqlCatalog):
            return name in self.metadata_files([name])
        return bool(self.catalog.table_exists(name.identifier))

    def names(self) -> list[TableName]:
        """Every table of the lake in the order of the pipeline, then by name."""
        with asking_catalog(self.settings):
            known = {namespace for (namespace, *_) in self.catalog.list_namespaces()}
            return [
                TableName(namespace, name)
                for namespace in STAGE_OF_NAMESPACE
                if namespace in known
                for _, name in sorted(self.catalog.list_tables(namespace))
            ]

    def names_in_file(self) -> list[TableName]:
        """As `names`, but from the catalog's file if the lake has one: PyIceberg takes a second to import."""
        files = table_files(self.settings)
        return self.names() if files is None else list(files)

    def readable(
        self, names: Iterable[TableName] | None = None
    ) -> tuple[dict[TableName, Table], list[DamagedFile]]:
        """Load tables, by default all; return them and an error for each with unreadable metadata.

        Tables that another run drops meanwhile are in neither.
        """
        tables: dict[TableName, Table] = {}
        damaged: list[DamagedFile] = []
        for name in self.names() if names is None else names:
            try:
                tables[name] = self.table(name)
            except TableNotFound:
                continue
            except DamagedFile as error:
                damaged.append(error)
        return tables, damaged

    def create(self, name: TableName, schema: TableSchema, *, replaced: bool = False) -> Table:
        """Return the table with `schema`; create it if missing, add new columns and properties.

        A table with damaged metadata or manifests is recreated without its history if all its rows are about
        to be `replaced`; otherwise DamagedFile is raised. Raises ConfigurationError if the existing columns
        or partitioning do not fit the declared ones.
        """
        make_namespace(self.catalog, name.namespace)
        if replaced and self.exists(name):
            self._drop_damaged(name)
        if not self.exists(name):
            return self._create(name, schema)
        table = self.table(name)
        existing, declared = pa.struct(list(table.schema().as_arrow())), pa.struct(list(schema.columns))
        if schema.may_shrink:
            left = [of for of in existing if of.nullable and of.name not in schema.names]
            declared = pa.struct([*schema.columns, *left])
        for difference in _differences(existing, declared):
            raise ConfigurationError(
                f"Table {name} {difference}. A schema change must be additive: "
                "declare it as the table has it, or write a new table."
            )
        partitioned_by = tuple(field.name for field in table.spec().fields)
        if partitioned_by != schema.partition_by:
            raise ConfigurationError(
                f"Table {name} is partitioned by {_listed(partitioned_by)}, its declaration by "
                f"{_listed(schema.partition_by)}. Declare it as the table is, or write a new table."
            )
        if plain_type(existing) != plain_type(declared):
            with table.update_schema() as update:
                update.union_by_name(schema.columns)
        missing = {name: it for name, it in schema.properties.items() if name not in table.properties}
        if missing:
            with table.transaction() as transaction:
                transaction.set_properties(missing)
        return table

    def _drop_damaged(self, name: TableName) -> None:
        """Drop a table from the catalog if no engine can write to it any more; its files stay.

        A table is kept if its whole folder is missing: perhaps its disk is not mounted.
        """
        try:
            table = self.table(name)
            require_manifests(table, table.current_snapshot())
        except DamagedFile as error:
            kept = self.metadata_files([name]).get(name, "in the catalog's server")
            metadata = local_path(kept)
            if metadata is not None and not Path(metadata).parents[1].exists():
                raise
            _LOG.warning(
                "%s It is made again, without its earlier snapshots. Its metadata was %s.", error, kept
            )
            self.catalog.drop_table(name.identifier)

    def _create(self, name: TableName, schema: TableSchema) -> Table:
        from pyiceberg.partitioning import PartitionSpec
        from pyiceberg.transforms import IdentityTransform

        properties = _PROPERTIES | schema.properties
        with self.catalog.create_table_transaction(
            name.identifier, schema.columns, partition_spec=PartitionSpec(), properties=properties
        ) as transaction:
            if schema.partition_by:
                with transaction.update_spec() as update:
                    for column in schema.partition_by:
                        update.add_field(column, IdentityTransform(), column)
        return self.table(name)

    def published(self, name: TableName) -> Published:
        """Return the newest published snapshot; raise TableNotFound if nothing was ever published."""
        table = self.table(name)
        snapshot = table.current_snapshot()
        if snapshot is None:
            raise TableNotFound(f"Table {name} has never been published. {_with_upstream(name)}")
        return as_published(name, table, snapshot)

    def published_at(self, name: TableName, snapshot_id: int) -> Published:
        """Return a published snapshot by id; raise TableNotFound if it has expired."""
        return published_at(name, self.table(name), snapshot_id)

    def published_by(self, name: TableName, run_id: str) -> Published | None:
        """Return the snapshot that a run published, None if there is none or it has expired."""
        table = self.table(name)
        found = [as_published(name, table, snapshot) for snapshot in table.snapshots()]
        return next((it for it in found if it.lineage.run_id == run_id and it.lineage.content), None)

    def partitions(self, name: TableName, at: int | None = None) -> Partitions:
        """Return the partitions of a table by its snapshots up to `at` (default: the head of main)."""
        table = self.table(name)
        snapshot = table.current_snapshot() if at is None else table.snapshot_by_id(at)
        found: dict[str, Lineage] = {}
        while snapshot is not None:
            state = as_published(name, table, snapshot)
            lineage = state.lineage
            for key in lineage.partitions:
                found.setdefault(key, lineage)
            whole = bool(lineage.content) and not lineage.partitions  # replaced as a whole, or appended to
            if whole or not lineage.run_id:
                return Partitions(found, complete=state.rows == 0)
            if snapshot.parent_snapshot_id is None:
                return Partitions(found)
            snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id)
        return Partitions(found, complete=at is None and table.current_snapshot() is None)

    def read(
        self,
        name: TableName,
        columns: Sequence[str] = ("*",),
        where: BooleanExpression | str | None = None,
        snapshot_id: int | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Read rows of a published snapshot (by default the newest) as an Arrow table.

        Raises DamagedFile with table and file, for data files also with column and page, for registered texts
        with the row.
        """
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        at = self.published(name).snapshot_id if snapshot_id is None else snapshot_id
        selected, table = tuple(columns), self.table(name)
        verified = "text" in selected and TEXT_AT.name in table.schema().column_names
        hashed = "content_hash" in selected
        if verified:
            selected += (TEXT_AT.name,) if hashed else (TEXT_AT.name, "content_hash")
        row_filter = AlwaysTrue() if where is None else where
        scan = table.scan(row_filter=row_filter, selected_fields=selected, snapshot_id=at, limit=limit)
        with planning(table, scan.snapshot()):
            tasks = list(scan.plan_files())
        arrow = ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter, limit=limit)
        with scanning(table, tasks, ["*"]):
            rows = arrow.to_table(tasks)
        rows = filled(rows, RegisteredTexts(table.io.properties))
        return rows.drop_columns(["content_hash"]) if verified and not hashed else rows


def unknown_table(name: TableName) -> TableNotFound:
    """Return the error on a table that the catalog lacks."""
    return TableNotFound(f"The lake has no table {name}. {_with_upstream(name)}")


def _with_upstream(name: TableName) -> str:
    return f"Materialize it first, with its upstream tables: factory materialize '*{name}' --changed."


def said_of(table: Table, snapshot: Snapshot) -> Mapping[str, str]:
    """Return the properties of a snapshot's rows; a compaction inherits them from the snapshot before it."""
    from pyiceberg.table.snapshots import Operation

    one: Snapshot | None = snapshot
    while one is not None and one.summary is not None:
        said = one.summary.additional_properties
        if one.summary.operation is not Operation.REPLACE or Lineage.from_properties(said).content:
            return said
        one = table.snapshot_by_id(one.parent_snapshot_id) if one.parent_snapshot_id else None
    return {}


def published_at(name: TableName, table: Table, snapshot_id: int) -> Published:
    """Return a snapshot of a loaded table with its lineage; raise TableNotFound if it has expired."""
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise TableNotFound(
            f"Table {name} has no snapshot {snapshot_id}: it was expired. "
            "Materialize the tables that were made from it again."
        )
    return as_published(name, table, snapshot)


def as_published(name: TableName, table: Table, snapshot: Snapshot) -> Published:
    """Return a snapshot of a table with its lineage."""
    summary = snapshot.summary.additional_properties if snapshot.summary else {}
    return Published(
        table=name,
        snapshot_id=snapshot.snapshot_id,
        rows=int(summary.get("total-records", 0)),
        size_bytes=int(summary.get("total-files-size", 0)),
        timestamp_ms=snapshot.timestamp_ms,
        lineage=Lineage.from_properties(summary),
        properties=said_of(table, snapshot),
    )


def _differences(existing: pa.DataType, declared: pa.DataType, at: str = "") -> Iterator[str]:
    """Yield each way in which struct `declared` is not `existing` plus nullable fields, as a clause."""
    columns = {of.name: of for of in declared}
    for before in existing:
        column, now = f"{at}{before.name}", columns.pop(before.name, None)
        if now is None:
            yield f"has column `{column}`, which its declared schema lacks"
        elif before.nullable and not now.nullable:
            yield f"may have nulls in column `{column}`, which is declared as having none"
        elif pa.types.is_struct(before.type) and pa.types.is_struct(now.type):
            yield from _differences(before.type, now.type, f"{column}.")
        elif pa.types.is_list(plain_type(before.type)) and pa.types.is_list(now.type):
            was, declared_as = (pa.struct([of.type.value_field.with_name("element")]) for of in (before, now))
            yield from _differences(was, declared_as, f"{column}.")
        elif (old := plain_type(before.type)) != (new := plain_type(now.type)):
            yield f"has column `{column}` as {old}, which is declared as {new}"
    for added in columns.values():
        if not added.nullable:
            yield f"has no column `{at}{added.name}`, which is declared as having no nulls"


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type without details that differ between engines: wide offsets, element names, metadata."""
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return pa.string() if pa.types.is_large_string(kind) else pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = kind.value_field
        return pa.list_(pa.field("element", plain_type(element.type), element.nullable))
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(of.name, plain_type(of.type), of.nullable) for of in kind])
    return kind


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "no column"
