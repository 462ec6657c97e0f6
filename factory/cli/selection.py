"""The assets of a selection on the command line, and all assets by dataset.

A selection is the name of a dataset, a wildcard such as `raw.*` or `dedup.prose_*`, or Dagster's syntax;
`raw/web` also means `raw.web`. The name of a dataset selects the tables from its raw documents to its packed
sequences, including the tables of its dedup group and its tokenizer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import dagster as dg
from dagster import AssetKey, AssetSelection

from factory.errors import ConfigurationError
from factory.lake import names
from factory.lake.names import TableName
from factory.orchestration.keys import key_of, table_of
from factory.suggestions import nearest

_NAMESPACE = "|".join(names.STAGE_OF_NAMESPACE)
# The slash of raw/web and key:"raw/web", not that of group:"dedup/web".
_SLASH = re.compile(rf'(?<![\w/.:"])(key:")?({_NAMESPACE}|\*)/(?=[\w*])')
_WILDCARD = re.compile(r"(?=.*\*)[\w*]+\.[\w*]+")
_OF_DATASETS = ("raw", "filtered", "deduplicated")  # namespaces whose tables have the names of datasets


@dataclass(frozen=True)
class AssetGroup:
    """The assets of a dataset, of a dedup group or of the models, upstream first."""

    kind: str  # "dataset", "dedup group", "models" or "own tables"
    name: str
    keys: tuple[AssetKey, ...]


def select(
    definitions: dg.Definitions, selection: str, published: Collection[AssetKey] | None = None
) -> list[AssetKey]:
    """Return the assets of a selection, including their side tables.

    The name of a dataset also selects upstream tables that are not in `published`, unless it is None. Raises
    ConfigurationError for an empty selection and for a syntax error.
    """
    graph = definitions.resolve_asset_graph()
    groups = by_dataset(definitions)
    of_dataset = next((group for group in groups if (group.kind, group.name) == ("dataset", selection)), None)
    try:
        if of_dataset is not None:
            chosen = _chain(of_dataset).resolve(graph, allow_missing=True)
            if published is not None:
                upstream = AssetSelection.assets(*of_dataset.keys).upstream().resolve(graph)
                chosen = chosen | {key for key in upstream if key not in published}
        else:
            dotted = _SLASH.sub(r"\1\2.", selection.strip())
            written = f'key:"{dotted}"' if _is_wildcard(dotted, graph.get_all_asset_keys()) else dotted
            chosen = AssetSelection.from_string(written).resolve(graph, allow_missing=True)
    except dg.DagsterError as error:
        raise ConfigurationError(
            f"The selection `{selection}` is not in Dagster's syntax, which allows raw.web and 'raw.web*' "
            f"(with all downstream) for one asset only. Write '{_of_several(selection)}'."
        ) from error
    made = (asset for asset in graph.assets_defs if asset.is_executable)  # no run makes an external asset
    together = {key for asset in made if set(asset.keys) & chosen for key in asset.keys}
    if not together:
        raise ConfigurationError(f"The selection `{selection}` names no asset. {_instead(selection, groups)}")
    return sorted(together)


def spelled_tables(selection: str, keys: Iterable[AssetKey]) -> list[TableName]:
    """Return the tables of `keys` that the selection names in full, in any syntax."""
    names = {name.replace("/", ".") for name in re.findall(r"\w+[./]\w+", selection)}
    return [table for table in map(table_of, keys) if str(table) in names]


def by_dataset(definitions: dg.Definitions) -> list[AssetGroup]:
    """Return every asset in its group: datasets and variants by name, dedup groups, models and own tables."""
    graph = definitions.resolve_asset_graph()
    keys = [key for layer in graph.toposorted_asset_keys_by_level for key in sorted(layer)]
    tables = [table_of(key) for key in keys if _is_table(key)]
    datasets = sorted(
        {table.name for table in tables if table.namespace in _OF_DATASETS and _is_dataset(table.name)}
    )
    dedup_groups = sorted(
        table.name.removesuffix("_decisions")
        for table in tables
        if table.namespace == "dedup" and table.name.endswith("_decisions")
    )

    found: dict[tuple[str, str], list[AssetKey]] = {("dataset", name): [] for name in datasets}
    found |= {("dedup group", name): [] for name in dedup_groups}
    for table in tables:
        if table.namespace == "models":
            place = ("models", "")
        elif table.namespace == names.OWN:
            place = ("own tables", "")
        elif table.namespace == "dedup":
            place = ("dedup group", _longest(table.name, dedup_groups))
        else:
            place = ("dataset", _longest(table.name, datasets))
        found.setdefault(place, []).append(key_of(table))
    return [AssetGroup(kind, name, tuple(of)) for (kind, name), of in found.items()]


def listed(groups: Iterable[AssetGroup]) -> str:
    """Return a line for each group with its assets."""
    return "\n".join(
        f"  {title(group)}: {', '.join(key.to_user_string() for key in group.keys)}" for group in groups
    )


def title(group: AssetGroup) -> str:
    """Return the name of a dataset, or the kind and name of another group."""
    return group.name if group.kind == "dataset" else f"{group.kind} {group.name}".strip()


def _is_wildcard(selection: str, keys: Collection[AssetKey]) -> bool:
    """Whether the stars of a selection stand for parts of names, not for the way to or from an asset."""
    return _WILDCARD.fullmatch(selection) is not None and AssetKey(selection.strip("*")) not in keys


def _chain(dataset: AssetGroup) -> AssetSelection:
    """The tables of a dataset and all tables between its raw documents and these."""
    own = AssetSelection.assets(*dataset.keys)
    raw = AssetSelection.assets(key_of(names.raw(dataset.name)))
    return own | (raw.downstream() & own.upstream())


def _instead(selection: str, groups: list[AssetGroup]) -> str:
    """Suggest the nearest dataset or asset, else list all."""
    assets = [key.to_user_string() for group in groups for key in group.keys]
    datasets = [group.name for group in groups if group.kind == "dataset"]
    if meant := nearest(selection.replace("/", ".").strip("*+"), [*datasets, *assets], n=1):
        return f"Did you mean `{meant[0]}`?"
    return f"Name a dataset or an asset:\n{listed(groups)}"


def _is_table(key: AssetKey) -> bool:
    return key.to_user_string().partition(".")[0] in names.STAGE_OF_NAMESPACE


def _is_dataset(name: str) -> bool:
    try:
        return names.dataset(name) == name
    except ConfigurationError:  # a side table, or a round before the last
        return False


def _longest(table: str, owners: Iterable[str]) -> str:
    """The longest of `owners` that a table is named after: `web_old` for web_old_rejected."""
    return max(
        (owner for owner in owners if table == owner or table.startswith(f"{owner}_")), key=len, default=table
    )


def _of_several(selection: str) -> str:
    """Suggest the selection in Dagster's syntax for several assets, or an example."""

    def written(found: re.Match[str]) -> str:
        before, key, after = found.groups()
        layers = {"*": "+", "+": "1+"}.get(before, before), {"*": "+", "+": "+1"}.get(after, after)
        return f'{layers[0]}key:"{key.replace("/", ".")}"{layers[1]}'

    words = re.sub(r"\s*,\s*", " or ", selection.strip())
    meant = re.sub(r"(?<![\w\":])([*+]?)([a-z]\w*[/.]\w+)([*+]?)", written, words)
    meant = re.sub(r"(\"[\d+]*) +(?=[\d+]*key:)", r"\1 or ", meant)
    try:
        AssetSelection.from_string(meant)
    except dg.DagsterError:
        return 'key:"raw.web"+ or key:"raw.books"+'
    return meant
