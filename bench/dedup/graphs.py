"""Graphs of numbered documents, best first, as edges (left, right)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import networkx as nx

Edge = tuple[int, int]


def groups(edges: Iterable[Edge]) -> list[list[int]]:
    """The documents of each connected component of two or more, ascending."""
    graph = nx.Graph(list(edges))
    return sorted(sorted(members) for members in nx.connected_components(graph))


def most(graph: nx.Graph) -> int:
    """The size of the largest independent set, exactly; for small components."""
    return len(nx.max_weight_clique(nx.complement(graph), weight=None)[0])


def stars(buckets: Iterable[Sequence[int]]) -> set[Edge]:
    """The edges from the least document of each bucket to its others."""
    return {(min(bucket), other) for bucket in buckets for other in bucket if other != min(bucket)}
