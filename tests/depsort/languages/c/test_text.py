"""The scans of C text against the regular expressions that specify them."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory import _native

PIECE = re.compile(
    rb"""
    (//(?:[^\\\n]|\\.)*+ | /\*(?:[^*]++|\*(?!/))*+(?:\*/)?)          # a comment
    | (^[ \t]*+\#[ \t]*+(?:include|import)[^\n]*+)
    | R"([^(\s"\\]{0,16})\((?:[^)]++|\)(?!\3"))*+(?:\)\3")?       # a raw string
    | (?<!\\)(?: "(?:[^"\\\n]|\\.)*+" | '(?:[^'\\\n]|\\.)*+' )
    """,
    re.DOTALL | re.VERBOSE | re.MULTILINE,
)
WORD = re.compile(rb"\b\d[\w.']*+|(->|\.(?!\.)|::)?(?:(?<=[>.:])\s*+~?)?([A-Za-z_]\w*+)")
BOUND = re.compile(rb"\b([A-Za-z_]\w*)(?:[ \t]+\**|\*+[ \t]+)([A-Za-z_]\w*)[ \t]*(?:[=;,\[)])(?!=)")
STATEMENTS = set(
    b"""
    return goto case else sizeof struct union enum class namespace using typename typedef new delete throw
    """.split()
)

PARTS = (
    *(b"a", b"foo", b"x1", b"1", b"0x1f", b" ", b"\t", b"\n", b"\r\n", b"\f", b"\\", b'"', b"'", b"\x80"),
    *(b"/", b"//", b"/*", b"*/", b"*", b"#", b"#include ", b"# import ", b'R"', b"x(", b"(", b")", b"{"),
    *(b".", b"..", b"->", b"::", b":", b"~", b";", b",", b"=", b"[", b"return ", b"int ", b"struct "),
    *(b"}", b"static ", b"LIB_API", b"BEGIN_DECLS", b"__attribute__", b"){\n", b"}\n", b"#define "),
)  # fmt: skip
texts = st.lists(st.sampled_from(PARTS), max_size=40).map(b"".join)


@settings(deadline=None)
@given(texts)
def test_comments_and_strings_go_and_includes_stay(text: bytes) -> None:
    expected = PIECE.sub(lambda it: it[2] or (b" " if it[1] else b'""'), text)
    assert _native.c_without_comments(text) == expected


@settings(deadline=None)
@given(texts)
def test_words_are_counted_by_what_stands_before_them(text: bytes) -> None:
    expected: Counter[bytes] = Counter()
    for mark, word in WORD.findall(text):
        if word and mark:
            expected[b"." + word] += 1
        if word and mark in (b"", b"::"):
            expected[word] += 1
    assert _native.c_words(text) == expected


@settings(deadline=None)
@given(texts)
def test_a_bound_name_lies_between_type_and_end_of_its_declaration(text: bytes) -> None:
    expected = {name: None for of, name in BOUND.findall(text) if of not in STATEMENTS}
    assert _native.c_declared_names(text) == list(expected)


@settings(deadline=None)
@given(texts)
def test_code_outside_functions_stays_in_the_outline(text: bytes) -> None:
    outline, made, announced, static = _native.c_functions(text)
    assert len(outline) <= len(_native.c_outline(text)) <= len(text) + 2 * text.count(b"{")
    assert set(static) <= set(made)
    assert set(made) | set(announced) <= {name.lstrip(b".") for name in _native.c_words(text)}


@pytest.mark.parametrize(
    "text, outline",
    [
        (b"int f(int a) {\n  if (a) {\n  }\n}\nint b;\n", b"int f(int a) {}\n\nint b;\n"),
        (b"  int f() {\n    g();\n  }\n", b"  int f() {}\n\n"),
        (b"\tint f() {\n  }\n\t}\n}\n", b"\tint f() {}\n\n}\n"),
        (b"int f() {\n  }\n int g() {\n }\n", b"int f() {\n  }\n int g() {}\n\n"),
        (b"int f() { return 1; } int g;", b"int f() {}\n int g;"),
        (b"void f(\n", b"void f(\n"),
        (b"#if X \\\n  Y\nint a;\n#else\nint b;\n#endif\n", b"\nint a;\n\nint b;\n\n"),
        (b"int a __attribute__((packed));", b"int a ;"),
        (b"void say(char *) printf_like(1, 2);", b"void say(char *) ;"),
        (b"LIB_API int a;\nLIB_BEGIN_DECLS\nint b;\n", b" int a;\n\nint b;\n"),
        (b"class LIB Name;", b"class Name;"),
        (b"int (open)(int);", b"int  open(int);"),
    ],
)
def test_the_outline_keeps_declarations(text: bytes, outline: bytes) -> None:
    assert _native.c_outline(text) == outline


@pytest.mark.parametrize(
    "text, made, announced, static",
    [
        (b"int f(void)\n{\n}\n", [b"f"], [], []),
        (b"static int *f(int (*g)(int))\n{\n}\n", [b"f"], [], [b"f"]),
        (b"int f(void);\nint (*g)(void);\n", [], [b"f"], []),
        (b"typedef int f(int);\n", [], [], []),
        (b"TEST(a, b)\n{\n}\n", [], [], []),
        (b"int a;\nLOCAL(int) f(a, b)\n{\n}\n", [b"f"], [], []),
        (b"if (a) {\n}\n", [], [], []),
        (b"LOCAL(int) f(int (*g)(int, int));", [], [b"f"], []),
    ],
)
def test_functions_are_named_by_their_heads(
    text: bytes, made: list[bytes], announced: list[bytes], static: list[bytes]
) -> None:
    found = _native.c_functions(text)
    assert (list(found[1]), list(found[2]), found[3]) == (made, announced, static)
