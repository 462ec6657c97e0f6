"""An upper bound on the dependencies that an order of files can satisfy.

An order breaks an edge of every cycle, so it breaks at least as many edges as there are edge-disjoint cycles.
The cycles are chosen greedily: first all pairs of files that depend on each other, then for each edge the
shortest cycle through it. More disjoint cycles may exist, so the best order may lie below the bound.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set

from spark_udfs.depsort.order import strongly_connected

Edge = tuple[str, str]


def most_satisfied(edges: Set[Edge]) -> int:
    """An upper bound of the edges (dependent, dependency) that one order of their files satisfies."""
    return len(edges) - disjoint_cycles(edges)


def disjoint_cycles(edges: Set[Edge]) -> int:
    """The number of cycles of `edges`, chosen greedily so that no two share an edge."""
    left = _on_cycles({edge for edge in edges if edge[0] != edge[1]})
    mutual = {(one, other) for one, other in left if (other, one) in left}
    after: dict[str, set[str]] = {}
    for one, other in sorted(left - mutual):
        after.setdefault(one, set()).add(other)
    found = len(mutual) // 2 + sum(one == other for one, other in edges)
    for one, other in sorted(left - mutual):
        if other not in after[one]:
            continue  # the edge of an earlier cycle
        cycle = _path(other, one, after)
        found += bool(cycle)
        after[one].remove(other)  # an edge that is on no cycle now is on none later
        for edge in cycle:
            after[edge[0]].remove(edge[1])
    return found


def _on_cycles(edges: Set[Edge]) -> set[Edge]:
    """The edges inside strongly connected components."""
    names = sorted({name for edge in edges for name in edge})
    number = {name: index for index, name in enumerate(names)}
    dependencies: list[dict[int, float]] = [{} for _ in names]
    for one, other in edges:
        dependencies[number[one]][number[other]] = 1.0
    component = {
        names[member]: index
        for index, members in enumerate(strongly_connected(dependencies))
        for member in members
    }
    return {(one, other) for one, other in edges if component[one] == component[other]}


def _path(start: str, end: str, after: dict[str, set[str]]) -> list[Edge]:
    """The edges of a shortest path; empty without a path."""
    came: dict[str, str] = {start: start}
    waiting = deque([start])
    while waiting and end not in came:
        name = waiting.popleft()
        for following in sorted(after.get(name, ())):
            if following not in came:
                came[following] = name
                waiting.append(following)
    edges = []
    while end in came and end != start:
        edges.append((came[end], end))
        end = came[end]
    return edges
