"""The graph of groups has no cycle, whichever are closed, and leads from raw documents to the blend."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import dagster as dg
import pytest

from factory.orchestration.datasets.assets import corpus
from factory.orchestration.datasets.blend_asset import blend_asset
from factory.orchestration.groups import DIAGNOSTICS
from factory.orchestration.host.definitions import definitions
from factory.orchestration.host.graph import acyclic_groups
from factory.settings import Settings
from tests.orchestration.large_lake import CROSSED, LARGE, fill

Groups = dict[str, set[str]]


def graph_specs(folder: Path, text: str) -> list[dg.AssetSpec]:
    """Every asset as Dagster has it."""
    found = corpus(fill(folder, text))
    location = definitions(found.assets, Settings(home=folder / "lake"), external=[blend_asset(found)])
    return list(location.resolve_all_asset_specs())


def group_cycle(group_of: Mapping[dg.AssetKey, str], specs: Iterable[dg.AssetSpec]) -> list[str]:
    """Return the groups of a cycle, the first one again at the end; empty if there is none."""
    upstream: dict[str, set[str]] = defaultdict(set)
    for spec in specs:
        reader = group_of[spec.key]
        upstream[reader] |= {group_of[dep.asset_key] for dep in spec.deps} - {reader}
    try:
        TopologicalSorter(upstream).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def closed(specs: Sequence[dg.AssetSpec], depth: int) -> dict[dg.AssetKey, str]:
    """The box that shows each asset when all groups below `depth` are closed."""
    return {spec.key: "/".join(str(spec.group_name).split("/")[:depth]) for spec in specs}


def tables_by_group(specs: Sequence[dg.AssetSpec]) -> Groups:
    groups = defaultdict[str, set[str]](set)
    for spec in specs:
        groups[str(spec.group_name)].add(spec.key.to_user_string())
    return groups


@pytest.mark.invariant(
    "The groups of Dagster's graph form no cycle, whichever of them are closed; a group that would is split."
)
@pytest.mark.parametrize("text", [LARGE, CROSSED], ids=["large", "crossed"])
def test_the_graph_of_groups_has_no_cycle(tmp_path: Path, text: str) -> None:
    specs = graph_specs(tmp_path, text)
    assert len(specs) > 150
    for depth in range(1, 4):
        cycle = group_cycle(closed(specs, depth), specs)
        assert not cycle, f"groups closed at depth {depth}: {' -> '.join(cycle)}"


def test_a_cycle_of_groups_is_named() -> None:
    specs = [spec_of("raw", "web"), spec_of("edges", "dedup", "raw"), spec_of("kept", "web", "edges")]
    assert set(group_cycle(closed(specs, 1), specs)) == {"web", "dedup"}


def test_diagnostic_tables_have_incoming_arrows_alone(tmp_path: Path) -> None:
    specs = graph_specs(tmp_path, LARGE)
    boxes = closed(specs, 1)
    readers = {boxes[spec.key] for spec in specs for dep in spec.deps if boxes[dep.asset_key] == DIAGNOSTICS}
    assert readers == set()
    assert {"raw.web_rejected", "packed.web_placements"} < tables_by_group(specs)["diagnostics/web"]


def test_a_closed_graph_leads_from_raw_documents_to_the_blend(tmp_path: Path) -> None:
    specs = graph_specs(tmp_path, LARGE)
    boxes = closed(specs, 1)
    arrows = {(boxes[dep.asset_key], boxes[spec.key]) for spec in specs for dep in spec.deps}
    way = ["wiki", "dedup", "tokenizers", "packed", "blends"]
    assert set(pairwise(way)) <= arrows


def test_a_model_that_judges_the_documents_it_learns_from_splits_their_group(tmp_path: Path) -> None:
    groups = tables_by_group(graph_specs(tmp_path, LARGE))
    assert "raw.web" in groups["web"]
    assert {"signals.web_by_quality", "filtered.web"} <= groups["web_2"]
    assert {name for name in groups if name.split("/")[0].endswith("_2")} == {"web_2"}


def test_a_diagnostic_table_with_a_reader_is_beside_what_it_describes(tmp_path: Path) -> None:
    assert "raw.forum_rejected" in tables_by_group(graph_specs(tmp_path, CROSSED))["forum"]


def spec_of(name: str, group: str, *upstream: str) -> dg.AssetSpec:
    return dg.AssetSpec(name, deps=list(upstream), group_name=group)


@pytest.mark.parametrize(
    "specs, groups",
    [
        ("a:web b:web<a c:web<b", {"web": "abc"}),
        ("a:web b:dedup<a c:web<b d:web<a", {"web": "ad", "dedup": "b", "web_2": "c"}),
        ("a:x b:y c:y<a d:x<b", {"x": "a", "y": "bc", "x_2": "d"}),
        ("a:web b:dedup<a c:web<b x:web_2", {"web": "a", "dedup": "b", "web_3": "c", "web_2": "x"}),
        ("a:p/x b:p/y<a c:p/x<b", {"p/x": "a", "p/y": "b", "p/x_2": "c"}),
        ("a:web b:web/long<a c:web<b", {"web": "ac", "web/long": "b"}),
        ("a:diagnostics/web b:web<a c:diagnostics/web", {"web": "ab", "diagnostics/web": "c"}),
    ],
    ids=["one group", "before and behind", "crossed", "a taken name", "inside a group", "a variant", "read"],
)
def test_a_group_is_split_where_it_is_before_and_behind_another(specs: str, groups: dict[str, str]) -> None:
    parsed = []
    for written in specs.split():
        asset, _, upstream = written.partition("<")
        name, _, group = asset.partition(":")
        parsed.append(spec_of(name, group, *upstream))
    found = defaultdict[str, str](str)
    for key, group_name in sorted(acyclic_groups(parsed).items()):
        found[str(group_name)] += key.to_user_string()
    assert found == groups


def test_assets_in_a_cycle_keep_their_groups_for_dagster_to_refuse() -> None:
    specs = [spec_of("a", "web", "b"), spec_of("b", "dedup", "a")]
    assert list(acyclic_groups(specs).values()) == ["web", "dedup"]
