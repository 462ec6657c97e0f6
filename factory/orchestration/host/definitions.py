"""The Dagster definitions of a lake, checked as a whole: every upstream table must have a writer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import dagster as dg

from factory.errors import ConfigurationError
from factory.orchestration.host.graph import with_acyclic_groups
from factory.orchestration.host.input_size import input_bytes
from factory.orchestration.host.resources import resources
from factory.settings import Settings
from factory.suggestions import suggestion


@dg.configured(
    dg.colored_console_logger, {"log_level": dg.Field(str, is_required=False, default_value="WARNING")}
)
def _console_logger(config: dict[str, str]) -> dict[str, str]:
    """Dagster's logger from level WARNING; the lines of each step go to the record of a run alone."""
    return config


def definitions(
    assets: Sequence[dg.AssetsDefinition],
    settings: Settings,
    jobs: Sequence[dg.JobDefinition | object] = (),
    schedules: Sequence[dg.ScheduleDefinition] = (),
    sensors: Sequence[dg.SensorDefinition] = (),
    external: Sequence[dg.AssetSpec] = (),
) -> dg.Definitions:
    """Return the Dagster definitions of `assets` on the lake of `settings`.

    `external` are assets that no run makes. A group with arrows to and from another one is split
    (`factory.orchestration.host.graph`). Raises ConfigurationError if an asset reads a table that no asset
    writes.
    """
    require_writers(assets)
    graph_assets, external_assets = with_acyclic_groups(assets, external)
    return dg.Definitions(
        assets=[*graph_assets, *external_assets],
        jobs=list(jobs),  # type: ignore[arg-type]
        schedules=list(schedules),
        sensors=list(sensors),
        resources=resources(settings, partial(input_bytes, assets)),
        loggers={"console": _console_logger},
        executor=dg.in_process_executor,  # other executors start a process, and so a JVM, for every step
    )


def require_writers(assets: Iterable[dg.AssetsDefinition]) -> None:
    """Raise ConfigurationError if two of `assets` write a table, or none writes an upstream table."""
    declared = list(assets)
    outputs: set[dg.AssetKey] = set()
    for asset in declared:
        if common := outputs & asset.keys:
            raise ConfigurationError(
                f"Two assets write {min(common).to_user_string()}. Give one of them another `name`, or list "
                "it once."
            )
        outputs |= asset.keys
    for asset in declared:
        for argument, key in asset.keys_by_input_name.items():
            if key not in outputs:
                table, reader = (of.to_user_string() for of in (key, min(asset.keys)))
                writers = sorted(of.to_user_string() for of in outputs)
                raise ConfigurationError(
                    f"Asset {reader} reads {table} (argument `{argument}`), which no asset writes. "
                    f"{suggestion(table, writers)}"
                )
