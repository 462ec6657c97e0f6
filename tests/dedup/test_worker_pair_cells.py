from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.dedup import pair_cells as udf

Pair = tuple[int, int]
Cells = dict[int, tuple[set[int], list[Pair]]]

NAMES = st.sampled_from([-(2**63), -7, -1, 0, 1, 2**52, 2**62, 2**63 - 1])


def _by_part(tasks: Iterable[Iterable[pa.RecordBatch]]) -> list[pa.RecordBatch]:
    """What Spark hands on of several tasks, in batches of two rows."""
    rows = [row for task in tasks for batch in task for row in batch.to_pylist()]
    rows.sort(key=lambda row: row["part"])
    schema = pa.schema([("part", pa.int32()), ("records", pa.binary())])
    return [pa.RecordBatch.from_pylist(rows[at : at + 2], schema) for at in range(0, len(rows), 2)]


def _cells(tasks: list[list[Pair]]) -> Cells:
    """The documents and the pairs of each cell."""
    schema = pa.schema([("document", pa.int64()), ("other", pa.int64())])
    batches = [
        pa.RecordBatch.from_pylist([{"document": one, "other": other} for one, other in task], schema)
        for task in tasks
    ]
    ends = _by_part(udf.ends([batch]) for batch in batches)
    found: Cells = defaultdict(lambda: (set(), []))
    for batch in udf.cells(_by_part([udf.neighbours(ends)])):
        for row in batch.to_pylist():
            documents, pairs = found[row["cell"]]
            documents.add(row["document"])
            pairs += [(row["document"], other) for other in np.frombuffer(row["others"], "<i8").tolist()]
    return found


def _assert_whole(found: Cells, pairs: Iterable[Pair]) -> None:
    """Each pair is in one cell, once, and so are its documents."""
    expected = {(min(pair), max(pair)) for pair in pairs}
    assert sorted(pair for _, of in found.values() for pair in of) == sorted(expected)
    for documents, of in found.values():
        assert documents == {end for pair in of for end in pair}


@given(st.lists(st.tuples(NAMES, NAMES).filter(lambda it: it[0] != it[1]), max_size=20), st.integers(1, 3))
def test_every_pair_is_in_one_cell_with_its_documents(pairs: list[Pair], tasks: int) -> None:
    _assert_whole(_cells([pairs[number::tasks] for number in range(tasks)]), pairs)


@pytest.mark.parametrize("held", [1, 50])
def test_what_is_held_at_once_makes_no_difference(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(number, number * 7 % 40) for number in range(1, 40) if number != number * 7 % 40]
    expected = _cells([pairs])
    monkeypatch.setattr(udf, "_HELD", held)
    assert {cell: (of[0], sorted(of[1])) for cell, of in _cells([pairs]).items()} == {
        cell: (of[0], sorted(of[1])) for cell, of in expected.items()
    }


def test_no_pair_has_no_cell() -> None:
    assert _cells([[]]) == {}
