"""A model that judges documents: the asset of its table, and the rule that reads it."""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg

from factory.filters.table_rule import TableRule


@dataclass(frozen=True)
class RuleModel:
    """The asset of `models.<name>`, and the rule `<name>` that reads it in a round of filters."""

    asset: dg.AssetsDefinition
    rule: TableRule
