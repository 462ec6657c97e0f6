"""The figures of the keep rules against brute force on small graphs, and of families in small."""

from __future__ import annotations

import random
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.dedup import families
from bench.dedup.graphs import Edge, most, stars
from bench.dedup.rules import changed, decided, judged
from factory.dedup import large_buckets
from factory.dedup.decisions import Keep

N = 8
pairs = st.sets(st.sampled_from(list(combinations(range(N), 2))))


def by(keep: Keep, n: int, edges: set[Edge]) -> set[int]:
    """What the stage keeps of `n` documents with these edges."""
    return decided([str(number) for number in range(n)], dict.fromkeys(sorted(edges), 0.9), keep)


def graph(edges: set[Edge]) -> nx.Graph:
    """All documents with these edges."""
    made = nx.Graph(list(edges))
    made.add_nodes_from(range(N))
    return made


@settings(deadline=None)
@given(pairs)
def test_the_most_that_can_stay_is_that_of_all_subsets(edges: set[Edge]) -> None:
    def free(chosen: tuple[int, ...]) -> bool:
        return not any(left in chosen and right in chosen for left, right in edges)

    largest = max(size for size in range(N + 1) if any(map(free, combinations(range(N), size))))
    assert most(graph(edges)) == largest


@settings(deadline=None)
@given(pairs)
def test_a_cover_touches_every_edge_and_keeps_who_has_none(edges: set[Edge]) -> None:
    kept = by("cover", N, edges)
    assert all(left in kept or right in kept for left, right in edges)
    assert set(range(N)) - {end for edge in edges for end in edge} <= kept
    assert judged("cover", kept, N, edges).unsupported == 0


@settings(deadline=None)
@given(pairs)
def test_ours_keeps_no_alike_pair_and_removes_nothing_without_a_like(edges: set[Edge]) -> None:
    kept = by("independent_set", N, edges)
    outcome = judged("ours", kept, N, edges)
    assert (outcome.alike, outcome.unsupported, outcome.lost) == (0, 0, 0)
    assert len(kept) <= most(graph(edges))


def test_a_chain_by_every_rule() -> None:
    chain = {(0, 1), (1, 2), (2, 3), (3, 4)}
    assert judged("one", by("one_per_component", 5, chain), 5, chain).unsupported == 3
    assert by("cover", 5, chain) == {1, 3}
    assert by("independent_set", 5, chain) == {0, 2, 4}
    assert most(nx.Graph(list(chain))) == 3


def test_what_a_rule_loses_is_counted() -> None:
    alike = {(0, 1), (2, 3)}
    outcome = judged("none of the second group", {0, 1, 4}, 5, alike)
    assert (outcome.alike, outcome.unsupported, outcome.lost) == (1, 2, 1)


def test_a_bucket_is_a_star_around_its_first_document() -> None:
    assert stars([[3, 1, 2], [5, 1]]) == {(1, 2), (1, 3), (1, 5)}


@pytest.mark.parametrize("share,differs", [(0.0, False), (1.0, True)])
def test_a_copy_has_a_share_of_its_names_changed(share: float, differs: bool) -> None:
    copy = changed("for x in xs: yield x  # 12", share, random.Random(1))
    assert (copy != "for x in xs: yield x  # 12") is differs
    assert copy.endswith("# 12")


def best_first(members: families.Family) -> list[int]:
    """The members that a greedy search keeps by the versions of their words."""
    kept: list[int] = []
    for number, versions in enumerate(members.versions):
        n_shared = np.count_nonzero(members.versions[kept] == versions, axis=1)
        if not np.any(n_shared / (2 * families.WORDS - n_shared) >= families.CONFIG.threshold):
            kept.append(number)
    return kept


@pytest.mark.parametrize("shape", families.SHAPES)
def test_a_family_keeps_what_all_its_pairs_would_keep(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    members = families.family(shape, 300)
    truth = best_first(members)
    for leading in [(4096,), (16, 64, 256)]:  # a cell of one part, and one of several
        monkeypatch.setattr(large_buckets, "LEADING", leading)
        edges, n_uncompared = families.compare(members)
        kept, n_unsupported = families.independent_set(len(members), edges)
        assert (
            len(set(truth) ^ set(kept.tolist())) <= 2
        )  # banding misses a pair at the threshold now and then
        assert families.similar_kept(members, kept) <= 2
        assert (n_unsupported, n_uncompared) == (0, 0)


def test_members_that_the_bounds_leave_out_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    members = families.family("star", 300)
    monkeypatch.setattr(large_buckets, "BOUNDS", large_buckets.BOUNDS._replace(bags=2))
    assert families.compare(members)[1] > 50
    monkeypatch.setattr(large_buckets, "LEADING", (30,))
    assert families.compare(members)[1] > 200
