"""The schedule `nightly`: what has changed is made again, in as few runs as its partitions allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import dagster as dg

from factory.orchestration.asset.table_asset import PRIORITY_TAG
from factory.orchestration.host.instance import IN_TURN_TAG
from factory.orchestration.host.partitions import batches
from factory.orchestration.host.resources import REUSE_TAG
from jobs.sensors import Watched, notice

ASSET_JOB = "__ASSET_JOB"  # Dagster's own job of all assets, the one whose runs may have any partitions


def nightly(
    assets: Sequence[dg.AssetsDefinition], watched: Sequence[Watched] = (), cron: str = "0 3 * * *"
) -> dg.ScheduleDefinition:
    """A schedule that reads every source again and makes what follows from a change.

    Tables whose code, configuration and upstream content are unchanged stay as they are; partitions by folder
    are those whose folders are there. It is off until somebody starts it.
    """

    @dg.schedule(name="nightly", cron_schedule=cron, job_name=ASSET_JOB)
    def schedule(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        """Make again what has changed."""
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
                # What comes later reads what comes first, so it waits in the queue until that has ended.
                tags={
                    **batch.tags,
                    REUSE_TAG: "true",
                    IN_TURN_TAG: "true",
                    PRIORITY_TAG: str(len(runs) - number),
                },
            )

    return schedule
