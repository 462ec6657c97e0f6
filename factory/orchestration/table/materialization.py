"""The events that Dagster records of a published table: its version, its figures and its chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from factory.counted import counted
from factory.lake.fingerprint import Fingerprint
from factory.lake.tables import Published
from factory.orchestration.host.history import LEFT_OUT
from factory.orchestration.host.resources import LakeRun
from factory.orchestration.keys import key_of
from factory.orchestration.table.declaration import Output, PartitionSelection
from factory.orchestration.table.progress import emit
from factory.orchestration.table.reuse import Omission
from factory.orchestration.table.rows import Rows


def shown_of(output: Output, rows: Rows, properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the figures and the chart of a published table with these table properties, as metadata.

    Dagster shows the chart of text in place, and the image behind a link. It plots figures over runs, so a
    single run is a dot there; the chart of text shows its distribution.
    """
    chart = output.chart(rows)
    return {
        "at a glance": dg.MetadataValue.md(chart.text),
        **output.figures(rows, properties),
        "chart": dg.MetadataValue.md(chart.image),
    }


def leave_out(context: dg.AssetExecutionContext, outputs: Sequence[Output], omission: Omission) -> None:
    """Record that a run left out a table made on demand, the last of `outputs`."""
    demand, rows = omission.demand, omission.rows
    emit(str(outputs[-1].table), "left out", rows, reason=demand.condition)
    sentence = f"{counted(rows, demand.noun)}, {demand.condition}, or if it is selected by name"
    for output in outputs:
        context.log_event(
            dg.AssetObservation(key_of(output.table), description="Left out", metadata={LEFT_OUT: sentence})
        )


def results(
    context: dg.AssetExecutionContext,
    published: Sequence[Published],
    parts: PartitionSelection,
    of_all: Mapping[str, Any],
    shown: Sequence[Mapping[str, Any]] = (),
) -> Iterator[dg.MaterializeResult]:
    """Yield a materialization of every output, with row count and content of each partition.

    `of_all` is metadata of every output, `shown` of each.
    """
    run: LakeRun = context.resources.lake
    for number, of in enumerate(published):
        key = key_of(of.table)
        version = of.lineage.content
        if parts.partitions is not None:
            contents = run.lake.partitions(of.table)
            for partition in parts.partitions:
                version = contents.lineage[partition].partitions[partition]
                said = {"dagster/partition_row_count": Fingerprint.parse(version).rows, "content": version}
                context.add_asset_metadata(said, asset_key=key, partition_key=partition)
        yield dg.MaterializeResult(
            asset_key=key,
            data_version=dg.DataVersion(version if len(parts.keys) == 1 else of.lineage.content),
            metadata={
                **(shown[number] if shown else {}),
                "dagster/row_count": of.rows,
                "bytes": of.size_bytes,
                "snapshot": str(of.snapshot_id),
                "content": of.lineage.content,
                # As text: a browser reads a number of JSON above 2^53 as another one.
                "upstream snapshots": dg.MetadataValue.json(
                    {table: str(at) for table, at in of.lineage.upstream.items()}
                ),
                **of_all,
            },
        )
