"""Symbols of one Python file: definitions, imports, uses; and bounds on hostile files."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
import rich

from spark_udfs.depsort.languages.python.symbols import Python
from spark_udfs.depsort.model import MAX_SOURCE_BYTES, FileSymbols, Import

PYTHON = Python()


def extract(text: str) -> FileSymbols:
    return PYTHON.extract(text.encode(), "file.py")


def imported(text: str) -> list[tuple[str, str | None, str | None, bool]]:
    return [(i.module, i.name, i.alias, i.deferred) for i in extract(text).imports]


def test_module_level_functions_classes_and_names_are_definitions() -> None:
    symbols = extract(
        "LIMIT = 3\nleft, right = 1, 2\ntotal: int = 4\n"
        "def run(): pass\n@decorated\nasync def later(): pass\n"
        "class Box:\n    size = 1\n    def open(self):\n        inner = 2\n        def helper(): pass\n"
        "if LIMIT:\n    def fallback(): pass\n"
    )
    names = ("LIMIT", "left", "right", "total", "run", "later", "Box", "Box.open", "fallback")
    assert symbols.definitions == dict.fromkeys(names, 1)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("import a", [("a", None, None, False)]),
        ("import a.b, c as d", [("a.b", None, None, False), ("c", None, "d", False)]),
        ("import a.b as c", [("a.b", None, "c", False)]),
        ("from x import y as z, w", [("x", "w", "w", False), ("x", "y", "z", False)]),
        ("from . import m", [(".", "m", "m", False)]),
        ("from ..p.q import r", [("..p.q", "r", "r", False)]),
        ("from x import *", [("x", "*", None, False)]),
        ("from x import (\n    y,  # why\n    z,\n)", [("x", "y", "y", False), ("x", "z", "z", False)]),
        ("def f():\n    import a", [("a", None, None, True)]),
        ("class C:\n    import a", [("a", None, None, False)]),
        ("if TYPE_CHECKING:\n    import a", [("a", None, None, True)]),
        ("if typing.TYPE_CHECKING:\n    import a\nelse:\n    import b",
         [("a", None, None, True), ("b", None, None, False)]),
        ("if not TYPE_CHECKING:\n    import a", [("a", None, None, False)]),
        ("try:\n    import a\nexcept ImportError:\n    import b",
         [("a", None, None, False), ("b", None, None, False)]),
        ("from __future__ import annotations", []),
    ],
)  # fmt: skip
def test_imports_are_read_as_written(
    text: str, expected: list[tuple[str, str | None, str | None, bool]]
) -> None:
    assert imported(text) == expected


def test_an_import_that_occurs_twice_is_one_with_a_count() -> None:
    assert extract("import a\nimport a\n").imports == (Import("a", None, None, False, 2),)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("import a.b as c\nfrom x import Base\n"
         "class D(Base):\n    @c.deco.rator\n    def f(self): c.run(c.run)\n",
         {"Base": 1, "c.deco.rator": 1, "c.run": 2}),
        ("import a\ndef f(self, x):\n"
         "    self.render()\n    x.y.draw()\n    a.go()\n    x.z\n    x.__init__()\n",
         {".draw": 1, ".render": 1, "a.go": 1}),
        ("def f(a, b=1, *c, d: T = 2, **e):\n"
         "    for g, h in a: pass\n    with b as i: j = [k for k in c if k]\n"
         "    if (m := d): call(key=m)\n"
         "    print(e, g, h, i, j, lambda n: n)  # comment\n    return 'string'\n",
         {"T": 1, "call": 1, "print": 1}),
        ("import path\ndef f(path):\n    return path.x\ndef g():\n    return path.y\n", {"path.y": 1}),
        ("def f(): pass\nf()\nf()\n", {"f": 2}),
    ],
    ids=[
        "counted from the imported name on", "a member called on an unknown object is known by its name",
        "local names, keywords, strings and comments are none", "a parameter hides an import in its function",
        "the module's own names",
    ],
)  # fmt: skip
def test_uses_are_names_that_nothing_local_hides(text: str, expected: dict[str, int]) -> None:
    assert extract(text).references == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("__all__ = ['a', \"b\"]\n__all__ += ['c']", ("a", "b", "c")),
        ("__all__: list[str] = []", ()),
        ("__all__ = ['a'] + other.__all__", None),
        ("x = ['a']", None),
    ],
)
def test_exports_are_the_strings_of_all(text: str, expected: tuple[str, ...] | None) -> None:
    assert extract(text).exports == expected


def test_the_valid_part_of_a_broken_file_gives_symbols() -> None:
    symbols = extract("import a\ndef ok(): pass\ndef broken(:\n    ]]\nimport b\n")
    assert [i.module for i in symbols.imports] == ["a", "b"]
    assert "ok" in symbols.definitions


def test_names_outside_ascii_survive() -> None:
    symbols = extract("import módulo\ndef größe(): return módulo.été\n")
    assert symbols.definitions == {"größe": 1}
    assert symbols.references == {"módulo.été": 1}


def test_symbols_come_back_from_json() -> None:
    symbols = extract("import a\nfrom b import *\n__all__ = ['f']\ndef f(): a.b()\n")
    assert FileSymbols.from_json(symbols.to_json()) == symbols


@pytest.mark.parametrize(
    "source",
    [
        b"(" * MAX_SOURCE_BYTES,
        b"a" + b".a" * (MAX_SOURCE_BYTES // 2),
        b"x = " + b"[" * (MAX_SOURCE_BYTES // 2),
        b"a" + b"(1)" * (MAX_SOURCE_BYTES // 3),
        b'"""' * (MAX_SOURCE_BYTES // 3),
        b"x = [" + b"1, " * (MAX_SOURCE_BYTES // 3) + b"\ndef",
        b"\n".join(b" " * depth + b"if x:" for depth in range(1_400)),
        b"def f(x): return f(x)\n" * (MAX_SOURCE_BYTES // 22),
        b"if TYPE_CHECKING:\n import a\n" * (MAX_SOURCE_BYTES // 29),
    ],
    ids=[
        *("parentheses", "attributes", "brackets", "calls", "quotes", "list", "indentation", "functions"),
        "guards",
    ],
)
def test_a_hostile_file_of_the_largest_size_takes_seconds_at_most(source: bytes) -> None:
    started = time.process_time()
    PYTHON.extract(source, "file.py")
    assert time.process_time() - started < 10  # without bounds the first two take minutes


def ast_imports(source: bytes) -> set[tuple[str, str | None, str | None]]:
    """The imports of a file as Python's own parser sees them."""
    found: set[tuple[str, str | None, str | None]] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update((alias.name, None, alias.asname) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                found.add((module, alias.name, None if alias.name == "*" else alias.asname or alias.name))
    return found


def test_imports_and_definitions_equal_those_pythons_parser_sees() -> None:
    files = sorted(Path(rich.__file__).parent.rglob("*.py"))
    assert len(files) > 50
    for path in files:
        source = path.read_bytes()
        symbols = PYTHON.extract(source, "file.py")
        assert {(i.module, i.name, i.alias) for i in symbols.imports} == ast_imports(source), path
        top = {
            node.name
            for node in ast.parse(source).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        assert top <= symbols.definitions.keys(), path
