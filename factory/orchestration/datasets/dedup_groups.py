"""The dedup groups that a datasets file declares: the members, options and owners of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from factory.dedup.config import DedupConfig
from factory.dedup.repository_config import RepositoryConfig
from factory.errors import ConfigurationError
from factory.lake import names
from factory.orchestration.chain.dedup.group import DedupGroup, Kind, dedup_group, dedup_variant
from factory.orchestration.chain.filters import Filters
from factory.orchestration.chain.texts import Quality
from factory.orchestration.datasets.dataset import Variant
from factory.orchestration.datasets.file import DatasetsFile
from factory.orchestration.datasets.located_yaml import InvalidValue, LocatedYaml, YamlPath


def dedup_groups(located: LocatedYaml, file: DatasetsFile) -> dict[str, DedupGroup]:
    """Every dedup group by name; the groups of variants default to the options of the first.

    A variant that only decides differently shares all comparisons: its threshold joins the sweep of the base
    group.
    """
    members: dict[str, list[str]] = defaultdict(list)
    kinds: dict[str, Kind] = {}
    deciding: dict[str, dict[str, Variant]] = defaultdict(dict)  # by group, by variant
    for entry in file.datasets:
        kinds |= {entry.dedup_group(name): entry.kind for name in (None, *entry.variants)}
        members[entry.dedup_group()].append(entry.name)
        for variant_name, options in entry.variants.items():
            if options.shares_comparisons:
                deciding[entry.dedup_group()][variant_name] = options
            else:
                members[entry.dedup_group(variant_name)].append(names.variant(entry.name, variant_name))
    groups = {}
    for name, datasets in sorted(members.items()):
        groups[name] = _group(located, file, name, datasets, kinds[name], deciding[name])
        for variant_name, options in deciding[name].items():
            group = dedup_variant(groups[name], variant_name, options.threshold, options.keep)
            groups[group.name] = group
    return dict(sorted(groups.items()))


def _group(
    located: LocatedYaml,
    file: DatasetsFile,
    name: str,
    datasets: Sequence[str],
    kind: Kind,
    variants: Mapping[str, Variant],
) -> DedupGroup:
    """The dedup group of `datasets`; its sweep holds the thresholds of `variants`."""
    options_of = name if name in file.groups else names.base(name)
    place: YamlPath = ("groups", options_of)
    options = {**file.groups.get(options_of, {}), "kind": kind}
    repositories = _repositories(located, (*place, "repositories"), options)
    quality = _quality(file, place, options, datasets)
    config = located.part(place, DedupConfig, options)
    thresholds = {variant.threshold for variant in variants.values() if variant.threshold is not None}
    if thresholds:  # a sweep without a variant stays the default one, which decides nothing
        config = config.model_copy(update={"sweep": tuple(sorted({*config.sweep, *thresholds}))})
    bases = set(map(names.base, datasets))  # a variant has the owners of its dataset
    return dedup_group(
        name,
        datasets,
        kind=kind,
        config=config,
        repositories=repositories,
        quality=quality,
        owners=sorted({owner for entry in file.datasets if entry.name in bases for owner in entry.owners}),
    )


def _quality(
    file: DatasetsFile, place: YamlPath, options: dict[str, Any], datasets: Sequence[str]
) -> Quality | None:
    """Remove `quality` from the options; return where each of `datasets` has the values of the rule."""
    rule = options.pop("quality", None)
    if rule is None:
        return None
    tables = {}
    for entry in file.datasets:
        filters = Filters(entry.in_rounds())
        filters_of = {entry.name: filters}
        for name, variant in entry.variants.items():
            if not variant.shares_comparisons:
                signals = filters.measuring(entry.name)
                filters_of[names.variant(entry.name, name)] = Filters(variant.in_rounds(), signals)
        for dataset in filters_of.keys() & set(datasets):
            try:
                tables[dataset] = filters_of[dataset].table_of(dataset, str(rule))
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
