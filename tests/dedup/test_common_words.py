"""Families that common words hide, without Spark."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from factory.dedup.common_words import CommonWords, counted_pairs
from spark_udfs.dedup.edges import sampled_similarities
from tests.dedup.bagged import idf_table, packed, sign


def similarities(
    texts: list[str], n_documents: int, frequencies: dict[int, int]
) -> list[tuple[float, float]]:
    """(by_words, by_weight) of all pairs of texts in a group with these document frequencies."""
    idf = idf_table(frequencies, n_documents)
    bags = packed(texts)
    columns = {
        "doc_id": pa.array([f"{number:03}" for number in range(len(texts))]),
        "signature": sign(texts, idf, "code", "lpmh", 256, 8, 0)["signature"],
    }
    batch = pa.RecordBatch.from_pydict(columns)
    batches = [batch.slice(0, 3), batch.slice(3)]
    found = sampled_similarities(
        batches,
        lambda rows: bags.take(pa.array(map(int, rows["doc_id"].to_pylist()))),
        SimpleNamespace(value=idf),
        8,
    )
    return [(row["by_words"], row["by_weight"]) for pairs in found for row in pairs.to_pylist()]


def tokens(text: str) -> list[int]:
    bag = packed([text])[0].as_py()
    return np.frombuffer(bag, np.int64, int.from_bytes(bag[:4], "little"), 4).tolist()


@pytest.mark.parametrize("share,hides", [(1.0, True), (0.001, False)])
def test_a_family_that_makes_up_its_group_is_hidden_by_its_own_words(share: float, hides: bool) -> None:
    chosen, n = random.Random(4), 20_000
    words = [f"word{number}" for number in range(400)]
    texts = [
        " ".join(f"rare{chosen.randrange(10**9)}" if at in changed else word for at, word in enumerate(words))
        for changed in (set(chosen.sample(range(400), 12)) for _ in range(16))
    ]
    of_words = Counter(token for text in texts for token in tokens(text))
    group = {token: int(n * share) for token, df in of_words.items() if df > 4}
    counted = counted_pairs(similarities(texts, n, group), 0.8)
    assert counted.pairs == 16 * 15 // 2
    assert (counted.n_hidden > 100) is hides
    assert bool(counted.sentence()) is hides
    if hides:
        assert 0.45 < counted.similarity < 0.6
        assert (
            f"{counted.n_hidden} of 120 pairs of sampled documents share at least 0.8" in counted.sentence()
        )
        assert "lower `threshold` to 0.5," in counted.sentence() or "to 0.45," in counted.sentence()


def test_few_hidden_pairs_are_no_family() -> None:
    unlike, hidden, similar = (0.1, 0.05), (0.9, 0.6), (0.95, 0.85)
    assert counted_pairs([hidden] * 3 + [unlike] * 60, 0.8).sentence() == ""
    assert counted_pairs([hidden] * 30, 0.8).sentence() == ""  # of nine documents
    assert counted_pairs([similar] * 100, 0.8) == CommonWords(0.8, 100)
    assert counted_pairs([], 0.8) == CommonWords(0.8)
    assert (
        counted_pairs([hidden] * 60, 0.8).sentence().count("lower `threshold` to 0.6, or compare them in")
        == 1
    )
    assert "`threshold`" not in counted_pairs([(0.9, 0.2)] * 60, 0.8).sentence()
