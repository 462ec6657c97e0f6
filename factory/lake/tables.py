"""The tables of the lake through PyIceberg: create, resolve to a snapshot, read at it.

Reading always names a snapshot. `Lake` is cheap to make and holds no state but the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform

from factory.errors import ConfigurationError, TableNotFound
from factory.lake.catalog import open_catalog
from factory.lake.lineage import Lineage
from factory.lake.names import STAGE_OF_NAMESPACE, TableName
from factory.lake.schemas import TableSchema
from factory.settings import Settings

_PROPERTIES = {
    "format-version": "2",  # PyIceberg cannot write format 3
    "write.parquet.compression-codec": "zstd",
    "commit.retry.num-retries": "20",  # with 4, concurrent PyIceberg appends were seen to give up
}


@dataclass(frozen=True)
class Published:
    """The published state of a table: one snapshot of main and what it says of itself."""

    table: TableName
    snapshot_id: int
    rows: int
    size_bytes: int
    timestamp_ms: int
    lineage: Lineage


class Lake:
    """The tables of one lake."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def catalog(self) -> Catalog:
        """The PyIceberg catalog, opened on first use."""
        return open_catalog(self.settings)

    def table(self, name: TableName) -> Table:
        """The table as it is now; raises TableNotFound."""
        try:
            return self.catalog.load_table(name.identifier)
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            raise TableNotFound(
                f"The lake has no table {name}. "
                f"Materialize it first: factory materialize {name.namespace}/{name.name}."
            ) from error

    def exists(self, name: TableName) -> bool:
        """Whether the table exists, published or not."""
        return self.catalog.table_exists(name.identifier)

    def names(self) -> list[TableName]:
        """Every table of the lake in the order of the line, then by name."""
        known = {namespace for (namespace, *_) in self.catalog.list_namespaces()}
        return [
            TableName(namespace, name)
            for namespace in STAGE_OF_NAMESPACE
            if namespace in known
            for _, name in sorted(self.catalog.list_tables(namespace))
        ]

    def create(self, name: TableName, schema: TableSchema) -> Table:
        """The table with `schema`, created where missing, widened where columns were added.

        Raises ConfigurationError when the existing columns do not fit the declared ones.
        """
        self.catalog.create_namespace_if_not_exists(name.namespace)
        if not self.exists(name):
            return self._create(name, schema)
        table = self.table(name)
        existing, declared = table.schema().as_arrow(), schema.columns
        missing = [column for column in existing.names if column not in declared.names]
        if missing:
            raise ConfigurationError(
                f"Table {name} has column `{missing[0]}`, which its declared schema lacks. "
                "A schema change must be additive: declare the column again or write a new table."
            )
        if set(declared.names) - set(existing.names):
            with table.update_schema() as update:
                update.union_by_name(declared)
        return table

    def _create(self, name: TableName, schema: TableSchema) -> Table:
        properties = _PROPERTIES | schema.properties
        with (
            self.catalog.create_table_transaction(
                name.identifier, schema.columns, partition_spec=PartitionSpec(), properties=properties
            ) as transaction,
            transaction.update_spec() as update,
        ):
            for column in schema.partition_by:
                update.add_field(column, IdentityTransform(), column)
        return self.table(name)

    def published(self, name: TableName) -> Published:
        """The newest published snapshot; raises TableNotFound where nothing was ever published."""
        snapshot = self.table(name).current_snapshot()
        if snapshot is None:
            raise TableNotFound(
                f"Table {name} has never been published. "
                f"Materialize it first: factory materialize {name.namespace}/{name.name}."
            )
        return _published(name, snapshot)

    def published_at(self, name: TableName, snapshot_id: int) -> Published:
        """A published snapshot by id; raises TableNotFound when it has expired."""
        snapshot = self.table(name).snapshot_by_id(snapshot_id)
        if snapshot is None:
            raise TableNotFound(
                f"Table {name} has no snapshot {snapshot_id}: it was expired. "
                "Materialize what was made from it again."
            )
        return _published(name, snapshot)

    def published_by(self, name: TableName, run_id: str) -> Published | None:
        """The snapshot a run published, None where it published none or it has expired."""
        found = [_published(name, snapshot) for snapshot in self.table(name).snapshots()]
        return next((it for it in found if it.lineage.run_id == run_id and it.lineage.content), None)

    def read(
        self,
        name: TableName,
        columns: Sequence[str] = ("*",),
        where: BooleanExpression | str = AlwaysTrue(),  # noqa: B008 - immutable
        snapshot_id: int | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Rows of a published snapshot (the newest by default) as an Arrow table."""
        at = self.published(name).snapshot_id if snapshot_id is None else snapshot_id
        scan = self.table(name).scan(
            row_filter=where, selected_fields=tuple(columns), snapshot_id=at, limit=limit
        )
        return scan.to_arrow()


def _published(name: TableName, snapshot: Snapshot) -> Published:
    summary = dict(snapshot.summary.additional_properties) if snapshot.summary else {}
    return Published(
        table=name,
        snapshot_id=snapshot.snapshot_id,
        rows=int(summary.get("total-records", 0)),
        size_bytes=int(summary.get("total-files-size", 0)),
        timestamp_ms=snapshot.timestamp_ms,
        lineage=Lineage.from_properties(summary),
    )
