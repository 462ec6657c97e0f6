"""Dependencies that were once missed, each in a repository small enough to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.depsort.repositories import Sorted

CASES = json.loads(Path(__file__).with_name("missed_edges.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["title"] for case in CASES])
def test_the_dependency_is_an_edge_and_stands_first(case: dict[str, Any]) -> None:
    found = Sorted(case["files"])
    assert (case["dependent"], case["dependency"]) in found.pairs
    assert found.order.index(case["dependency"]) < found.order.index(case["dependent"])
