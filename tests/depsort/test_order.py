"""The order of a graph: against networkx without cycles, against brute force with them."""

from __future__ import annotations

import itertools
import random
import time

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_udfs.depsort.order import SIFTED_BELOW, break_cycles, gather, order_repository, strongly_connected

Graph = list[dict[int, float]]


def paths(n: int) -> list[str]:
    """Sorted paths of `n` files in folders of seven."""
    return [f"d{i // 7:03}/f{i:05}.py" for i in range(n)]


def broken(order: list[int], graph: Graph) -> set[tuple[int, int]]:
    """The edges whose dependency stands behind."""
    position = {v: p for p, v in enumerate(order)}
    return {(v, w) for v, targets in enumerate(graph) for w in targets if position[w] > position[v]}


def broken_weight(order: list[int], graph: Graph) -> float:
    return sum(graph[v][w] for v, w in broken(order, graph))


def only(component: list[int], graph: Graph) -> Graph:
    """The edges inside a component."""
    inside = set(component)
    return [{w: x for w, x in t.items() if w in inside} if v in inside else {} for v, t in enumerate(graph)]


def oracle(graph: Graph) -> nx.DiGraph:
    directed = nx.DiGraph()
    directed.add_nodes_from(range(len(graph)))
    directed.add_edges_from((v, w) for v, targets in enumerate(graph) for w in targets)
    return directed


@st.composite
def graphs(draw: st.DrawFn, acyclic: bool = False, most: int = 24) -> Graph:
    n = draw(st.integers(0, most))
    vertex = st.integers(0, max(0, n - 1))
    pairs = draw(st.lists(st.tuples(vertex, vertex), max_size=3 * n)) if n else []
    weights = st.sampled_from([0.1, 0.2, 1.0, 2.0**0.5, 3.0])
    graph: Graph = [{} for _ in range(n)]
    shuffled = draw(st.permutations(range(n)))
    for v, w in pairs:
        if v != w and (not acyclic or shuffled[v] > shuffled[w]):
            graph[v][w] = draw(weights)
    return graph


@given(graphs(acyclic=True))
def test_without_cycles_every_edge_points_backwards(graph: Graph) -> None:
    order = order_repository(paths(len(graph)), graph)
    assert sorted(order.files) == list(range(len(graph)))
    assert broken(order.files, graph) == set()
    assert set(order.cycle_size) <= {1}


@given(graphs())
def test_components_are_those_of_networkx_and_only_their_edges_break(graph: Graph) -> None:
    components = list(nx.strongly_connected_components(oracle(graph)))
    assert sorted(map(sorted, components)) == sorted(strongly_connected(graph))
    order = order_repository(paths(len(graph)), graph)
    assert sorted(order.files) == list(range(len(graph)))
    of = {v: component for component in map(frozenset, components) for v in component}
    assert all(of[v] == of[w] for v, w in broken(order.files, graph))
    assert [order.cycle_size[v] for v in range(len(graph))] == [len(of[v]) for v in range(len(graph))]
    first = {cycle: order.files.index(v) for v, cycle in reversed([(v, order.cycle[v]) for v in order.files])}
    assert sorted(first, key=lambda cycle: first[cycle]) == list(range(len(components)))


@given(graphs())
def test_gathering_breaks_no_edge_that_was_satisfied(graph: Graph) -> None:
    order = [v for component in strongly_connected(graph) for v in break_cycles(component, graph)]
    assert broken(gather(order, graph, paths(len(graph))), graph) <= broken(order, graph)


@settings(max_examples=60)
@given(graphs(most=6))
def test_little_more_is_broken_than_the_best_of_all_orders_breaks(graph: Graph) -> None:
    ours = broken_weight(order_repository(paths(len(graph)), graph).files, graph)
    best = min(broken_weight(list(order), graph) for order in itertools.permutations(range(len(graph))))
    total = sum(sum(targets.values()) for targets in graph)
    assert best - 1e-9 <= ours <= best + 0.15 * total


def test_the_lightest_edge_of_a_ring_is_broken() -> None:
    graph: Graph = [{1: 3.0}, {2: 3.0}, {3: 0.2}, {0: 3.0}]
    assert broken(order_repository(paths(4), graph).files, graph) == {(2, 3)}


def test_sifting_mends_what_peeling_leaves() -> None:
    rng = random.Random(7)
    graph: Graph = [
        {w: rng.choice([0.2, 1.0, 2.0]) for w in rng.sample(range(60), 6) if w != v} for v in range(60)
    ]
    order = break_cycles(range(60), graph)
    total = sum(sum(targets.values()) for targets in graph)
    for v in order:  # no file alone would stand better elsewhere
        rest = [w for w in order if w != v]
        best = min(broken_weight([*rest[:p], v, *rest[p:]], graph) for p in range(60))
        assert broken_weight(order, graph) <= best + 0.01 * total


def test_peeling_alone_finds_an_order_under_a_few_contrary_edges() -> None:
    n, rng = 2 * SIFTED_BELOW, random.Random(5)
    hidden = rng.sample(range(n), n)
    graph: Graph = [{} for _ in range(n)]
    for rank in range(1, n):
        for other in {rng.randrange(rank) for _ in range(4)}:
            graph[hidden[rank]][hidden[other]] = 2.0
            if rng.random() < 0.1:
                graph[hidden[other]][hidden[rank]] = 0.5
    component = max(strongly_connected(graph), key=len)
    assert len(component) >= SIFTED_BELOW  # too large to sift
    inside = only(component, graph)
    total = sum(sum(targets.values()) for targets in inside)
    assert broken_weight(break_cycles(component, graph), inside) < 0.1 * total


def test_files_without_edges_keep_the_order_of_their_paths() -> None:
    assert order_repository(paths(30), [{} for _ in range(30)]).files == list(range(30))


def test_a_folder_stays_together_while_its_files_have_what_they_need() -> None:
    names = ["a/1.py", "a/2.py", "b/1.py", "b/2.py"]
    assert order_repository(names, [{}, {0: 1.0}, {}, {2: 1.0}]).files == [0, 1, 2, 3]
    assert order_repository(names, [{2: 1.0}, {0: 1.0}, {}, {}]).files == [2, 3, 0, 1]


@pytest.mark.invariant("Plans and orders never change once published.")
def test_the_order_of_a_fixed_graph_never_changes() -> None:
    graph: Graph = [
        {w: 1.0 + (v + w) % 3 for w in ((5 * v + 3) % 14, (v * v + 1) % 14) if w != v} for v in range(14)
    ]
    # Sorted tables and their fingerprints change with this list.
    assert order_repository(paths(14), graph).files == [1, 9, 8, 10, 7, 3, 0, 5, 2, 6, 4, 11, 12, 13]


@pytest.mark.parametrize("shape", ["chain", "ring", "star", "dense cycle"])
def test_large_graphs_neither_recurse_nor_crawl(shape: str) -> None:
    n = 20_000
    rng = random.Random(3)
    graph: Graph = {
        "chain": [{v + 1: 1.0} if v + 1 < n else {} for v in range(n)],
        "ring": [{(v + 1) % n: 1.0} for v in range(n)],
        "star": [{}, *({0: 1.0} for _ in range(n - 1))],
        "dense cycle": [{rng.randrange(n): 1.0 for _ in range(8)} for _ in range(n)],
    }[shape]
    for v, targets in enumerate(graph):
        targets.pop(v, None)
    started = time.process_time()
    order = order_repository(paths(n), graph)
    assert time.process_time() - started < 10
    assert sorted(order.files) == list(range(n))
    assert len(broken(order.files, graph)) <= {"chain": 0, "ring": 1, "star": 0, "dense cycle": n * 4}[shape]
