"""The dedup groups that a datasets file declares: the members, options and owners of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from factory.dedup.config import DedupConfig
from factory.dedup.repository_config import RepositoryConfig
from factory.errors import ConfigurationError
from factory.filters.documents_table import documents_table
from factory.lake import names
from factory.lake.names import TableName
from factory.orchestration.declare.dedup_fields import DecisionFields, GroupFields, GroupsSection
from factory.orchestration.declare.located_yaml import InvalidValue, LocatedYaml, YamlPath
from factory.orchestration.declare.part import Declared, Entry
from factory.suggestions import unknown_name

if TYPE_CHECKING:
    from factory.orchestration.chain.dedup.group import DedupGroup
    from factory.orchestration.chain.texts import Quality


def group_of(entry: Entry) -> str:
    """Return the dedup group of a dataset or variant; variants of one name share a group."""
    group = entry.dataset_fields(GroupFields).group or entry.dataset.default_group
    return group if entry.variant is None else names.variant(group, entry.variant)


def compared_entries(file: Declared) -> list[Entry]:
    """Return the entries that groups compare: captions do not tell pictures apart, so none with pictures."""
    return [entry for entry in file.entries if not entry.dataset.has_images]


def dedup_groups(file: Declared) -> dict[str, DedupGroup]:
    """Every dedup group by name; the groups of variants default to the options of the first.

    A group compares the documents at the end of the chains of its members. A variant that only decides
    differently shares all comparisons: its threshold joins the sweep of the base group. Raises InvalidValue
    for options that a group cannot have.
    """
    from factory.orchestration.chain.dedup.group import dedup_variant

    members: dict[str, list[Entry]] = defaultdict(list)
    deciding: dict[str, dict[str, Entry]] = defaultdict(dict)  # by group, by variant
    for entry in compared_entries(file):
        if entry.shares_comparisons:
            deciding[names.base(group_of(entry))][str(entry.variant)] = entry
        else:
            members[group_of(entry)].append(entry)
    groups = {}
    for name, entries in sorted(members.items()):
        groups[name] = _group(file, name, entries, deciding[name])
        for variant, entry in deciding[name].items():
            decisions = entry.fields(DecisionFields)
            group = dedup_variant(groups[name], variant, decisions.threshold, decisions.keep)
            groups[group.name] = group
    return dict(sorted(groups.items()))


def _group(file: Declared, name: str, entries: Sequence[Entry], variants: Mapping[str, Entry]) -> DedupGroup:
    """The dedup group of datasets or variants, with the thresholds of `variants` in its sweep."""
    from factory.orchestration.chain.dedup.group import dedup_group

    declared_options = file.section(GroupsSection).groups
    options_of = name if name in declared_options else names.base(name)
    place: YamlPath = ("groups", options_of)
    kind = entries[0].kind
    options = {**declared_options.get(options_of, {}), "kind": kind}
    repositories = _repositories(file.located, (*place, "repositories"), options)
    quality = _quality(file, place, options, entries)
    against = _against(file, place, options, entries)
    config = file.located.part(place, DedupConfig, options)
    thresholds = {entry.fields(DecisionFields).threshold for entry in variants.values()} - {None}
    if thresholds:  # a sweep without a variant stays the default one, which decides nothing
        config = config.model_copy(update={"sweep": tuple(sorted({*config.sweep, *thresholds}))})
    return dedup_group(
        name,
        [file.chains[entry.name] for entry in entries],
        kind=kind,
        config=config,
        repositories=repositories,
        quality=quality,
        owners=sorted({owner for entry in entries for owner in entry.dataset.owners}),
        against=against,
    )


def _against(
    file: Declared, place: YamlPath, options: dict[str, Any], entries: Sequence[Entry]
) -> dict[str, TableName]:
    """Remove `against` from the options; return the tables, by default the sources of jobs."""
    members = {entry.base for entry in entries}
    if "against" not in options:
        sources = (entry.dataset.compared_with for entry in entries)
        return {table.name: table for table in sources if table is not None and table.name not in members}
    datasets = sorted(entry.name for entry in file.datasets)
    against = options.pop("against")
    tables: dict[str, TableName] = {}
    for number, text in enumerate([against] if isinstance(against, str) else against):
        here = (*place, "against", number) if not isinstance(against, str) else (*place, "against")
        try:
            table = documents_table(str(text))
        except ConfigurationError as error:
            raise InvalidValue(here, str(error)) from error
        if table.name not in datasets:
            raise InvalidValue(here, unknown_name("dataset", table.name, datasets))
        if table.name in members:
            raise InvalidValue(
                here, f"The group decides on `{table.name}` itself. Compare it with other datasets."
            )
        tables[table.name] = table
    return tables


def _quality(
    file: Declared, place: YamlPath, options: dict[str, Any], entries: Sequence[Entry]
) -> Quality | None:
    """Remove `quality` from the options; return where each of the members has the values of the rule."""
    from factory.orchestration.chain.filters import FilterRound
    from factory.orchestration.chain.texts import Quality

    rule = options.pop("quality", None)
    if rule is None:
        return None
    tables = {}
    for entry in entries:
        filters = file.chains[entry.name].link(FilterRound).filters
        try:
            tables[entry.name] = filters.table_of(entry.name, str(rule))
        except ConfigurationError as error:
            raise InvalidValue((*place, "quality"), str(error)) from error
    return Quality(str(rule), tables)


def _repositories(located: LocatedYaml, place: YamlPath, options: dict[str, Any]) -> RepositoryConfig | None:
    """Remove and return the repository settings of `options`; in a file, topics can only be given by hand."""
    if "repositories" not in options:
        return None
    config = located.part(place, RepositoryConfig, options.pop("repositories"))
    if config.topics_table:
        raise InvalidValue(
            (*place, "topics_table"),
            f"No dataset of this file makes `{config.topics_table}`. Give `topics`, by repository, or "
            "declare the group in Python.",
        )
    return config
