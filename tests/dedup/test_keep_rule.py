"""Components and the keep rules on random graphs, beside networkx."""

from __future__ import annotations

import networkx as nx
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory import _native
from spark_udfs.dedup.components import components
from spark_udfs.dedup.decisions import decide

Edge = tuple[str, str, float]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[Edge]]:
    """Documents in order of priority, and the edges between them."""
    names = draw(st.permutations([f"d{number:02}" for number in range(draw(st.integers(2, 25)))]))
    pair = st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda ends: ends[0] < ends[1])
    ends = draw(st.lists(pair, max_size=60, unique=True))
    return names, [(*pair, draw(st.sampled_from([0.8, 0.85, 0.9, 1.0]))) for pair in ends]


def graph_of(names: list[str], edges: list[Edge]) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_weighted_edges_from(edges)
    return graph


def rows(graph: nx.Graph, names: list[str], edges: list[Edge]) -> pa.RecordBatch:
    """The rows `decide` takes, component by component, edges before documents."""
    found = []
    for number, nodes in enumerate(nx.connected_components(graph)):
        found += [(str(number), a, b, s) for a, b, s in edges if a in nodes]
        found += [(str(number), name, None, None) for name in names if name in nodes]
    columns = list(zip(*found, strict=True))
    types = {
        "component": pa.string(),
        "doc_id": pa.string(),
        "other": pa.string(),
        "similarity": pa.float64(),
    }
    return pa.RecordBatch.from_pydict(
        {name: pa.array(column, kind) for (name, kind), column in zip(types.items(), columns, strict=True)}
    )


def decisions(
    graph: nx.Graph, names: list[str], edges: list[Edge], keep: str
) -> tuple[set[str], dict[str, dict[str, object]]]:
    """The kept documents, and the row of each, decided from batches of three rows."""
    batch = rows(graph, names, edges)
    decided = {
        row["doc_id"]: row
        for part in decide([batch.slice(at, 3) for at in range(0, batch.num_rows, 3)], keep)
        for row in part.to_pylist()
    }
    assert set(decided) == set(names)
    return {name for name in names if decided[name]["kept"]}, decided


@given(graphs())
def test_kept_documents_are_independent_and_dominate_the_rest(case: tuple[list[str], list[Edge]]) -> None:
    names, edges = case
    graph = graph_of(names, edges)
    kept, decided = decisions(graph, names, edges, "independent_set")
    assert not any(graph.has_edge(a, b) for a in kept for b in kept)
    assert nx.is_dominating_set(graph, kept)
    for name in set(names) - kept:
        row = decided[name]
        best = max(graph[name][other]["weight"] for other in graph[name] if other in kept)
        ties = [other for other in names if other in kept and graph.has_edge(name, other)]
        ties = [other for other in ties if graph[name][other]["weight"] == best]
        assert (row["similarity"], row["duplicate_of"]) == (best, ties[0])


@given(graphs())
def test_the_kept_set_is_the_greedy_one_by_priority(case: tuple[list[str], list[Edge]]) -> None:
    names, edges = case
    graph = graph_of(names, edges)
    kept: list[str] = []
    for name in names:
        if not any(graph.has_edge(name, other) for other in kept):
            kept.append(name)
    found, decided = decisions(graph, names, edges, "independent_set")
    assert found == set(kept)
    for row in decided.values():
        assert (row["duplicate_of"] is None) == row["kept"] == (row["similarity"] is None)


@given(graphs())
def test_the_best_of_each_component_stays_and_the_rest_names_it(case: tuple[list[str], list[Edge]]) -> None:
    names, edges = case
    graph = graph_of(names, edges)
    best = {name: min(nodes, key=names.index) for nodes in nx.connected_components(graph) for name in nodes}
    kept, decided = decisions(graph, names, edges, "one_per_component")
    assert kept == set(best.values())
    for name in set(names) - kept:
        joined = graph.get_edge_data(name, best[name], {}).get("weight")
        assert (decided[name]["duplicate_of"], decided[name]["similarity"]) == (best[name], joined)


@given(graphs())
def test_a_greedy_cover_stays_and_who_has_no_edge(case: tuple[list[str], list[Edge]]) -> None:
    names, edges = case
    graph = graph_of(names, edges)
    left, expected = graph.copy(), set(nx.isolates(graph))
    while left.number_of_edges():
        most = max(degree for _, degree in left.degree)
        chosen = next(name for name in names if name in left and left.degree[name] == most)
        expected.add(chosen)
        left.remove_node(chosen)
    kept, decided = decisions(graph, names, edges, "cover")
    assert kept == expected
    for name in set(names) - kept:
        assert set(graph[name]) <= kept
        row, best = decided[name], max(edge["weight"] for edge in graph[name].values())
        assert row["similarity"] == best == graph[name][row["duplicate_of"]]["weight"]


@given(graphs(), st.integers(1, 7))
def test_components_are_those_of_networkx_named_by_their_least_id(
    case: tuple[list[str], list[Edge]], cut: int
) -> None:
    names, edges = case
    batch = pa.RecordBatch.from_pydict(
        {
            "left": pa.array([edge[0] for edge in edges], pa.string()),
            "right": pa.array([edge[1] for edge in edges], pa.string()),
        }
    )
    parts = components([batch.slice(at, cut) for at in range(0, len(edges), cut)])
    labels = {row["doc_id"]: row["component"] for part in parts for row in part.to_pylist()}
    expected = {
        name: min(nodes)
        for nodes in nx.connected_components(graph_of(names, edges))
        for name in nodes
        if len(nodes) > 1
    }
    assert labels == expected


def test_an_edge_to_a_document_that_is_not_there_is_refused_by_name() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"doc_id": ["a", "a"], "other": [None, "b"], "similarity": [None, 0.9]}
    )
    with pytest.raises(ValueError, match="document b"):
        _native.decide(batch, "independent_set")


def test_a_rule_that_is_none_is_refused_by_name() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "doc_id": ["a"],
            "other": pa.array([None], pa.string()),
            "similarity": pa.array([None], pa.float64()),
        }
    )
    with pytest.raises(ValueError, match="Unknown keep rule `all`"):
        _native.decide(batch, "all")
