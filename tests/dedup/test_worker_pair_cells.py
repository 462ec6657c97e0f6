"""Every pair of candidates is in one cell, together with its documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs import regroup
from spark_udfs.dedup import pair_cells as udf
from tests.dedup.parts import sorted_by_part

Pair = tuple[int, int]
Cells = dict[int, tuple[set[int], list[Pair]]]

NAMES = st.sampled_from([-(2**63), -7, -1, 0, 1, 2**52, 2**62, 2**63 - 1]) | st.integers(0, 40)


def _cells(tasks: list[list[Pair]]) -> Cells:
    """The documents and the pairs of each cell."""
    schema = pa.schema([("document", pa.int64()), ("other", pa.int64())])
    batches = [
        pa.RecordBatch.from_pylist([{"document": one, "other": other} for one, other in task], schema)
        for task in tasks
    ]
    ends = sorted_by_part(udf.ends([batch]) for batch in batches)
    found: Cells = defaultdict(lambda: (set(), []))
    for batch in udf.cells(sorted_by_part([udf.neighbours(ends)])):
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


@given(st.lists(st.tuples(NAMES, NAMES).filter(lambda it: it[0] != it[1]), max_size=80), st.integers(1, 3))
def test_every_pair_is_in_one_cell_with_its_documents(pairs: list[Pair], tasks: int) -> None:
    _assert_whole(_cells([pairs[number::tasks] for number in range(tasks)]), pairs)


@pytest.mark.parametrize("held", [1, 50])
def test_records_held_at_once_make_no_difference(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(number, number * 7 % 40) for number in range(1, 40) if number != number * 7 % 40]
    expected = _sorted(_cells([pairs]))
    monkeypatch.setattr(regroup, "HELD", held)
    assert _sorted(_cells([pairs])) == expected


def _sorted(found: Cells) -> dict[int, tuple[set[int], list[Pair]]]:
    return {cell: (documents, sorted(pairs)) for cell, (documents, pairs) in found.items()}


def test_no_pair_has_no_cell() -> None:
    assert _cells([[]]) == {}
