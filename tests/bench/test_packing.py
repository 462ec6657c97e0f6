"""The figures of `bench packing` on repositories small enough to check by eye."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bench.packing.metrics import visible_dependencies
from bench.packing.repositories import Repositories, best_fit, ours
from spark_udfs.packing.pack import next_fit_chunk


@pytest.fixture
def repositories() -> Repositories:
    """Two repositories: `a1` needs `a0`, `a2` needs both; `b1` needs `b0`, longer than a sequence."""
    documents = pa.table(
        {
            "doc_id": ["a0", "a1", "a2", "b0", "b1"],
            "repository": ["a", "a", "a", "b", "b"],
            "revision": pa.nulls(5, pa.string()),
            "position": [0, 1, 2, 0, 1],
            "n_tokens": [3, 3, 4, 13, 6],
        }
    )
    edges = {"doc_id": ["a1", "a2", "a2", "b1"], "depends_on": ["a0", "a0", "a1", "b0"]}
    return Repositories(documents, pa.table(edges))


def test_runs_keep_dependencies_that_single_documents_lose(repositories: Repositories) -> None:
    plans = (
        ours(repositories, 10),  # a0 a1 a2 | b0's first ten | b0's last three, b1
        next_fit_chunk(repositories.documents, 10),
        best_fit(repositories, 10),
    )
    assert [len(plan["sequence"].unique()) for plan in plans] == [3, 3, 3]
    # Of b0 only the end stands before b1; best-fit keeps a0 a1 together, and a2 stands with b1.
    visible = [visible_dependencies(plan, repositories.dependencies) for plan in plans]
    assert visible == [(4, 3), (4, 3), (4, 1)]
    assert [repositories.fill(plan, 10) for plan in plans] == [29 / 30] * 3


def test_a_dependency_that_fits_is_visible_wherever_its_dependent_ends(
    repositories: Repositories,
) -> None:
    plan = ours(repositories, 20)
    assert visible_dependencies(plan, repositories.dependencies) == (4, 4)
    assert len(plan["sequence"].unique()) == 2
