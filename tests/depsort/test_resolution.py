"""Every kind of import and use, each in a repository small enough to read."""

from __future__ import annotations

import ast
import importlib.util
import sys

import networkx
import pytest

from spark_udfs.depsort.weights import AROUND, DEFERRED, WEAK
from tests.depsort.repositories import Sorted, installed

NAMED = 1.0  # the weight of an import on the file it names
OWN = {"p/__init__.py": AROUND, "p/q/__init__.py": AROUND}  # the packages around `p/q/user.py`


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("import a.b", {"a/__init__.py": WEAK, "a/b.py": NAMED}),
        ("import a.b as x", {"a/__init__.py": WEAK, "a/b.py": NAMED}),
        ("import a", {"a/__init__.py": NAMED}),
        ("from a import b", {"a/__init__.py": WEAK, "a/b.py": NAMED}),
        ("from a.b import run", {"a/__init__.py": WEAK, "a/b.py": NAMED}),
        ("from a.b import run as go", {"a/__init__.py": WEAK, "a/b.py": NAMED}),
        ("from a.b import *", {"a/__init__.py": WEAK, "a/b.py": NAMED}),
        ("from a.b import made_at_run_time", {"a/__init__.py": WEAK, "a/b.py": NAMED}),
        ("def f():\n    from a.b import run", {"a/__init__.py": WEAK, "a/b.py": DEFERRED}),
        ("if TYPE_CHECKING:\n    from a.b import run", {"a/__init__.py": WEAK, "a/b.py": DEFERRED}),
        ("import a.b\ndef f():\n    import a.b", {"a/__init__.py": WEAK, "a/b.py": NAMED}),
        ("import os, a.missing", {}),
    ],
)
def test_an_import_depends_on_what_it_names_and_a_little_on_what_it_passes(
    statement: str, expected: dict[str, float]
) -> None:
    files = {"a/__init__.py": "", "a/b.py": "def run(): pass\n", "main.py": statement}
    assert Sorted(files).weights_of("main.py") == expected


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("from .near import x", {**OWN, "p/q/near.py": NAMED}),
        ("from . import near", {**OWN, "p/q/near.py": NAMED}),
        ("from . import here", {**OWN, "p/q/__init__.py": NAMED}),
        ("from ..far import x", {"p/__init__.py": AROUND, "p/far.py": NAMED}),
        ("from .. import far", {"p/__init__.py": AROUND, "p/far.py": NAMED}),
        (
            "from ..other.deep import x",
            {"p/__init__.py": AROUND, "p/other/__init__.py": WEAK, "p/other/deep.py": NAMED},
        ),
        ("from p.q.near import x", {**OWN, "p/q/near.py": NAMED}),
        ("import p", {"p/__init__.py": WEAK}),
        ("from ....beyond import x", {}),
    ],
)
def test_relative_imports_start_at_the_file_and_packages_weigh_little(
    statement: str, expected: dict[str, float]
) -> None:
    files = {
        "p/__init__.py": "",
        "p/far.py": "x = 1\n",
        "p/q/__init__.py": "here = 1\n",
        "p/q/near.py": "x = 1\n",
        "p/q/user.py": statement,
        "p/other/__init__.py": "",
        "p/other/deep.py": "x = 1\n",
    }
    assert Sorted(files).weights_of("p/q/user.py") == expected


def test_a_name_is_followed_through_re_exports_aliases_and_stars() -> None:
    sorted_ = Sorted(
        {
            "lib/__init__.py": "from .api import *\nfrom .renamed import old as new\n",
            "lib/api.py": "from ._impl import work\n__all__ = ['work']\n",
            "lib/_impl.py": "def work(): pass\ndef hidden(): pass\n",
            "lib/renamed.py": "def old(): pass\n",
            "use.py": "import lib\nfrom lib import work\nlib.new()\nwork()\nlib.hidden()\n",
        }
    )
    assert sorted_.weights_of("use.py") == {
        "lib/__init__.py": NAMED,
        "lib/api.py": WEAK,
        "lib/_impl.py": NAMED,
    }
    assert sorted_.uses_of("use.py") == {
        "lib": ["lib/__init__.py"],  # `hidden` is not exported: made by the package, as far as one can tell
        "lib.new": ["lib/renamed.py"],
        "work": ["lib/_impl.py"],
    }
    assert sorted_.order == ["lib/_impl.py", "lib/api.py", "lib/renamed.py", "lib/__init__.py", "use.py"]


def test_a_module_used_by_its_dotted_name_depends_on_the_module_used() -> None:
    sorted_ = Sorted(
        {
            "a/__init__.py": "",
            "a/b/__init__.py": "",
            "a/b/c.py": "def f(): pass\n",
            "a/b/d.py": "class D:\n    def m(self): pass\n",
            "use.py": "import a.b.c\nimport a.b.d\na.b.c.f()\na.b.d.D.m()\n",
        }
    )
    assert sorted_.uses_of("use.py") == {"a.b.c.f": ["a/b/c.py"], "a.b.d.D": ["a/b/d.py"]}


def test_modules_that_export_each_other_do_not_run_forever() -> None:
    sorted_ = Sorted(
        {
            "a.py": "from b import *\nfrom b import x\n",
            "b.py": "from a import *\nfrom a import x\n",
            "c.py": "from a import x, y\nx()\ny()\n",
        }
    )
    assert set(sorted_.weights_of("c.py")) == {"a.py", "b.py"}


def test_a_long_chain_of_re_exports_ends() -> None:
    files = {f"m{i:03}.py": f"from m{i + 1:03} import x\n" for i in range(300)} | {"m300.py": "x = 1\n"}
    sorted_ = Sorted(files)
    assert sorted_.order == sorted(files, reverse=True)


@pytest.mark.parametrize(
    "files, user, expected",
    [
        ({"src/pkg/__init__.py": "", "src/pkg/a.py": "", "tests/test_a.py": "import pkg.a"},
         "tests/test_a.py", {"src/pkg/__init__.py": WEAK, "src/pkg/a.py": NAMED}),
        ({"one/src/pkg/__init__.py": "", "two/src/pkg/__init__.py": "", "two/src/use.py": "import pkg"},
         "two/src/use.py", {"two/src/pkg/__init__.py": NAMED}),
        ({"scripts/run.py": "import helper", "scripts/helper.py": "", "helper.py": ""},
         "scripts/run.py", {"scripts/helper.py": NAMED}),
        ({"app/__init__.py": "", "app/logging.py": "", "app/x.py": "import logging"}, "app/x.py", {}),
        ({"tests/json.py": "", "app/__init__.py": "", "app/x.py": "import json"}, "app/x.py", {}),
        ({"space/of/mod.py": "", "use.py": "import space.of.mod"}, "use.py", {"space/of/mod.py": NAMED}),
        ({"m.pyi": "", "m.py": "", "use.py": "import m"}, "use.py", {"m.py": NAMED}),
        ({"m.py": "", "m/__init__.py": "", "use.py": "import m"}, "use.py", {"m/__init__.py": NAMED}),
        ({"__init__.py": "", "node.py": "", "use.py": "from .node import x"}, "use.py",
         {"__init__.py": AROUND, "node.py": NAMED}),
    ],
    ids=["src layout", "two distributions", "scripts", "no package as root", "no stranger as root",
         "namespace", "stub", "package before module", "repository as package"],
)  # fmt: skip
def test_modules_are_found_wherever_their_root_lies(
    files: dict[str, str], user: str, expected: dict[str, float]
) -> None:
    assert Sorted(files).weights_of(user) == expected


def test_a_use_without_an_import_weighs_more_when_nearer() -> None:
    sorted_ = Sorted(
        {
            "d/near.py": "def shared(): pass\n",
            "d/use.py": "shared()\n_hidden()\nab()\ncrowd()\n",
            "e/far.py": "def shared(): pass\ndef _hidden(): pass\ndef ab(): pass\n",
            **{f"e/crowd{i}.py": "def crowd(): pass\n" for i in range(6)},
        }
    )
    assert {(e["depends_on"], e["kind"]) for e in sorted_.edges} == {
        ("d/near.py", "symbol"),
        ("e/far.py", "symbol"),
    }
    weights = {e["depends_on"]: e["weight"] for e in sorted_.edges}
    assert weights["d/near.py"] == pytest.approx(0.7 / 2)
    assert weights["e/far.py"] == pytest.approx(0.2 / 2 + 0.2 * 0.1)
    assert sorted_.resolution_of("d/use.py", "ab") == "ambiguous"
    assert sorted_.resolution_of("d/use.py", "crowd") == "ambiguous"


def test_a_member_resolves_to_the_imported_file_that_defines_it() -> None:
    sorted_ = Sorted(
        {
            "box.py": "class Box:\n    def unpack(self): pass\n",
            "stranger.py": "class Other:\n    def unpack(self): pass\n    def vanish(self): pass\n",
            "use.py": "from box import Box\nx.unpack()\nx.vanish()\nx.append(1)\nx.nowhere()\n",
        }
    )
    assert sorted_.uses_of("use.py") == {".unpack": ["box.py"]}
    assert sorted_.resolution_of("use.py", ".vanish") == "ambiguous"
    assert sorted_.resolution_of("use.py", ".append") == "builtin"
    assert sorted_.resolution_of("use.py", ".nowhere") == "external"


def test_a_member_that_many_imported_files_define_resolves_to_none() -> None:
    boxes = {f"box{i}.py": f"class Box{i}:\n    def unpack(self): pass\n" for i in range(6)}
    imports = "".join(f"from box{i} import Box{i}\n" for i in range(6))
    assert (
        Sorted(boxes | {"use.py": f"{imports}x.unpack()\n"}).resolution_of("use.py", ".unpack") == "ambiguous"
    )
    five = Sorted(boxes | {"use.py": f"{imports.partition('from box5')[0]}x.unpack()\n"})
    assert five.uses_of("use.py") == {".unpack": [f"box{i}.py" for i in range(5)]}


def test_a_re_export_is_bound_by_the_module_not_by_its_functions() -> None:
    sorted_ = Sorted(
        {
            "facade.py": "from right import thing\ndef f():\n    from wrong import thing\n",
            "right.py": "def thing(): pass\n",
            "use.py": "from facade import thing\nthing()\n",
            "wrong.py": "def thing(): pass\n",
        }
    )
    assert sorted_.uses_of("use.py") == {"thing": ["right.py"]}


def test_every_symbol_has_a_resolution() -> None:
    sorted_ = Sorted({"m.py": "import os, n\ndef f(): return len(g())\nf(os.path, n.x)\n", "n.py": "x = 1\n"})
    found = {
        (row["kind"], row["name"]): row["resolution"] for row in sorted_.symbols if row["doc_id"] == "m.py"
    }
    assert found == {
        ("definition", "f"): "definition",
        ("import", "os"): "external",
        ("import", "n"): "internal",
        ("reference", "f"): "local",
        ("reference", "g"): "external",
        ("reference", "len"): "builtin",
        ("reference", "n.x"): "internal",
        ("reference", "os.path"): "external",
    }


def test_an_edge_weighs_its_heaviest_import_and_the_root_of_its_uses() -> None:
    sorted_ = Sorted(
        {
            "a.py": "x = y = z = 1\n",
            "use.py": "from a import x, y\nx\nx\nx\nx\ny\ndef f():\n    from a import z\n",
        }
    )
    (edge,) = sorted_.edges
    assert edge["weight"] == pytest.approx(1 + 2 + 1)
    assert edge["kind"] == "import+symbol"


def test_equal_paths_and_files_without_symbols_keep_a_position() -> None:
    sorted_ = Sorted({"b.txt": "text", "a.py": "((((", "c.md": "# c"})
    assert sorted_.order == ["a.py", "b.txt", "c.md"]
    assert sorted_.edges == []


def defining_file(value: object) -> str | None:
    """The file in which a class or function of networkx was written, as the interpreter says."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    return None if module is None or not module.__file__ else module.__file__.split("/site-packages/")[-1]


def test_names_of_a_real_package_resolve_as_the_interpreter_says() -> None:
    files = installed("networkx")
    names = {
        name: file
        for name, value in sorted(vars(networkx).items())
        if callable(value) and not name.startswith("_") and (file := defining_file(value)) in files
    }
    assert len(names) > 500
    sorted_ = Sorted(
        files | {"use.py": "import networkx as nx\n" + "".join(f"nx.{name}\n" for name in names)}
    )
    uses = sorted_.uses_of("use.py")
    wrong = {n: (uses.get(f"nx.{n}"), file) for n, file in names.items() if uses.get(f"nx.{n}") != [file]}
    print(f"networkx: {len(names) - len(wrong)} of {len(names)} public names resolved to their file")
    assert len(wrong) <= 0.01 * len(names), wrong


def imported_files(files: dict[str, str], path: str) -> set[str]:
    """The files of a package that the import statements at the top level of a module load, by importlib."""
    package = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    around = package if path.endswith("__init__.py") else package.rpartition(".")[0]

    def file_of(module: str) -> str | None:
        stem = module.replace(".", "/")
        return next((f for f in (f"{stem}/__init__.py", f"{stem}.py") if f in files), None)

    loaded: set[str | None] = set()
    for node in ast.walk(ast.parse(files[path])):
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                loaded.update(file_of(".".join(parts[:n])) for n in range(1, len(parts) + 1))
        elif isinstance(node, ast.ImportFrom):
            module = importlib.util.resolve_name("." * node.level + (node.module or ""), around)
            parts = module.split(".")
            loaded.update(file_of(".".join(parts[:n])) for n in range(1, len(parts) + 1))
            loaded.update(file_of(f"{module}.{alias.name}") for alias in node.names)
    enclosing = {file_of(".".join(around.split(".")[:n])) for n in range(1, around.count(".") + 2)}
    return {file for file in loaded - enclosing if file} - {path}


@pytest.mark.parametrize("package", ["rich", "networkx", "pydantic"])
def test_import_edges_hold_every_file_that_pythons_own_imports_load(package: str) -> None:
    files = installed(package)
    sorted_ = Sorted(files)
    expected = {(path, file) for path in files for file in imported_files(files, path)}
    found = {(e["doc_id"], e["depends_on"]) for e in sorted_.edges if "import" in e["kind"]}
    print(f"{package}: {len(expected & found)} of {len(expected)} import edges found")
    assert len(expected) > 100
    assert expected <= found, sorted(expected - found)[:10]
