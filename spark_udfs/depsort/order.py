"""An order of a repository's files in which as much dependency weight as possible points backwards.

1. Strongly connected components by Tarjan's algorithm, which emits dependencies first. All edges between
   components are satisfied.
2. Inside a component the heuristic of Eades, Lin and Smyth (1993) on weights: files without remaining
   dependencies go to the head, files without remaining dependents to the tail, otherwise the file with the
   largest surplus of dependents over dependencies goes to the head. It runs on the graph and on its reverse.
3. Sifting of both results: each file in turn moves to its cheapest position among the others, SIFTING_ROUNDS
   times, in components below SIFTED_BELOW files. The better result is kept.
4. Gathering: among the orders that satisfy the same edges, one that stays in a folder while a file there has
   its dependencies, and prefers the file with the most recently placed dependency.

Gathering replaces an order of folders with files ordered inside them, which loses more than it gains:
`docs/depsort.md` has the figures.

Files are numbered in order of path; every tie goes to the lower number. Nothing recurses.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SIFTED_BELOW = 5_000  # most files of a sifted component: a round may take time in their square
SIFTING_ROUNDS = 3

Edges = Sequence[Mapping[int, float]]  # for each file its dependencies with their weights


@dataclass(frozen=True)
class FileOrder:
    """`files` in order, and for each file (by number) the number and size of its component.

    Components are numbered in the order of their first files.
    """

    files: list[int]
    cycle: list[int]
    cycle_size: list[int]


def order_repository(paths: Sequence[str], dependencies: Edges) -> FileOrder:
    """The order of the files with sorted `paths`; `dependencies[i]` are the edges from file i."""
    components = strongly_connected(dependencies)
    backbone = [v for component in components for v in break_cycles(component, dependencies)]
    return _numbered(gather(backbone, dependencies, paths), components)


def gather(order: Sequence[int], dependencies: Edges, paths: Sequence[str]) -> list[int]:
    """An order that satisfies the same edges, perhaps more, and keeps files of a folder together."""
    rank = {v: p for p, v in enumerate(order)}
    satisfied = [sorted(w for w in targets if rank[w] < rank[v]) for v, targets in enumerate(dependencies)]
    dependents: list[list[int]] = [[] for _ in order]
    for v, targets in enumerate(satisfied):
        for w in targets:
            dependents[w].append(v)
    folder = [path.rpartition("/")[0] for path in paths]
    waiting = [len(targets) for targets in satisfied]
    position = [-1] * len(order)
    ready: list[tuple[int, int]] = []  # (minus the position of the last dependency, file)
    ready_in: dict[str, list[tuple[int, int]]] = {name: [] for name in folder}

    def unlock(v: int) -> None:
        entry = (-max((position[w] for w in satisfied[v]), default=-1), v)
        heapq.heappush(ready, entry)
        heapq.heappush(ready_in[folder[v]], entry)

    for v, n_missing in enumerate(waiting):
        if not n_missing:
            unlock(v)
    gathered: list[int] = []
    while len(gathered) < len(order):
        here = ready_in[folder[gathered[-1]]] if gathered else ready
        _, v = heapq.heappop(here or ready)
        if position[v] >= 0:
            continue
        position[v] = len(gathered)
        gathered.append(v)
        for w in dependents[v]:
            waiting[w] -= 1
            if not waiting[w]:
                unlock(w)
    return gathered


def strongly_connected(dependencies: Edges) -> list[list[int]]:
    """The strongly connected components, dependencies first, each sorted."""
    successors = [sorted(targets) for targets in dependencies]
    n = len(successors)
    index, low = [-1] * n, [0] * n
    on_stack = [False] * n
    stack: list[int] = []
    components: list[list[int]] = []
    visited = 0
    for root in range(n):
        if index[root] >= 0:
            continue
        path = [(root, 0)]
        while path:
            v, next_child = path.pop()
            if next_child == 0:
                index[v] = low[v] = visited
                visited += 1
                stack.append(v)
                on_stack[v] = True
            descended = False
            for child in range(next_child, len(successors[v])):
                w = successors[v][child]
                if index[w] < 0:
                    path.append((v, child + 1))
                    path.append((w, 0))
                    descended = True
                    break
                if on_stack[w]:
                    low[v] = min(low[v], index[w])
            if descended:
                continue
            if low[v] == index[v]:
                component = []
                while True:
                    w = stack.pop()
                    on_stack[w] = False
                    component.append(w)
                    if w == v:
                        break
                components.append(sorted(component))
            if path:
                parent = path[-1][0]
                low[parent] = min(low[parent], low[v])
    return components


def break_cycles(component: Sequence[int], dependencies: Edges) -> list[int]:
    """The vertices of one component in an order with little weight pointing forwards."""
    if len(component) < 2:
        return list(component)
    local = {v: i for i, v in enumerate(component)}
    out: list[dict[int, float]] = [
        {local[w]: weight for w, weight in sorted(dependencies[v].items()) if w in local and w != v}
        for v in component
    ]
    into: list[dict[int, float]] = [{} for _ in component]
    for v, targets in enumerate(out):
        for w, weight in targets.items():
            into[w][v] = weight
    forwards, backwards = _eades_lin_smyth(out, into), _eades_lin_smyth(into, out)[::-1]
    if len(component) < SIFTED_BELOW:
        _sift(forwards, out, into)
        _sift(backwards, out, into)
    order = min(forwards, backwards, key=lambda order: _broken(order, out))  # the first one on a tie
    return [component[v] for v in order]


def _broken(order: Sequence[int], out: Edges) -> float:
    """The weight that points forwards in an order, rounded to nine digits."""
    position = {v: p for p, v in enumerate(order)}
    weights = (w for v, targets in enumerate(out) for t, w in targets.items() if position[t] > position[v])
    return round(math.fsum(weights), 9)


def _eades_lin_smyth(out: Edges, into: Edges) -> list[int]:
    n = len(out)
    n_out, n_in = [len(o) for o in out], [len(i) for i in into]
    surplus = [sum(into[v].values()) - sum(out[v].values()) for v in range(n)]
    placed = [False] * n
    head: list[int] = []
    tail: list[int] = []
    ready = [v for v in range(n) if not n_out[v]]  # no remaining dependencies
    unused = [v for v in range(n) if n_out[v] and not n_in[v]]  # no remaining dependents
    heapq.heapify(ready)
    heapq.heapify(unused)
    queue = [(-surplus[v], v) for v in range(n)]
    heapq.heapify(queue)
    while len(head) + len(tail) < n:
        if ready:
            v, side = heapq.heappop(ready), head
        elif unused:
            v, side = heapq.heappop(unused), tail
        else:
            priority, v = heapq.heappop(queue)
            if placed[v] or -priority != surplus[v]:
                continue
            side = head
        if placed[v]:
            continue
        placed[v] = True
        side.append(v)
        for w, weight in into[v].items():
            if not placed[w]:
                n_out[w] -= 1
                surplus[w] += weight
                heapq.heappush(*((ready, w) if not n_out[w] else (queue, (-surplus[w], w))))
        for w, weight in out[v].items():
            if not placed[w]:
                n_in[w] -= 1
                surplus[w] -= weight
                heapq.heappush(*((unused, w) if not n_in[w] else (queue, (-surplus[w], w))))
    return head + tail[::-1]


def _sift(order: list[int], out: Edges, into: Edges) -> None:
    """Move each vertex to the position where least weight points forwards, until a round moves nothing."""
    position = [0] * len(order)
    for p, v in enumerate(order):
        position[v] = p
    for _ in range(SIFTING_ROUNDS):
        moved = False
        for v in range(len(order)):
            target = _cheapest_position(v, position, out[v], into[v])
            if target is None:
                continue
            source = position[v]
            order.insert(target, order.pop(source))
            for p in range(min(source, target), max(source, target) + 1):
                position[order[p]] = p
            moved = True
        if not moved:
            return


def _cheapest_position(
    v: int, position: Sequence[int], out: Mapping[int, float], into: Mapping[int, float]
) -> int | None:
    """The cheapest position of `v` while the others stay; None where its own is as cheap as any.

    The cost changes where `v` passes a neighbour and is constant between neighbours. A vertex that moves up
    lands right before the last neighbour it passes, one that moves down right behind it.
    """
    here = position[v]
    passing = {w: -weight for w, weight in into.items()}
    for w, weight in out.items():
        passing[w] = passing.get(w, 0.0) + weight
    steps = sorted((position[w], weight) for w, weight in passing.items())
    best, target = 0.0, None
    cost = 0.0
    for p, weight in reversed([step for step in steps if step[0] < here]):
        cost += weight  # passing a dependency costs its weight, passing a dependent gains it
        if cost < best - 1e-9:
            best, target = cost, p
    cost = 0.0
    for p, weight in [step for step in steps if step[0] > here]:
        cost -= weight
        if cost < best - 1e-9:
            best, target = cost, p
    return target


def _numbered(files: list[int], components: Sequence[Sequence[int]]) -> FileOrder:
    component_of = [0] * len(files)
    for number, component in enumerate(components):
        for file in component:
            component_of[file] = number
    renumbered: dict[int, int] = {}
    for file in files:
        renumbered.setdefault(component_of[file], len(renumbered))
    cycle = [renumbered[component_of[file]] for file in range(len(files))]
    size = [len(components[component_of[file]]) for file in range(len(files))]
    return FileOrder(files, cycle, size)
