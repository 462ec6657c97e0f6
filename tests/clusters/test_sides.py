"""Sides of a cluster: near duplicates together, about the same bytes."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from factory import _native
from spark_udfs.clusters.sides import SIMILAR, families, sides
from tests.clusters.planted_texts import WORDS, prose


def with_edits(text: str, n_words: int, seed: int) -> str:
    chance = random.Random(seed)
    words = text.split()
    for place in chance.sample(range(len(words)), n_words):
        words[place] = f"word{chance.randrange(10**6)}"
    return " ".join(words)


def by_definition(texts: list[str]) -> list[int]:
    sets = [set(buckets) for buckets in _native.hashed_features(pa.array(texts), 16).to_pylist()]
    graph = nx.Graph()
    graph.add_nodes_from(range(len(texts)))
    for first in range(len(texts)):
        for second in range(first):
            common, union = sets[first] & sets[second], sets[first] | sets[second]
            if common and len(common) / len(union) >= SIMILAR:
                graph.add_edge(first, second)
    components = sorted(nx.connected_components(graph), key=min)
    return [next(number for number, part in enumerate(components) if i in part) for i in range(len(texts))]


@given(
    picks=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 3, 8, 20])), min_size=1, max_size=12),
)
def test_families_are_connected_near_duplicates(picks: list[tuple[int, int]]) -> None:
    texts = [
        with_edits(prose(WORDS["english"], str(original), 60), n_words, seed)
        for seed, (original, n_words) in enumerate(picks)
    ]
    texts += ["", "", texts[0]]
    assert families(pa.array(texts)).tolist() == by_definition(texts)


def test_a_text_without_a_token_is_a_family_by_itself() -> None:
    assert families(pa.array(["", "a b", "", "a b", " "])).tolist() == [0, 1, 2, 1, 3]


def test_near_duplicates_lie_on_one_side() -> None:
    texts = [with_edits(prose(WORDS["english"], str(n % 10), 80), 2, n) for n in range(40)]
    numbers = families(pa.array(texts))
    on_b = sides(numbers, [len(text) for text in texts])
    assert numbers.max() == 9
    assert all(len(set(on_b[numbers == family])) == 1 for family in range(10))
    assert 0.4 < on_b.mean() < 0.6


def test_a_family_alone_is_split_by_document() -> None:
    assert sides([0, 0, 0, 0], [5, 5, 5, 5]).tolist() == [False, True, False, True]


@given(
    members=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=2, max_size=40),
)
def test_sides_differ_by_no_more_than_the_largest_family(members: list[tuple[int, int]]) -> None:
    _, numbers = np.unique([family for family, _ in members], return_inverse=True)
    n_bytes = np.array([size for _, size in members])
    on_b = sides(numbers, n_bytes)
    assert 0 < on_b.sum() < len(members)
    heaviest = np.bincount(numbers, n_bytes).max()
    assert abs(n_bytes[on_b].sum() - n_bytes[~on_b].sum()) <= heaviest
