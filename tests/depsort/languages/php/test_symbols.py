"""Symbols of one PHP file, and the files of a repository that its names lead to."""

from __future__ import annotations

import pytest

from spark_udfs.depsort.languages.php.symbols import Php
from spark_udfs.depsort.model import FileSymbols
from tests.depsort.repositories import pairs

LANGUAGE = Php()


def extract(text: str) -> FileSymbols:
    return LANGUAGE.extract(b"<?php\n" + text.encode(), "a.php")


def edges(texts: dict[str, str]) -> set[tuple[str, str]]:
    return pairs({path: f"<?php\n{text}" for path, text in texts.items()})


def test_a_file_names_its_namespace_and_defines_what_it_declares() -> None:
    symbols = extract(
        "namespace A\\B;\nclass Box { const LIMIT = 1; function open() {} }\ninterface Shape {}\n"
        "trait Help {}\n"
        "enum Colour { case Red; }\nfunction run() {}\nconst SIZE = 2;\n"
    )
    assert symbols.package == "A.B"
    assert symbols.definitions.keys() == {
        *("Box", "LIMIT", "Box.open", "Shape", "Help", "Colour", "run", "SIZE"),
    }


@pytest.mark.parametrize(
    "text, expected",
    [
        ("use A\\B;", {("A", "B", "B")}),
        ("use A\\B as C;", {("A", "B", "C")}),
        ("use A\\{B, C\\D as E};", {("A", "B", "B"), ("A.C", "D", "E")}),
        ("new \\A\\B\\C();", {("A.B", "C", "")}),
        ("namespace N; new B\\C();", {("N.B", "C", "")}),
        ("namespace N; use A\\B; new B\\C\\D();", {("A", "B", "B"), ("A.B.C", "D", "")}),
        ("namespace N; use A\\B as E; new E\\C();", {("A", "B", "E"), ("A.B", "C", "")}),
        (
            "namespace N; use B; new namespace\\B\\C(namespace\\D());",
            {("", "B", "B"), ("N.B", "C", ""), ("N", "D", "")},
        ),
        ("require_once __DIR__ . '/x/y.php';", {("./x/y.php", "*", None)}),
        ("include $x . '.php' . 'y';", set()),
    ],
)
def test_uses_whole_names_and_includes_are_imports(
    text: str, expected: set[tuple[str, str | None, str | None]]
) -> None:
    assert {(i.module, i.name, i.alias) for i in extract(text).imports} == expected


def test_types_and_functions_are_references_variables_are_not() -> None:
    references = extract(
        "class A extends B implements C { use D; function f(E $x): F { new G(); H::i(); "
        "run($x->go()); "
        "return $x instanceof J; } }"
    ).references
    assert references.keys() == {*"BCDEFGHJ", ".i", "run", ".go"}


def test_names_resolve_by_use_by_namespace_and_by_include() -> None:
    texts = {
        "src/Box.php": "namespace A;\nuse A\\Part\\Lid;\nclass Box extends Base { function f(Lid $l) {} }\n",
        "src/Base.php": "namespace A;\nclass Base {}\n",
        "src/Part/Lid.php": "namespace A\\Part;\nclass Lid { function f() { return new \\A\\Base(); } }\n",
        "other/Base.php": "namespace O;\nclass Base {}\n",
        "run.php": "require __DIR__ . '/src/Box.php';\n",
    }
    assert edges(texts) == {
        ("src/Box.php", "src/Base.php"),
        ("src/Box.php", "src/Part/Lid.php"),
        ("src/Part/Lid.php", "src/Base.php"),
        ("run.php", "src/Box.php"),
    }
