"""What bench depsort measures with: the truth of Python, the orders beside ours, the order it times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.depsort_baselines import by_folders, by_regex
from bench.depsort_order import order, read
from bench.depsort_truth_python import edges


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


PYTHON = {
    "app/__init__.py": "from .core import run as start\nfrom .shapes import *\n",
    "app/core.py": "from . import util\ndef run(): return util.helper()\n",
    "app/shapes.py": "class Square: pass\n",
    "app/util.py": "def helper(): pass\n",
    "broken.py": "def (\n",
    "local.py": "def f():\n    from app.util import helper\n    return helper()\n",
    "main.py": "import app\nfrom app import start, Square\napp.start(Square)\n",
}


def test_the_truth_of_python_follows_re_exports_to_the_file_that_defines_a_name(tmp_path: Path) -> None:
    assert edges(written(tmp_path, PYTHON)) == {
        ("app/__init__.py", "app/core.py"),
        ("app/__init__.py", "app/shapes.py"),
        ("app/core.py", "app/__init__.py"),
        ("app/core.py", "app/util.py"),
        ("local.py", "app/util.py"),
        ("main.py", "app/__init__.py"),
        ("main.py", "app/core.py"),
        ("main.py", "app/shapes.py"),
    }


def test_the_order_by_folders_keeps_each_together_and_follows_the_edges_between_them() -> None:
    paths = ["a/one.py", "a/two.py", "b/one.py", "b/two.py"]
    edges = {
        ("a/one.py", "a/two.py"),
        ("a/two.py", "b/one.py"),
        ("b/one.py", "b/two.py"),
        ("b/two.py", "a/one.py"),
        ("a/one.py", "b/two.py"),
    }
    assert by_folders(paths, edges) == ["b/two.py", "b/one.py", "a/two.py", "a/one.py"]


def test_our_order_and_edges_are_those_of_the_tables(tmp_path: Path) -> None:
    found = order(read(written(tmp_path, PYTHON | {"notes.txt": "no code"})))
    assert found["n_files"] == len(PYTHON)
    assert sorted(found["order"]) == sorted(PYTHON)
    assert found["order"].index("app/util.py") < found["order"].index("app/core.py")
    around = ("app/core.py", "app/__init__.py")  # its own package, which imports it: no edge, it made a cycle
    assert edges(tmp_path) - set(found["edges"]) == {around}


@pytest.mark.parametrize(
    "language, files",
    [
        ("python", {"a.py": "from p.m import x\n", "p/m.py": "from . import n\n", "p/n.py": ""}),
        ("typescript", {"a.ts": "import x from './m'\n", "m/index.ts": "export * from '../n'\n", "n.ts": ""}),
        ("javascript", {"a.js": "const x = require('./m')\n", "m.js": "import('./n.js')\n", "n.js": ""}),
        ("java", {"A.java": "import p.M;\n", "p/M.java": "import static p.N.x;\n", "p/N.java": ""}),
        ("go", {"a.go": 'import "x.org/y/m"\n', "m/m.go": 'import (\n\tn "x.org/y/n"\n)\n', "n/n.go": ""}),
        ("c", {"a.c": '#include "m.h"\n', "m.h": "# include <sys/n.h>\n", "sys/n.h": ""}),
    ],
)
def test_regular_expressions_find_plain_imports(language: str, files: dict[str, str]) -> None:
    assert by_regex(language, files) == list(files)[::-1]
