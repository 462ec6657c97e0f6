"""The bound of satisfied dependencies, against the best of all orders of small graphs."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.depsort.bound import disjoint_cycles, most_satisfied

names = st.sampled_from("abcde")


def ring(files: str) -> set[tuple[str, str]]:
    return set(pairwise(files + files[0]))


@given(st.sets(st.tuples(names, names), max_size=14))
def test_no_order_satisfies_more_than_the_bound(edges: set[tuple[str, str]]) -> None:
    best = max(
        sum(order.index(other) < order.index(one) for one, other in edges) for order in permutations("abcde")
    )
    assert best <= most_satisfied(edges) <= len(edges)


@pytest.mark.parametrize(
    "edges, cycles",
    [
        (set(), 0),
        ({("a", "b"), ("b", "c"), ("a", "c")}, 0),
        (ring("abc"), 1),
        (ring("ab") | ring("cd") | {("b", "c")}, 2),
        (ring("abc") | {("b", "a")}, 1),  # both cycles use a -> b
        (ring("abcd") | ring("efgh"), 2),
        (ring("abc") | ring("ade"), 2),  # they share a file and no edge
        ({("a", "a"), ("a", "b")}, 1),
    ],
)
def test_cycles_without_a_common_edge_are_counted(edges: set[tuple[str, str]], cycles: int) -> None:
    assert disjoint_cycles(edges) == cycles


@pytest.mark.timeout(120)
def test_the_cycles_of_a_large_knot_of_files_are_counted() -> None:
    files = [f"{number:04}" for number in range(2_000)]
    chain = set(pairwise(files)) | {(files[-1], files[0])}
    shortcuts = {(files[number], files[(number * 7) % 2_000]) for number in range(1, 2_000)}
    found = disjoint_cycles(chain | shortcuts)
    assert 100 < found < 2_000
