"""The groups of the Dagster graph: one per dataset, one per dedup group, and inside each its bookkeeping.

    web                 raw.web, signals.web, ... packed.web
    web/bookkeeping     raw.web_rejected, packed.web_placements
    web/strict          the tables of the variant web__strict
    dedup/prose         dedup.prose_bags, ... dedup.prose_decisions

Dagster draws `a/b` as a group inside group `a`.
"""

from __future__ import annotations

from factory.lake.names import VARIANT

MODELS = "models"
BLENDS = "blends"


def dataset_group(dataset: str) -> str:
    """Return the group of a dataset's tables; the group of a variant lies inside that of its dataset."""
    return dataset.replace(VARIANT, "/")


def comparison_group(dedup_group: str) -> str:
    """Return the group of the tables of a dedup group."""
    return f"dedup/{dataset_group(dedup_group)}"


def bookkeeping(asset_group: str) -> str:
    """Return the group, inside `asset_group`, of the tables that no later table reads."""
    return f"{asset_group}/bookkeeping"
