"""Candidates, exact similarities and crowds, without Spark."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from factory import _native
from factory.dedup.config import DedupConfig
from spark_udfs.edges import candidate_pairs, crowd_edges, verified_pairs
from tests.dedup.bagged import packed, sign

CONFIG = DedupConfig(kind="code")
IDF = bytes([40]) * (1 << 20)
SHARED = SimpleNamespace(value=IDF)
LIMITS = [(CONFIG.least_estimate(CONFIG.threshold), CONFIG.threshold)]
WORDS = [f"word{number}" for number in range(4000)]


def crowd(n: int, families: int, seed: int) -> pa.RecordBatch:
    """`n` texts of one bucket, in families that differ from a first text in up to 18 % of words."""
    chosen = random.Random(seed)
    firsts = [chosen.sample(WORDS, 200) for _ in range(families)]
    texts = []
    for number in range(n):
        words = list(firsts[number % families])
        for at in chosen.sample(range(200), chosen.randrange(36)):
            words[at] = chosen.choice(WORDS)
        texts.append(" ".join(words))
    signed = sign(texts, IDF, CONFIG.kind, CONFIG.scheme, CONFIG.values, CONFIG.value_bits, 0)
    cell, bags = pa.array(np.zeros(n, np.int64)), packed(texts)
    names = pa.array([f"{number:04}" for number in range(n)])
    return pa.RecordBatch.from_arrays(
        [cell, cell, names, signed["signature"], bags],
        ["cell", "bucket", "doc_id", "signature", "bag"],
    )


def all_edges(members: pa.RecordBatch) -> list[dict[str, object]]:
    """The edges by all pairs."""
    pairs = pa.Table.from_batches(candidate_pairs([members], CONFIG.value_bits, LIMITS[0][0]))
    n, documents = pairs.num_rows, members.num_rows
    cell = pa.RecordBatch.from_pydict(
        {
            "cell": pa.array(np.zeros(n + documents, np.int64)),
            "doc_id": pa.array([*pairs["left"].to_pylist(), *members["doc_id"].to_pylist()]),
            "other": pa.array([*pairs["right"].to_pylist(), *[None] * documents], pa.string()),
            "estimate": pa.array([*pairs["estimate"].to_pylist(), *[None] * documents], pa.float64()),
            "bag": pa.array([*[None] * n, *members["bag"].to_pylist()], pa.binary()),
        }
    )
    return pa.Table.from_batches(verified_pairs([cell], threshold=CONFIG.threshold, idf=SHARED)).to_pylist()


def few_edges(
    members: pa.RecordBatch, cut: int = 100, limits: list[tuple[float, float]] = LIMITS
) -> list[dict[str, object]]:
    """The edges of the crowd, its members coming `cut` at a time."""
    batches = [members.slice(at, cut) for at in range(0, members.num_rows, cut)]
    found = crowd_edges(
        batches, value_bits=CONFIG.value_bits, limits=limits, neighbours=CONFIG.neighbours, idf=SHARED
    )
    return pa.Table.from_batches(found).to_pylist()


def kept(members: pa.RecordBatch, edges: list[dict[str, object]]) -> list[object]:
    names = members["doc_id"].to_pylist()
    batch = pa.RecordBatch.from_pydict(
        {
            "doc_id": pa.array([*(edge["left"] for edge in edges), *names]),
            "other": pa.array([*(edge["right"] for edge in edges), *[None] * len(names)], pa.string()),
            "similarity": pa.array(
                [*(edge["similarity"] for edge in edges), *[None] * len(names)], pa.float64()
            ),
        }
    )
    return [row["doc_id"] for row in _native.decide(batch, "independent_set").to_pylist() if row["kept"]]


@pytest.mark.parametrize("families", [1, 4])
def test_a_crowd_keeps_what_all_its_pairs_would_keep(families: int) -> None:
    members = crowd(400, families, seed=families)
    few, every = few_edges(members), all_edges(members)
    assert all(edge in every for edge in few)
    assert len(few) < len(every) / 2
    assert kept(members, few) == kept(members, every)
    assert families <= len(kept(members, few)) < 400


def test_a_crowd_has_leaders_for_every_threshold() -> None:
    members = crowd(400, 3, seed=9)
    thresholds = [0.8, 0.88, 0.95]
    limits = [(CONFIG.least_estimate(threshold), threshold) for threshold in thresholds]
    few, lowest, every = few_edges(members, limits=limits), few_edges(members), all_edges(members)
    assert len({(edge["left"], edge["right"]) for edge in few}) == len(few) < len(every)
    assert all(edge in every for edge in few)
    kept_of_lowest = []
    for threshold in thresholds:
        few_kept, lowest_kept, every_kept = (
            kept(members, [edge for edge in edges if edge["similarity"] >= threshold])
            for edges in (few, lowest, every)
        )
        assert few_kept == every_kept
        kept_of_lowest.append(lowest_kept == every_kept)
    assert kept_of_lowest[0]
    assert not all(kept_of_lowest)  # the leaders of the lowest threshold do not serve for a higher one


def test_the_edges_of_a_crowd_do_not_depend_on_batches_and_end_with_it() -> None:
    members = crowd(60, 1, seed=3)
    assert few_edges(members, cut=7) == few_edges(members, cut=60)
    apart = members.set_column(0, "cell", pa.array(np.arange(60)))
    assert few_edges(apart) == []


def test_similarity_is_the_sum_of_minima_over_the_sum_of_maxima() -> None:
    cell = pa.RecordBatch.from_pydict(
        {
            "cell": pa.array([0] * 5, pa.int64()),
            "doc_id": ["x", "y", "z", "x", "y"],
            "other": [None, None, None, "y", "z"],
            "estimate": [None, None, None, 0.5, 0.25],
            "bag": packed(["a b c d", "a b c e", "q", None, None]),
        }
    )
    (found,) = verified_pairs([cell], threshold=0.0, idf=SHARED)
    assert found.to_pylist() == [
        {"left": "x", "right": "y", "estimate": 0.5, "similarity": 3 / 5},
        {"left": "y", "right": "z", "estimate": 0.25, "similarity": 0.0},
    ]
    (found,) = verified_pairs([cell], threshold=0.6, idf=SHARED)
    assert found["right"].to_pylist() == ["y"]


def test_a_pair_without_its_document_is_refused_by_name() -> None:
    cell = pa.RecordBatch.from_pydict(
        {
            "cell": pa.array([0], pa.int64()),
            "doc_id": ["a"],
            "other": ["b"],
            "estimate": [0.9],
            "bag": pa.array([None], pa.binary()),
        }
    )
    with pytest.raises(ValueError, match="document a"):
        list(verified_pairs([cell], threshold=CONFIG.threshold, idf=SHARED))


def test_signatures_of_different_lengths_never_meet() -> None:
    bucket = pa.RecordBatch.from_pydict(
        {"bucket": pa.array([1, 1], pa.int64()), "doc_id": ["a", "b"], "signature": [b"1234", b"12345678"]}
    )
    with pytest.raises(ValueError, match="4 and 8 bytes"):
        list(candidate_pairs([bucket], 8, 0.7))


def test_an_empty_batch_has_no_pairs() -> None:
    members = crowd(3, 1, seed=1)
    assert _native.candidate_pairs(members.slice(3), CONFIG.value_bits, LIMITS[0][0]).num_rows == 0
