"""Assets without rows, for tests of what runs when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import dagster as dg
from pyspark.sql import DataFrame

from factory.lake.fingerprint import Fingerprint
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.schemas.dedup import COMPONENTS
from factory.lake.tables import Lake
from factory.orchestration.host.definitions import definitions
from factory.orchestration.table.declaration import OnDemand
from factory.orchestration.table.table_asset import declaration_of, table_asset
from factory.settings import Settings


def table(
    name: str,
    upstream: Sequence[str] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    side_tables: Sequence[str] = (),
    on_demand: OnDemand | None = None,
    files: Sequence[Path] | None = None,
) -> dg.AssetsDefinition:
    """The declaration of table `name`, `namespace.table`, made from `upstream` and `files`."""
    of = TableName.parse(name)

    @table_asset(
        namespace=of.namespace,
        name=of.name,
        asset_group="test",
        schema=COMPONENTS,
        side_tables=dict.fromkeys(side_tables, COMPONENTS),
        upstream={table.replace(".", "_"): TableName.parse(table) for table in upstream},
        partitions_def=partitions_def,
        on_demand=on_demand,
        files=None if files is None else lambda _: files,
    )
    def made(**upstream: DataFrame) -> DataFrame:
        raise AssertionError(name)

    return made


def publish(
    lake: Lake,
    asset: dg.AssetsDefinition,
    inputs: Mapping[str, str],
    listings: Mapping[str, str] | None = None,
) -> None:
    """Publish the tables of `asset` without rows, as made from `inputs`: a state of files by partition."""
    for output in declaration_of(asset).outputs:
        lineage = Lineage(
            asset=str(output.table),
            run_id="run",
            code_version="1",
            content=str(Fingerprint()),
            partitions={} if asset.partitions_def is None else dict.fromkeys(inputs, str(Fingerprint())),
            inputs=dict(inputs),
            listings=dict(listings or {}),
        )
        rows = output.schema.columns.empty_table()
        lake.create(output.table, output.schema).append(rows, snapshot_properties=lineage.to_properties())


def repository(assets: Sequence[dg.AssetsDefinition], **when: Sequence[object]) -> dg.RepositoryDefinition:
    """The code location of `assets` with its `sensors` and `schedules`."""
    return definitions(assets, Settings(), **when).get_repository_def()  # type: ignore[arg-type]


def keys(assets: Sequence[dg.AssetsDefinition]) -> list[dg.AssetKey]:
    """Every table of `assets`."""
    return [key for asset in assets for key in asset.keys]
