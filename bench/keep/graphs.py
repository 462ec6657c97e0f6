"""Graphs of numbered documents, best first: components, stars, and the largest independent set.

A graph is a number of documents and its edges (left, right).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

Edge = tuple[int, int]


def components(n: int, edges: Iterable[Edge]) -> list[list[int]]:
    """The documents of each connected component, ascending."""
    ends = np.array([*edges], dtype=np.int64).reshape(-1, 2)
    graph = coo_matrix((np.ones(len(ends)), ends.T), shape=(n, n))
    members: dict[int, list[int]] = defaultdict(list)
    for document, label in enumerate(connected_components(graph, directed=False)[1]):
        members[int(label)].append(document)
    return list(members.values())


def most(members: Sequence[int], edges: Iterable[Edge]) -> int:
    """The size of the largest independent set, exactly; for small components.

    Branches on the document with the most neighbours as long as every document has two or more.
    """
    place = {document: number for number, document in enumerate(members)}
    near = [0] * len(members)
    for left, right in edges:
        near[place[left]] |= 1 << place[right]
        near[place[right]] |= 1 << place[left]

    def best(left: int) -> int:
        found = 0
        while left:
            degrees = [((near[it] & left).bit_count(), it) for it in _bits(left)]
            degree, document = min(degrees)
            if degree > 1:
                _, document = max(degrees)
                without = left & ~(1 << document)
                return found + max(1 + best(without & ~near[document]), best(without))
            found += 1  # a document with at most one neighbour is in some largest set
            left &= ~(1 << document | near[document])
        return found

    return best((1 << len(members)) - 1)


def adjacency(edges: Iterable[Edge]) -> dict[int, set[int]]:
    """The neighbours of every document that has any."""
    neighbours: dict[int, set[int]] = defaultdict(set)
    for left, right in edges:
        neighbours[left].add(right)
        neighbours[right].add(left)
    return dict(neighbours)


def stars(buckets: Iterable[Sequence[int]]) -> set[Edge]:
    """The edges from the least document of each bucket to its others."""
    return {(min(bucket), other) for bucket in buckets for other in bucket if other != min(bucket)}


def _bits(word: int) -> Iterable[int]:
    while word:
        lowest = word & -word
        yield lowest.bit_length() - 1
        word ^= lowest
