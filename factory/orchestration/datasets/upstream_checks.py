"""Checks of the tables that models and rules read: each exists, and none is made from its reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import dagster as dg

from factory.filters.documents_table import documents_table
from factory.filters.rule import Rule
from factory.lake import names
from factory.lake.names import TableName
from factory.orchestration.declare.filters import rounds_of
from factory.orchestration.declare.located_yaml import InvalidValue, YamlPath
from factory.orchestration.declare.models import RuleModels
from factory.orchestration.declare.part import Declared
from factory.orchestration.table.table_asset import declaration_of
from factory.suggestions import unknown_name

_OF_DOCUMENTS = ("raw.", "deduplicated.", "filtered.")


def check_upstream(file: Declared, assets: Sequence[dg.AssetsDefinition]) -> None:
    """Raise InvalidValue for a table that two assets make, that none makes, or that decides itself."""
    makers = Counter(key.to_user_string() for asset in assets for key in asset.keys)
    for kind, name in file.section(RuleModels).entries():
        for made_table, n_makers in makers.items():
            if n_makers > 1 and made_table.startswith(str(names.model(name))):
                raise InvalidValue(
                    (kind, name), f"`{made_table}` is a table of another model too. Rename one."
                )
    upstream = {
        key.to_user_string(): {source.to_user_string() for source in asset.keys_by_input_name.values()}
        for asset in assets
        for key in asset.keys
    }
    for kind, name in file.section(RuleModels).entries():
        _check_model((kind, name), str(names.model(name)), upstream)
    columns = {
        str(output.table): output.schema.columns.names
        for asset in assets
        for output in declaration_of(asset).outputs
    }
    for place, dataset, source in _proxies(file):
        _require_table(place, source, upstream)
        if f"filtered.{dataset}" in {source, *_above(source, upstream)}:
            raise InvalidValue(
                place,
                f"The proxy learns from `{source}`, which the clusters decide themselves. Name a table "
                "before them, such as the dataset.",
            )
    for place, dataset, rule in _rules_of_tables(file):
        for table in rule.reads.values():
            _check_rule(place, str(names.filtered(dataset)), rule, table, upstream, columns)


def _check_model(place: YamlPath, model: str, upstream: Mapping[str, AbstractSet[str]]) -> None:
    for table in sorted(upstream[model]):
        _require_table(place, table, upstream)
        if model in _above(table, upstream):
            raise InvalidValue(
                place,
                f"It learns from `{table}`, which it decides itself. Name a table before its rules, such as "
                "the dataset.",
            )


def _check_rule(
    place: YamlPath,
    verdicts: str,
    rule: Rule,
    table: TableName,
    upstream: Mapping[str, AbstractSet[str]],
    columns: Mapping[str, Sequence[str]],
) -> None:
    _require_table(place, str(table), upstream)
    if str(table) == verdicts or verdicts in _above(str(table), upstream):
        raise InvalidValue(
            place,
            f"`{rule.name}` reads `{table}`, which is made from the verdicts that it decides. Name a table "
            "before its rules.",
        )
    column = rule.name.removeprefix(f"{table}.")
    if column != rule.name and column not in columns[str(table)]:
        raise InvalidValue(place, unknown_name(f"column of `{table}`:", column, columns[str(table)]))


def _require_table(place: YamlPath, table: str, upstream: Mapping[str, AbstractSet[str]]) -> None:
    if table not in upstream:
        near = [other for other in sorted(upstream) if other.startswith(_OF_DOCUMENTS)]
        raise InvalidValue(place, unknown_name("table", table, near))


def _rules_of_tables(file: Declared) -> Iterator[tuple[YamlPath, str, Rule]]:
    """Yield the rules that read tables, each with its dataset and the place of its declaration."""
    for entry in file.entries:
        if entry.shares_comparisons:
            continue
        for round_of_rules in rounds_of(entry):
            rules = [rule.of_dataset(entry.base) for rule in round_of_rules.build()]
            yield from ((entry.place, entry.name, rule) for rule in rules if rule.reads)


def _proxies(file: Declared) -> Iterator[tuple[YamlPath, str, str]]:
    """Yield the tables that train proxies of clusters, each with its dataset and its place."""
    for entry in file.entries:
        for number, round_of_rules in enumerate(rounds_of(entry) if not entry.shares_comparisons else ()):
            clusters = getattr(round_of_rules, "clusters", None)
            if clusters is not None and clusters.proxy is not None and not clusters.has_checkpoint:
                place = (*entry.place, "rounds", number, "clusters", "proxy")
                yield place, entry.name, str(documents_table(clusters.proxy))


def _above(table: str, upstream: Mapping[str, AbstractSet[str]]) -> set[str]:
    """Every table that a table is made from."""
    above: set[str] = set()
    waiting = [table]
    while waiting:
        sources = upstream.get(waiting.pop(), set()) - above
        above |= sources
        waiting += sources
    return above
