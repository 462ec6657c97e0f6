"""Tables published as runs of their assets leave them, without Spark."""

from __future__ import annotations

import dagster as dg
import pyarrow as pa

from factory.lake.fingerprint import fingerprint
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.schemas.dedup import COMPONENTS
from factory.lake.tables import Lake
from factory.orchestration.table.code_parts import text_of
from factory.orchestration.table.reuse import listings_of
from factory.orchestration.table.table_asset import declaration_of
from tests.orchestration.runs import component_table


def component(name: str, *upstream: str, config: str = "", **options: object) -> dg.AssetsDefinition:
    """The asset of `dedup.<name>`, which reads tables of `dedup`."""

    @component_table(
        name=name,
        upstream={table: TableName("dedup", table) for table in upstream},
        config={"config": config},
        **options,
    )
    def made(**upstream):  # type: ignore[no-untyped-def]
        raise AssertionError(name)

    return made


def publish(
    lake: Lake, asset: dg.AssetsDefinition, *ids: str, code_version: str | None = None, values: bool = True
) -> None:
    """Replace the rows of an asset's table, made as the asset is declared from the tables that are there."""
    declared = declaration_of(asset)
    table = lake.create(declared.table, COMPONENTS)
    if table.current_snapshot() is not None:
        table.delete()
    rows = pa.Table.from_pylist(
        [{"doc_id": doc_id, "component": "1"} for doc_id in ids], schema=COMPONENTS.columns
    )
    lineage = Lineage(
        asset=str(declared.table),
        run_id="run",
        code_version=declared.code_version if code_version is None else code_version,
        config=declared.config,
        values=dict(declared.values) if values else {},
        code=text_of(declared.code),
        listings={key or "": files.to_text() for key, files in listings_of(declared, [None]).items()},
        upstream={str(of): lake.published(of).snapshot_id for of in declared.upstream.values()},
        content=str(fingerprint(rows.to_batches(), COMPONENTS.fingerprinted)),
    )
    table.append(rows, snapshot_properties=lineage.to_properties())
