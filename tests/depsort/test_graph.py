"""The edges and positions of whole repositories: properties, determinism, and what real packages gain."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_udfs.depsort.weights import AROUND
from tests.depsort.repositories import Sorted, installed

NAMES = ["alpha", "beta", "gamma", "delta", "omega"]
STATEMENTS = st.sampled_from(
    [
        *(f"from pkg.{name} import {name}_f as f" for name in NAMES),
        *(f"from .{name} import *" for name in NAMES),
        *(f"import pkg.{name} as m\nm.{name}_f()" for name in NAMES),
        *(f"def late():\n    from . import {name}\n    {name}.{name}_f()" for name in NAMES),
        *(f"{name}_f()" for name in NAMES),
        "import os",
        "((( broken",
    ]
)


@st.composite
def repositories(draw: st.DrawFn) -> dict[str, str]:
    files = {"pkg/__init__.py": "\n".join(draw(st.lists(STATEMENTS, max_size=3)))}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        body = "\n".join(draw(st.lists(STATEMENTS, max_size=4)))
        files[f"pkg/{name}.py"] = f"def {name}_f(): pass\n{body}\n"
    return files


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(repositories(), st.randoms(use_true_random=False))
def test_every_edge_points_backwards_or_is_broken_in_any_row_order(
    files: dict[str, str], rng: random.Random
) -> None:
    sorted_ = Sorted(files)
    assert sorted(sorted_.order) == sorted(files)
    position = {row["doc_id"]: row["position"] for row in sorted_.positions}
    cycle = {row["doc_id"]: row["cycle"] for row in sorted_.positions}
    for edge in sorted_.edges:
        assert edge["doc_id"] != edge["depends_on"]
        assert edge["weight"] > 0
        assert edge["satisfied"] == (position[edge["depends_on"]] < position[edge["doc_id"]])
        assert edge["in_cycle"] == (cycle[edge["depends_on"]] == cycle[edge["doc_id"]])
        assert edge["satisfied"] or edge["in_cycle"]
    rows = list(files.items())
    rng.shuffle(rows)
    again = Sorted(dict(rows))
    assert again.symbols == sorted_.symbols
    assert again.edges == sorted_.edges
    assert again.order == sorted_.order


def test_neither_the_hash_seed_nor_the_process_changes_a_table() -> None:
    program = (
        "import json; from tests.depsort.repositories import Sorted, installed;"
        "s = Sorted(installed('rich')); print(json.dumps([s.symbols, s.edges, s.positions]))"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(json.loads(outputs[0])[1]) > 100
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("package", ["rich", "networkx", "pydantic"])
def test_a_real_package_keeps_far_more_weight_in_order_than_by_path(package: str) -> None:
    files = installed(package)
    sorted_ = Sorted(files)
    by_path = sorted_.satisfied_share(sorted(files))
    ours = sorted_.satisfied_share(sorted_.order)
    n_files, n_edges = len(files), len(sorted_.edges)
    print(f"{package}: {n_files} files, {n_edges} edges, {by_path:.3f} satisfied by path, {ours:.3f} sorted")
    assert ours > 0.9
    assert ours > by_path + 0.2


def test_a_faint_edge_does_not_create_a_cycle() -> None:
    files = {
        "p/__init__.py": "from .b import g\n",
        "p/a.py": "from . import c\n",
        "p/b.py": "from . import c\ndef g(): pass\n",
        "p/c.py": "",
    }
    found = Sorted(files)
    edges = {(edge["doc_id"], edge["depends_on"]): edge["weight"] for edge in found.edges}
    assert edges["p/a.py", "p/__init__.py"] == AROUND
    assert ("p/b.py", "p/__init__.py") not in edges
    assert {row["cycle_size"] for row in found.positions} == {1}
    assert found.order == ["p/c.py", "p/b.py", "p/__init__.py", "p/a.py"]


def test_a_cycle_breaks_where_fewest_edges_break() -> None:
    uses = "\n".join("b.b_f()" for _ in range(100))
    files = {
        "a.py": f"import b\ndef a_f(): pass\n{uses}\n",
        "b.py": "import c\nimport d\ndef b_f(): pass\nc.c_f()\nd.d_f()\n",
        "c.py": "import a\ndef c_f(): pass\na.a_f()\n",
        "d.py": "import a\ndef d_f(): pass\na.a_f()\n",
    }
    broken = [(row["doc_id"], row["depends_on"]) for row in Sorted(files).edges if not row["satisfied"]]
    assert broken == [("a.py", "b.py")]
