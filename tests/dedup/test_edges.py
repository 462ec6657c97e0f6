"""Candidates, exact similarities and large buckets, without Spark."""

from __future__ import annotations

import random
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from factory import _native
from factory.dedup.config import DedupConfig
from factory.dedup.large_buckets import BOUNDS
from spark_udfs.column_fetch import ReadColumn
from spark_udfs.dedup.edges import MemberBounds, large_bucket_edges, verified_pairs
from tests.dedup.bagged import idf_table, packed, sign

CONFIG = DedupConfig(kind="code")
IDF = idf_table({}, 11)  # all tokens weigh the same
SHARED = SimpleNamespace(value=IDF)
LIMITS = [(CONFIG.size.least_estimate(CONFIG.threshold), CONFIG.threshold, True)]
WORDS = [f"word{number}" for number in range(4000)]


def bucket(n: int, families: int, seed: int) -> pa.RecordBatch:
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
    cell, names = pa.array(np.zeros(n, np.int64)), pa.array([f"{number:04}" for number in range(n)])
    every = pa.array(np.ones(n, bool))
    columns = {
        "cell": cell,
        "part": cell,
        "leads": every,
        "shown": every,
        "open": pa.array(np.full(n, -1)),
        "uncompared": cell,
        "buckets": pa.array([[7]] * n, pa.list_(pa.int64())),
        "doc_id": names,
        "signature": signed["signature"],
        "n_distinct": pa.array(np.full(n, 200)),
    }
    return pa.RecordBatch.from_pydict(columns | {"bag": packed(texts)})


def cell(
    members: dict[str, tuple[bytes | None, bytes | None]], pairs: list[tuple[str, str]]
) -> pa.RecordBatch:
    """One cell: documents with (signature, bag), and pairs of them, known by the numbers of their names."""
    numbers = {
        name: number for number, name in enumerate(sorted({*members, *(it for pair in pairs for it in pair)}))
    }
    others = [[numbers[other] for one, other in pairs if one == name] for name in members]
    return pa.RecordBatch.from_pydict(
        {
            "cell": pa.array(np.zeros(len(members), np.int64)),
            "document": pa.array([numbers[name] for name in members], pa.int64()),
            "others": pa.array([np.array(of, "<i8").tobytes() for of in others], pa.binary()),
            "doc_id": pa.array([*members], pa.string()),
            "signature": pa.array([it for it, _ in members.values()], pa.binary()),
            "bag": pa.array([it for _, it in members.values()], pa.binary()),
        }
    )


def bags_of(members: pa.RecordBatch) -> ReadColumn:
    """Reads the bags of rows by their `doc_id`."""
    bags = dict(zip(members["doc_id"].to_pylist(), members["bag"].to_pylist(), strict=True))
    return lambda rows: pa.array([bags[name] for name in rows["doc_id"].to_pylist()], pa.binary())


def verify(
    batch: pa.RecordBatch, least_estimate: float = 0, threshold: float = CONFIG.threshold
) -> list[dict[str, object]]:
    found = verified_pairs(
        [batch.drop_columns("bag")],
        bags=bags_of(batch),
        idf=SHARED,
        value_bits=CONFIG.value_bits,
        least_estimate=least_estimate,
        threshold=threshold,
    )
    return [row for edges in found for row in edges.to_pylist()]


def all_edges(members: pa.RecordBatch) -> list[dict[str, object]]:
    """The edges by all pairs."""
    columns = [members[name].to_pylist() for name in ("doc_id", "signature", "bag")]
    documents = {name: (signature, bag) for name, signature, bag in zip(*columns, strict=True)}
    return verify(cell(documents, list(combinations(documents, 2))), least_estimate=LIMITS[0][0])


def compare(
    members: pa.RecordBatch,
    cut: int = 100,
    limits: list[tuple[float, float, bool]] = LIMITS,
    bounds: MemberBounds = BOUNDS,
) -> list[dict[str, object]]:
    """The rows of a large bucket, its members coming `cut` at a time."""
    batches = [members.drop_columns("bag").slice(at, cut) for at in range(0, members.num_rows, cut)]
    found = large_bucket_edges(
        batches,
        bags=bags_of(members),
        value_bits=CONFIG.value_bits,
        limits=limits,
        bounds=bounds,
        idf=SHARED,
    )
    return pa.Table.from_batches(found).to_pylist()


def few_edges(
    members: pa.RecordBatch, cut: int = 100, limits: list[tuple[float, float, bool]] = LIMITS
) -> list[dict[str, object]]:
    """The edges of a large bucket."""
    columns = ("left", "right", "estimate", "similarity")
    return [{name: row[name] for name in columns} for row in compare(members, cut, limits) if row["right"]]


def kept(members: pa.RecordBatch, edges: list[dict[str, object]]) -> list[object]:
    rows = [
        {"doc_id": edge["left"], "other": edge["right"], "similarity": edge["similarity"]} for edge in edges
    ]
    rows += [{"doc_id": name} for name in members["doc_id"].to_pylist()]
    fields = [("doc_id", pa.string()), ("other", pa.string()), ("similarity", pa.float64())]
    batch = pa.RecordBatch.from_pylist(rows, pa.schema(fields))
    return [row["doc_id"] for row in _native.decide(batch, "independent_set").to_pylist() if row["kept"]]


@pytest.mark.parametrize("families", [1, 4])
def test_a_large_bucket_keeps_what_all_its_pairs_would_keep(families: int) -> None:
    members = bucket(400, families, seed=families)
    few, every = few_edges(members), all_edges(members)
    assert all(edge in every for edge in few)
    assert len(few) < len(every) / 2
    assert kept(members, few) == kept(members, every)
    assert families <= len(kept(members, few)) < 400


def test_a_large_bucket_has_leaders_for_every_threshold() -> None:
    members = bucket(400, 3, seed=9)
    thresholds = [0.8, 0.88, 0.95]
    limits = [(CONFIG.size.least_estimate(threshold), threshold, True) for threshold in thresholds]
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


def test_edges_of_a_large_bucket_do_not_depend_on_batches() -> None:
    members = bucket(60, 1, seed=3)
    assert few_edges(members, cut=7) == few_edges(members, cut=60)
    apart = members.set_column(0, "cell", pa.array(np.arange(60)))
    assert few_edges(apart) == []


def test_similarity_is_the_sum_of_minima_over_the_sum_of_maxima() -> None:
    of = dict(zip("zyx", packed(["a b c d", "a b c e", "q"]).to_pylist(), strict=True))
    batch = cell({name: (b"12345678", bag) for name, bag in of.items()}, [("z", "y"), ("y", "x")])
    assert verify(batch, threshold=0) == [
        {"left": "x", "right": "y", "estimate": 1, "similarity": 0},
        {"left": "y", "right": "z", "estimate": 1, "similarity": 3 / 5},
    ]
    assert [row["right"] for row in verify(batch, threshold=0.6)] == ["z"]


def test_a_pair_whose_signatures_are_too_far_apart_is_not_compared() -> None:
    bag = packed(["a b"])[0].as_py()
    members = {"a": (b"12345678", bag), "b": (b"1234....", bag), "c": (b"12......", bag)}
    batch = cell(members, [*combinations("abc", 2)])
    compared = [(row["left"], row["right"]) for row in verify(batch, least_estimate=0.49)]
    assert compared == [("a", "b"), ("b", "c")]
    assert {row["similarity"] for row in verify(batch)} == {1}


def test_only_bags_of_documents_with_similar_signatures_are_read() -> None:
    bag = packed(["a b"])[0].as_py()
    members = {"a": (b"12345678", bag), "b": (b"1234....", bag), "c": (b"........", bag)}
    batch = cell(members, [("a", "c"), ("a", "b"), ("a", "b")])
    assert _native.CandidatePairs(batch, CONFIG.value_bits, 0.4).rows.to_pylist() == [0, 1]
    assert _native.CandidatePairs(batch, CONFIG.value_bits, 0.9).rows.to_pylist() == []


def test_a_document_of_several_cells_is_read_once() -> None:
    bag = packed(["a b"])[0].as_py()
    members = dict.fromkeys("abc", (b"12345678", bag))
    batch = cell(members, [("a", "b"), ("a", "c")])
    again = pa.Table.from_batches([batch, batch]).combine_chunks().to_batches()[0]
    assert len(_native.CandidatePairs(again, CONFIG.value_bits, 0.4).rows) == 3
    assert len(verify(again)) == 2


def test_bags_of_other_rows_are_refused() -> None:
    member = (b"12345678", packed(["a b"])[0].as_py())
    candidates = _native.CandidatePairs(cell({"a": member, "b": member}, [("a", "b")]), CONFIG.value_bits, 0)
    with pytest.raises(ValueError, match="1 bags for 2 rows"):
        candidates.verify(pa.array([member[1]]), IDF, 0.5)


def test_a_pair_that_comes_again_is_one_edge() -> None:
    member = (b"12345678", packed(["a b"])[0].as_py())
    assert len(verify(cell({"a": member, "b": member}, [("a", "b")] * 3))) == 1


def test_a_pair_without_its_document_is_refused() -> None:
    with pytest.raises(ValueError, match="which are not both in the batch"):
        verify(cell({"a": (b"1", packed(["a"])[0].as_py())}, [("a", "b")]))


def test_signatures_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="4 and 8 bytes"):
        verify(cell({"a": (b"1234", None), "b": (b"12345678", None)}, [("a", "b")]))


def test_an_empty_batch_has_no_pairs() -> None:
    assert verify(cell({}, [])) == []


def test_bags_of_many_documents_are_read_in_turns() -> None:
    n, member = 5_001, (b"12345678", packed(["a b"])[0].as_py())
    neighbours = [(str(number), str(number + 1)) for number in range(0, n - 1, 2)]
    batch = cell(dict.fromkeys(map(str, range(n)), member), neighbours)
    pairs = pa.array([number // 2 for number in range(n)], pa.int64())
    read: list[int] = []

    def bags(rows: pa.RecordBatch) -> pa.Array:
        read.append(rows.num_rows)
        return pa.array([member[1]] * rows.num_rows)

    batch = batch.drop_columns(["bag", "cell"]).append_column("cell", pairs)
    found = verified_pairs([batch], bags, SHARED, CONFIG.value_bits, 0, CONFIG.threshold)
    assert sum(edges.num_rows for edges in found) == n // 2
    assert max(read) < 2_600
