"""What a table's code version covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.lake.names import STAGE_OF_NAMESPACE
from factory.orchestration.asset.code_version import sources

ROOT = Path(__file__).parents[3]
STAGES = sorted(set(STAGE_OF_NAMESPACE.values()))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "factory/depsort/stage.py": "from spark_udfs.depsort import graph\n",
        "factory/lake_spark/read.py": "import spark_udfs.regroup\n",
        "factory/dedup/stage.py": "from spark_udfs.dedup.bags import make\n",
        "spark_udfs/__init__.py": "",
        "spark_udfs/regroup.py": "",
        "spark_udfs/alone.py": "",
        "spark_udfs/depsort/__init__.py": "",
        "spark_udfs/depsort/graph.py": "def late():\n    from spark_udfs.depsort.registry import KNOWN\n",
        "spark_udfs/depsort/registry.py": "KNOWN = ['spark_udfs.depsort.languages.go.symbols']\n",
        "spark_udfs/depsort/languages/go/symbols.py": "",
        "spark_udfs/depsort/languages/go/query.scm": "(call)",
        "spark_udfs/depsort/languages/go/.query.scm.swp": "",
        "spark_udfs/depsort/languages/ada/symbols.py": "",
        "spark_udfs/dedup/bags.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_worker_modules_are_followed_to_any_depth_with_their_data(tree: Path) -> None:
    assert {path.relative_to(tree).as_posix() for path in sources(tree, "depsort")} == {
        "factory/depsort/stage.py",
        "factory/lake_spark/read.py",
        "spark_udfs/__init__.py",
        "spark_udfs/regroup.py",
        "spark_udfs/depsort/__init__.py",
        "spark_udfs/depsort/graph.py",
        "spark_udfs/depsort/registry.py",
        "spark_udfs/depsort/languages/go/symbols.py",
        "spark_udfs/depsort/languages/go/query.scm",
    }


def test_every_worker_module_counts_for_some_stage() -> None:
    reached = set().union(*(sources(ROOT, stage) for stage in STAGES))
    assert set((ROOT / "spark_udfs").rglob("*.py")) - reached == set()
