"""Files without symbols are ordered, give a reason, and cost no other file its symbols."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor

import pytest

from spark_udfs.depsort import extract
from spark_udfs.depsort.isolated import Isolated
from tests.depsort.repositories import Sorted

OTHERS = {"a.py": "import b\n", "b.py": "x = 1\n"}


def sorted_within(texts: Mapping[str, str], memory_bytes: int, cpu_s: int) -> Sorted:
    """Sort a repository whose files may each take so much memory and time."""
    bounded = Isolated(extract.read, memory_bytes, cpu_s)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extract, "reader", lambda: bounded)
        found = Sorted(texts)
    bounded.close()
    return found


def unread(found: Sorted) -> dict[str, str]:
    return {row["doc_id"]: row["name"] for row in found.symbols if row["kind"] == "unread"}


@pytest.mark.parametrize(
    "path, piece",
    [("A.cs", "a<"), ("A.java", "a<"), ("a.cc", ".f(")],  # memory grows with the square of their number
)
def test_a_file_that_takes_all_memory_costs_its_own_symbols_only(
    path: str, piece: str, worker: Executor
) -> None:
    found = worker.submit(sorted_within, {**OTHERS, path: piece * 15_000}, 1 << 28, 30).result()
    assert unread(found) == {path: "out_of_bounds"}
    assert found.pairs == {("a.py", "b.py")}
    assert sorted(found.order) == sorted([*OTHERS, path])


def test_a_file_that_takes_all_time_costs_its_own_symbols_only(worker: Executor) -> None:
    found = worker.submit(sorted_within, {**OTHERS, "A.java": "~%!" * 10_000}, 1 << 28, 1).result()
    assert unread(found) == {"A.java": "out_of_bounds"}
    assert len(found.edges) == 1


def test_a_file_that_is_too_large_says_so() -> None:
    found = Sorted({**OTHERS, "large.py": "import b\n" * (extract.MAX_SOURCE_BYTES // 9 + 1)})
    assert unread(found) == {"large.py": "too_large"}
    assert "large.py" in found.order
