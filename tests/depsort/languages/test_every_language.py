"""What holds for the files of every language."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_udfs.depsort.model import FileSymbols
from spark_udfs.depsort.registry import languages

ODD = [
    *("", "\0", "\ufeffint a;", "\ufeffimport a", "}", "}};", "(" * 50, '"', "'", "/*", "~"),
    *("int f(", "fn f(", "def", "print 'two'", "operator", "impl", "mod", "module A::", "A::", "class"),
    *("#define", "#include <", "template <", 'R"(', "r#", "%w(", "use", "use ::;", "use {{{", "use A\\{"),
    *("namespace", "new", "require"),
]
START = {
    "csharp": "class A : B { void F(A a) {\n",
    "go": "package p\nfunc f(a A) {\n",
    "java": "class A extends B { void f(A a) {\n",
    "kotlin": "class A : B() {\n fun f(a: A) {\n",
    "php": "<?php\n",
}


def extract(language: str, text: str) -> FileSymbols:
    kind = languages()[language]
    return kind.extract(text.encode(), f"a{kind.suffixes[0]}")


@pytest.mark.parametrize("language", languages())
def test_odd_files_raise_nothing(language: str) -> None:
    for text in ODD:
        for start in ("", START.get(language, "")):
            assert isinstance(extract(language, start + text), FileSymbols)


@pytest.mark.parametrize("language", START)
@settings(deadline=None, max_examples=60)
@given(text=st.text(alphabet="(){}[].,:;=*&<>- \nafx1\"'@`", max_size=60))
def test_any_text_gives_symbols_that_survive_being_written(language: str, text: str) -> None:
    symbols = extract(language, START[language] + text)
    assert FileSymbols.from_json(symbols.to_json()) == symbols
