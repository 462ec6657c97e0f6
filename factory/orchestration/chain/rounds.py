"""The assets that filter a dataset in rounds, and which signals they can reuse.

    raw -> signals_r1 -> filtered_r1 -> signals_r2 -> filtered_r2 -> ... -> signals -> filtered

A round measures the documents that passed all earlier rounds, and its verdicts cover all documents: a
document that an earlier round rejected keeps its rejections. So `filtered.<dataset>`, the last round's table,
holds every document with every rule it fails.

Values are measured once. A round reads the signals of an earlier round, or of its base dataset, if these have
every column that its rules need for every document it measures. Otherwise the round measures, and its signals
table has its own name. The declarations alone tell whether a table covers the documents: every rule that the
table's documents passed must also precede the round, with limits as strict or stricter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dagster as dg
from pyspark.sql import DataFrame

from factory.filters.rounds import Round
from factory.filters.rule import Rule, TextRule, bounds
from factory.filters.stage import decide, measure, signals_schema
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.filters import FILTERED
from factory.lake_spark.documents import kept_documents
from factory.orchestration.asset.checks import holds
from factory.orchestration.asset.groups import dataset_group
from factory.orchestration.asset.table_asset import table_asset

A_VERDICT_HAS_ITS_REASONS = holds(
    "a_verdict_has_its_reasons", "kept = (size(rejections) = 0)", "kept", "rejections"
)


@dataclass(frozen=True)
class Measured:
    """A table of signals: its columns, and the rules that its documents passed before they were measured."""

    table: TableName
    signals: Mapping[str, str]
    passed: tuple[Rule, ...]

    def serves(self, rules: Sequence[Rule], passed: Sequence[Rule]) -> bool:
        """Whether the table has every value that `rules` need for every document that passed `passed`."""
        return signals_of(rules).items() <= self.signals.items() and all(
            any(implies(ours, theirs) for ours in passed) for theirs in self.passed
        )


@dataclass(frozen=True)
class FilterAssets:
    """The assets of all rounds, and every table of signals they may read."""

    assets: tuple[dg.AssetsDefinition, ...]
    measured: tuple[Measured, ...]


def filter_assets(
    dataset: str,
    rounds: Sequence[Round],
    measured: Sequence[Measured] = (),
    owners: Sequence[str] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
) -> FilterAssets:
    """The assets `signals` and `filtered` of every round of `dataset`.

    `measured` are existing signals, those of the base dataset of a variant. The assets have the partitions of
    the raw table, because each row describes one document. Raises ConfigurationError for a rule that does not
    exist.
    """
    assets: list[dg.AssetsDefinition] = []
    found = list(measured)
    passed: tuple[Rule, ...] = ()
    before: TableName | None = None
    declare = partial(
        table_asset, asset_group=dataset_group(dataset), owners=owners, partitions_def=partitions_def
    )
    for number, declared in enumerate(rounds, start=1):
        name = names.in_round(dataset, number, len(rounds))
        rules = declared.build()
        source = next((it for it in found if it.serves(rules, passed)), None)
        if source is None:
            source = Measured(names.signals(name), signals_of(rules), passed)
            found.append(source)
            assets.append(_signals(declare, name, rules, before))
        assets.append(_filtered(declare, name, rules, source.table, before))
        passed, before = (*passed, *rules), names.filtered(name)
    return FilterAssets(tuple(assets), tuple(found))


def signals_of(rules: Sequence[Rule]) -> dict[str, str]:
    """Return the kind of each signal column that `rules` read, and the code that measures it."""
    return {
        column: f"{kind} of {rule.source}" if isinstance(rule, TextRule) and rule.source else kind
        for rule in rules
        for column, kind in rule.signals.items()
    }


def implies(strict: Rule, loose: Rule) -> bool:
    """Whether every document that passes `strict` passes `loose`: equal rules, one limit inside the other."""
    if strict.signals != loose.signals or repr(strict.with_limit(loose.limit)) != repr(loose):
        return False
    (low, high), (least, most) = bounds(strict.limit), bounds(loose.limit)
    return low >= least and high <= most


def _signals(
    declare: Callable[..., Any], name: str, rules: Sequence[Rule], before: TableName | None
) -> dg.AssetsDefinition:
    left = f" that `{before}` kept" if before else ""

    @declare(
        namespace="signals",
        name=name,
        schema=signals_schema(rules),
        upstream={"documents": names.raw(name), **({"before": before} if before else {})},
        config={"signals": signals_of(rules)},
        description=f"Every measured value of every document of `{names.raw(name)}`{left}.",
    )
    def signals(documents: DataFrame, **upstream: DataFrame) -> DataFrame:
        measured = kept_documents(documents, upstream["before"]) if upstream else documents
        return measure(measured, rules)

    return signals


def _filtered(
    declare: Callable[..., Any],
    name: str,
    rules: Sequence[Rule],
    source: TableName,
    before: TableName | None,
) -> dg.AssetsDefinition:
    @declare(
        namespace="filtered",
        name=name,
        schema=FILTERED,
        upstream={"signals": source, **({"before": before} if before else {})},
        config={"rules": [repr(rule) for rule in rules]},
        description=f"The verdict of `{name}` on every document of `{names.raw(name)}`, with failed rules.",
        checks=[A_VERDICT_HAS_ITS_REASONS],
    )
    def filtered(signals: DataFrame, **upstream: DataFrame) -> DataFrame:
        if not upstream:
            return decide(signals, rules)
        before = upstream["before"]
        return decide(kept_documents(signals, before), rules).unionByName(before.where("NOT kept"))

    return filtered
