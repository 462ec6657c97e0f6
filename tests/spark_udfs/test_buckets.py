from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from operator import xor

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_udfs import buckets as udf

SCHEMA = pa.schema([("document", pa.int64()), ("buckets", pa.list_(pa.int64()))])
NAMES = st.integers(-(2**63), 2**63 - 1)
FEW = st.sampled_from([-(2**63), -7, -1, 0, 1, 2**52, 2**62, 2**63 - 1])

Documents = dict[int, list[int]]


def _sorted_by_part(tasks: Iterable[Iterable[pa.RecordBatch]]) -> list[pa.RecordBatch]:
    """What Spark hands on of several tasks, in batches of two rows."""
    rows = [row for task in tasks for batch in task for row in batch.to_pylist()]
    rows.sort(key=lambda row: row["part"])
    schema = pa.schema([("part", pa.int32()), ("members", pa.binary())])
    return [pa.RecordBatch.from_pylist(rows[at : at + 2], schema) for at in range(0, len(rows), 2)]


def _found(tasks: list[Documents]) -> list[tuple[int, int, int]]:
    batches = [
        pa.RecordBatch.from_pylist([{"document": it, "buckets": of} for it, of in task.items()], SCHEMA)
        for task in tasks
    ]
    parted = _sorted_by_part(udf.parted([batch]) for batch in batches)
    shared = _sorted_by_part([udf.shared(parted)])
    return [tuple(row.values()) for batch in udf.distinct(shared) for row in batch.to_pylist()]


def _expected(tasks: list[Documents]) -> set[tuple[int, int, int]]:
    members = defaultdict(list)
    for document, buckets in ((it, of) for task in tasks for it, of in task.items()):
        for bucket in buckets:
            members[bucket].append(document)
    return {(reduce(xor, of), len(of), document) for of in members.values() if len(of) > 1 for document in of}


@settings(deadline=None)
@given(st.dictionaries(NAMES, st.lists(FEW, unique=True, max_size=6), max_size=12), st.integers(1, 3))
def test_members_of_shared_buckets_come_once_by_the_hash_of_their_bucket(
    documents: Documents, tasks: int
) -> None:
    of_tasks = [dict(list(documents.items())[number::tasks]) for number in range(tasks)]
    found = _found(of_tasks)
    assert len(found) == len(set(found))
    assert set(found) == _expected(of_tasks)


@pytest.mark.parametrize("held", [1, 3, 100])
def test_what_is_held_at_once_makes_no_difference(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [{number: [number % 5, 9 + number % 3]} for number in range(30)]
    monkeypatch.setattr(udf, "_HELD", held)
    assert set(_found(documents)) == _expected(documents)


def test_no_document_has_no_member() -> None:
    assert _found([{}]) == []
