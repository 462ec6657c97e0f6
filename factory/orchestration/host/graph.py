"""The graph of groups that Dagster draws: it has no cycle, whichever groups are closed.

A closed group is one box, with the arrows of all its tables. If some of its tables come before another group
and some behind it, arrows run both ways, and nobody can read the graph from left to right. The links of a
chain declare groups without such cycles (`factory.orchestration.groups`), but a datasets file can close one:
a classifier learns from `raw.web`, and filters read its scores of `web`. Then the group is split: `web` has
the tables before the other group, `web_2` the tables behind it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import count

import dagster as dg

from factory.orchestration.groups import DIAGNOSTICS

Path = tuple[str, ...]  # the parts of a group's name; a group lies inside each shorter path


def with_acyclic_groups(
    assets: Sequence[dg.AssetsDefinition], external: Sequence[dg.AssetSpec]
) -> tuple[list[dg.AssetsDefinition], list[dg.AssetSpec]]:
    """Return assets and external assets in groups that have no cycle; most keep the group they declare."""
    specs = [spec for asset in assets for spec in asset.specs] + list(external)
    group_of = acyclic_groups(specs)

    def in_its_group(spec: dg.AssetSpec) -> dg.AssetSpec:
        return spec.replace_attributes(group_name=group_of[spec.key])

    def stays(specs: Iterable[dg.AssetSpec]) -> bool:
        return all(group_of[spec.key] == spec.group_name for spec in specs)

    return (
        [asset if stays(asset.specs) else asset.map_asset_specs(in_its_group) for asset in assets],
        [spec if stays([spec]) else in_its_group(spec) for spec in external],
    )


def acyclic_groups(specs: Sequence[dg.AssetSpec]) -> dict[dg.AssetKey, str | None]:
    """Return the group of every asset, such that the graph has no cycle with any of the groups closed.

    Assets that depend on each other in a cycle keep their groups, because Dagster refuses them.
    """
    upstream = {spec.key: [dep.asset_key for dep in spec.deps] for spec in specs}
    order = TopologicalSorter(upstream)
    try:
        keys = [key for key in order.static_order() if key in upstream]
    except CycleError:
        return {spec.key: spec.group_name for spec in specs}
    read = {key for keys_read in upstream.values() for key in keys_read}
    homes = {spec.key: _home(spec, spec.key in read) for spec in specs}
    paths: dict[dg.AssetKey, Path] = dict.fromkeys(keys, ())
    for depth in range(max(map(len, homes.values()), default=0)):
        paths = _split_at(depth, keys, upstream, homes, paths)
    return {key: "/".join(path) or None for key, path in paths.items()}


def _home(spec: dg.AssetSpec, has_readers: bool) -> Path:
    """The path of the declared group; a diagnostic table with a reader joins the group that it describes."""
    path = tuple(spec.group_name.split("/")) if spec.group_name else ()
    return path[1:] if has_readers and path[:1] == (DIAGNOSTICS,) else path


@dataclass
class _Groups:
    """The groups of one depth so far, and the arrows between them; an asset without a group is one itself."""

    downstream: dict[object, set[object]] = field(default_factory=lambda: defaultdict(set))

    def reaches(self, group: object, others: set[object]) -> bool:
        """Whether arrows lead from `group` to one of the `others`."""
        waiting, visited_groups = [group], {group}
        while waiting:
            behind = self.downstream[waiting.pop()] - visited_groups
            if behind & others:
                return True
            visited_groups |= behind
            waiting += behind
        return False

    def add(self, group: object, upstream: set[object]) -> None:
        """Draw an arrow from each of `upstream` to `group`."""
        for other in upstream:
            self.downstream[other].add(group)


def _split_at(
    depth: int,
    keys: Sequence[dg.AssetKey],
    upstream: Mapping[dg.AssetKey, Sequence[dg.AssetKey]],
    homes: Mapping[dg.AssetKey, Path],
    paths: Mapping[dg.AssetKey, Path],
) -> dict[dg.AssetKey, Path]:
    """Extend the `paths` by one part each; `keys` are in order, so a new asset has incoming arrows alone."""
    groups = _Groups()
    node_of: dict[dg.AssetKey, object] = {}
    longer = dict(paths)
    for key in keys:
        before = {node_of[other] for other in upstream[key] if other in node_of}
        node: object = key
        if depth < len(homes[key]):
            candidates = _names(paths[key], homes[key][depth], set(homes.values()))
            node = next(path for path in candidates if not groups.reaches(path, before - {path}))
            longer[key] = node
        groups.add(node, before - {node})
        node_of[key] = node
    return longer


def _names(path: Path, name: str, other_homes: set[Path]) -> Iterator[Path]:
    """Yield `web`, `web_2`, `web_3` and so on inside `path`, without the names of other groups."""
    yield (*path, name)
    for number in count(2):
        unique_name = f"{name}_{number}"
        if not any(unique_name in other for other in other_homes):
            yield (*path, unique_name)
