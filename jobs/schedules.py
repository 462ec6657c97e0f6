"""The schedule `nightly`: update everything that has changed, in as few runs as partitions allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import dagster as dg

from factory.orchestration.host.partitions import batches
from factory.orchestration.host.queue import IN_TURN_TAG
from factory.orchestration.host.resources import PRIORITY_TAG, REUSE_TAG
from jobs.watched import Watched, notice
from spark_udfs.ingest.remote.files import resolve_branches_anew

DESCRIPTION = (
    "Reads every source again and updates the tables that a change affects; tables with unchanged code, "
    "configuration and input stay. Partitions by folder follow the folders on disk, and their runs go first, "
    "one after the other. Off until you start it."
)
ASSET_JOB = "__ASSET_JOB"  # Dagster's implicit job of all assets; only its runs may have any partitions


def nightly(
    assets: Sequence[dg.AssetsDefinition], watched: Sequence[Watched] = (), cron: str = "0 3 * * *"
) -> dg.ScheduleDefinition:
    """Return a schedule that reads every source again and updates the tables affected by a change.

    Tables with unchanged code, configuration and upstream content stay; partitions by folder follow the
    folders on disk. The schedule is off until somebody starts it.
    """

    @dg.schedule(name="nightly", cron_schedule=cron, job_name=ASSET_JOB, description=DESCRIPTION)
    def schedule(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        resolve_branches_anew()
        notice(watched, context.instance)
        keys = [
            key
            for asset in assets
            if asset.partitions_def is None
            or asset.partitions_def.get_partition_keys(dynamic_partitions_store=context.instance)
            for key in asset.keys
        ]
        runs = batches(assets, keys, context.instance)
        for number, batch in enumerate(runs):
            yield dg.RunRequest(
                run_key=f"{context.scheduled_execution_time:%Y-%m-%dT%H:%M}/{number}",
                asset_selection=list(batch.keys),
                # Later runs read the tables of earlier ones, so they wait in the queue.
                tags={
                    **batch.tags,
                    REUSE_TAG: "true",
                    IN_TURN_TAG: "true",
                    PRIORITY_TAG: str(len(runs) - number),
                },
            )

    return schedule
