"""Small buckets give the pairs of their members, large ones the members."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from itertools import combinations
from operator import xor

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_udfs import regroup
from spark_udfs.dedup import buckets as udf
from tests.dedup.parts import sorted_by_part

SCHEMA = pa.schema([("document", pa.int64()), ("buckets", pa.list_(pa.int64()))])
NAMES = st.integers(-(2**63), 2**63 - 1)
FEW = st.sampled_from([-(2**63), -7, -1, 0, 1, 2**52, 2**62, 2**63 - 1])

Documents = dict[int, list[int]]


def _found(tasks: list[Documents], pair_bucket: int) -> list[tuple[int | None, int, int | None]]:
    batches = [
        pa.RecordBatch.from_pylist(
            [{"document": document, "buckets": of} for document, of in task.items()], SCHEMA
        )
        for task in tasks
    ]
    parted = sorted_by_part(udf.parted([batch]) for batch in batches)
    shared = sorted_by_part([udf.shared(parted)])
    found = pa.Table.from_batches(udf.collisions(shared, pair_bucket))
    of_pairs, of_large = (
        found.filter(pc.equal(found["large"], is_large)).to_batches() for is_large in (False, True)
    )
    ends = [tuple(row.values()) for batch in udf.members(of_pairs) for row in batch.to_pylist()]
    assert sorted(ends) == sorted((other, one) for one, other in ends)
    pairs = [(None, one, other) for one, other in ends if one < other]
    members = [row for batch in udf.members(of_large) for row in batch.to_pylist()]
    return [*pairs, *((row["bucket"], row["document"], None) for row in members)]


def _expected(tasks: list[Documents], pair_bucket: int) -> set[tuple[int | None, int, int | None]]:
    members = defaultdict(list)
    for document, buckets in ((it, of) for task in tasks for it, of in task.items()):
        for bucket in buckets:
            members[bucket].append(document)
    named = defaultdict(set)  # small numbers collide
    for of in members.values():
        if len(of) > 1:
            named[reduce(xor, of)].update(of)
    small = [sorted(of) for of in named.values() if len(of) <= pair_bucket]
    pairs = {(None, *pair) for of in small for pair in combinations(of, 2)}
    return pairs | {(name, it, None) for name, of in named.items() if len(of) > pair_bucket for it in of}


@settings(deadline=None)
@given(
    st.dictionaries(NAMES, st.lists(FEW, unique=True, max_size=6), max_size=12),
    st.integers(1, 3),
    st.integers(2, 5),
)
def test_small_buckets_give_pairs_and_large_ones_members(
    documents: Documents, tasks: int, pair_bucket: int
) -> None:
    split = [dict(list(documents.items())[number::tasks]) for number in range(tasks)]
    assert set(_found(split, pair_bucket)) == _expected(split, pair_bucket)


def test_buckets_of_the_same_members_are_one() -> None:
    documents = {number: [7, 8, 9] for number in range(4)}
    assert len(_found([documents], pair_bucket=2)) == 4
    assert len(_found([documents], pair_bucket=4)) == 6


def test_a_pair_that_shares_two_buckets_comes_once() -> None:
    assert len(_found([{0: [7, 8], 1: [7], 2: [7, 8]}], pair_bucket=3)) == 3


@pytest.mark.parametrize("held", [1, 3, 100])
def test_records_held_at_once_make_no_difference(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [{number: [number % 5, 9 + number % 3]} for number in range(30)]
    monkeypatch.setattr(regroup, "HELD", held)
    assert set(_found(documents, 6)) == _expected(documents, 6)


def test_without_documents_there_are_no_pairs() -> None:
    assert _found([{}], 2) == []
