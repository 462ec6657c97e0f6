"""Batches of whole groups."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.regroup import bounded_pieces, whole_groups


@given(
    st.lists(st.integers(1, 12), max_size=12),
    st.lists(st.integers(0, 9), min_size=1, max_size=20),
    st.integers(1, 20),
)
def test_rows_stay_in_order_and_no_group_is_split(sizes: list[int], cuts: list[int], rows: int) -> None:
    keys = [f"g{group:02}" for group, size in enumerate(sizes) for _ in range(size)]
    whole = pa.RecordBatch.from_pydict(
        {"key": pa.array(keys, pa.string()), "row": pa.array(range(len(keys)), pa.int64())}
    )
    batches, at = [], 0
    while at < len(keys):
        for cut in [*cuts, 1]:
            batches.append(whole.slice(at, cut))
            at += cut
    groups = [batch.to_pylist() for batch in whole_groups(batches, "key", rows)]
    assert [row["row"] for group in groups for row in group] == list(range(len(keys)))
    seen = [{row["key"] for row in group} for group in groups]
    assert sum(len(names) for names in seen) == len(set(keys))
    assert all(group for group in groups)


def test_a_group_comes_as_soon_as_enough_rows_are_there() -> None:
    def batches() -> object:
        for number in range(100):
            produced.append(number)
            yield pa.RecordBatch.from_pydict({"key": pa.array([number // 2]), "text": pa.array(["a"])})

    produced: list[int] = []
    first = next(whole_groups(batches(), "key", 4))  # type: ignore[arg-type]
    assert first["key"].to_pylist() == [0, 0]
    assert len(produced) == 4


def test_pieces_are_bounded_by_the_sum_of_a_column() -> None:
    batch = pa.RecordBatch.from_pydict({"tokens": [3, 3, 9, 1, 1, 1, 1, 5]})
    cut = [piece["tokens"].to_pylist() for piece in bounded_pieces([batch], 3, "tokens", 6)]
    assert cut == [[3, 3], [9], [1, 1, 1], [1, 5]]
    assert list(bounded_pieces([batch.slice(0, 0)], 3, "tokens", 6)) == []
