"""Small tables that tests declare, and runs of assets on the lake of a test."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dagster as dg

from factory.lake.schemas.dedup import COMPONENTS
from factory.orchestration.host.partition_span import Span
from factory.orchestration.host.partitions import RunBatch
from factory.orchestration.host.resources import REUSE_TAG, resources
from factory.orchestration.table.table_asset import table_asset
from factory.settings import Settings

COLUMNS = "doc_id string, component string"
component_table = partial(table_asset, namespace="dedup", asset_group="test", schema=COMPONENTS)


def run(
    settings: Settings,
    *assets: dg.AssetsDefinition,
    selection: Sequence[str | dg.AssetKey] | None = None,
    reuse: bool = False,
    span: Span | None = None,
    readers: Sequence[dg.AssetKey] = (),
    **options: Any,
) -> dg.ExecuteInProcessResult:
    """Materialize assets, or a selection of them, in the partitions of `span`; failures raise nothing.

    `readers` are the assets that read tables of earlier runs of the same selection.
    """
    return dg.materialize(
        assets,
        selection=selection,
        resources=resources(settings),
        raise_on_error=False,
        tags={**RunBatch((), span, tuple(readers)).tags, **({REUSE_TAG: "true"} if reuse else {})},
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        **options,
    )


def failure(result: dg.ExecuteInProcessResult) -> str:
    """Return the sentence with which the one failed asset ended."""
    [data] = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    return str(data.user_failure_data.description if data.user_failure_data else data.error)


def violations(result: dg.ExecuteInProcessResult) -> dict[str, float]:
    """Return the violations of each check that did not pass."""
    found = [
        get_asset_check_evaluation
        for get_asset_check_evaluation in result.get_asset_check_evaluations()
        if not get_asset_check_evaluation.passed
    ]
    return {evaluation.check_name: evaluation.metadata["violations"].value for evaluation in found}  # type: ignore[misc]


def reads(assets: Any) -> dict[str, set[str]]:
    """Return the tables that assets write, each with the tables it reads."""
    return {
        key.to_user_string(): {
            source_key.to_user_string() for source_key in asset.keys_by_input_name.values()
        }
        for asset in assets
        for key in asset.keys
    }
