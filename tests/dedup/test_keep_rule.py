"""Components and the keep rules on random graphs, against networkx, and a sweep over one graph."""

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
    return decidable(found)


def decidable(rows: list[tuple[str, str, str | None, float | None]]) -> pa.RecordBatch:
    """Rows (component, doc_id, other, similarity) in the columns of `decide`."""
    text, number = pa.string(), pa.float64()
    types = {"component": text, "doc_id": text, "other": text, "similarity": number}
    columns = zip(types.items(), zip(*rows, strict=True), strict=True)
    return pa.RecordBatch.from_pydict({name: pa.array(values, kind) for (name, kind), values in columns})


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


def nearest(graph: nx.Graph, names: list[str], kept: set[str], name: str) -> tuple[float, str]:
    """The similarity of the most similar kept neighbour, and the best of those that have it."""
    joined = [other for other in names if other in kept and graph.has_edge(name, other)]
    found = max(joined, key=lambda other: graph[name][other]["weight"])  # the first of several
    return graph[name][found]["weight"], found


@given(graphs())
def test_kept_documents_are_independent_and_dominate_the_rest(case: tuple[list[str], list[Edge]]) -> None:
    names, edges = case
    graph = graph_of(names, edges)
    kept, decided = decisions(graph, names, edges, "independent_set")
    assert not any(graph.has_edge(a, b) for a in kept for b in kept)
    assert nx.is_dominating_set(graph, kept)
    for name in set(names) - kept:
        row = decided[name]
        assert (row["similarity"], row["duplicate_of"]) == nearest(graph, names, kept, name)


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
def test_a_greedy_cover_and_documents_without_edges_stay(case: tuple[list[str], list[Edge]]) -> None:
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
        row = decided[name]
        assert (row["similarity"], row["duplicate_of"]) == nearest(graph, names, kept, name)


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


def test_an_edge_to_an_unknown_document_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="document b"):
        _native.decide(decidable([("0", "a", None, None), ("0", "a", "b", 0.9)]), "independent_set")


def test_an_unknown_rule_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="Unknown keep rule `all`"):
        _native.decide(decidable([("0", "a", None, None)]), "all")


def test_a_sweep_counts_edges_at_the_threshold_and_copies() -> None:
    edges = [("a", "b", 0.8, 0, 0), ("b", "c", 0.9, 0, 0), ("d", "e", 0.95, 0, 0)]
    documents = [(name, None, None, n, 10) for name, n in zip("abcde", (1, 3, 1, 1, 2), strict=True)]
    names = ("doc_id", "other", "similarity", "copies", "n_bytes")
    columns = zip(names, zip(*edges, *documents, strict=True), strict=True)
    batch = pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns})
    swept = _native.sweep(batch, "independent_set", [0.8, 0.85, 0.92, 0.99])
    outcomes = [tuple(row.values()) for row in swept.to_pylist()]
    assert outcomes == [(0.8, 3, 2, 20, 5), (0.85, 2, 2, 20, 4), (0.92, 1, 1, 10, 3), (0.99, 0, 0, 0, 3)]
    assert _native.sweep(batch, "one_per_component", [0.8])["removed_bytes"].to_pylist() == [30]
