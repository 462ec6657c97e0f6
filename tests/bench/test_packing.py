"""The figures of `bench packing` on repositories small enough to check by eye."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bench.packing.repositories import Repositories, best_fit, next_fit, ours


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
    return Repositories(
        documents, documents["n_tokens"].to_numpy(), np.array([1, 2, 2, 4]), np.array([0, 0, 1, 3])
    )


def test_runs_keep_dependencies_that_single_documents_lose(repositories: Repositories) -> None:
    plans = {plan.__name__: plan(repositories, 10) for plan in (ours, next_fit, best_fit)}
    assert {name: plan.n_sequences for name, plan in plans.items()} == {
        "ours": 3,  # a0 a1 a2 | b0's first ten | b0's last three, b1
        "next_fit": 3,
        "best_fit": 3,
    }
    assert repositories.visible(plans["ours"], 10) == 3  # of b0 only the end stands before b1
    assert repositories.visible(plans["next_fit"], 10) == 3
    assert repositories.visible(plans["best_fit"], 10) == 1  # a0 a1 stay together, a2 stands with b1
    assert repositories.fill(plans["ours"], 10) == 29 / 30


def test_a_dependency_that_fits_is_visible_wherever_its_dependent_ends(
    repositories: Repositories,
) -> None:
    plan = ours(repositories, 20)
    assert repositories.visible(plan, 20) == 4
    assert plan.n_sequences == 2
