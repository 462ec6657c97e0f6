"""Symbols of one C file, and the files of a repository that its names lead to."""

from __future__ import annotations

import time

import pytest

from spark_udfs.depsort.languages.c.symbols import C
from spark_udfs.depsort.model import MAX_SOURCE_BYTES, FileSymbols
from tests.depsort.repositories import Sorted, dependencies, pairs

LANGUAGE = C()


def extract(text: str, path: str = "a.c") -> FileSymbols:
    return LANGUAGE.extract(text.encode(), path)


def test_functions_types_variables_and_macros_are_definitions() -> None:
    symbols = extract(
        "#define LIMIT 3\nint count = 1;\nstruct point { int x; };\nenum colour { RED, BLUE = 2 };\n"
        "typedef struct { int y; } pair;\ntypedef int (*callback)(int);\n"
        "const char *\nname(struct point *p)\n{\n    return p;\n}\nint one(void) { return 1; }\n"
    )
    names = ("LIMIT", "count", "point", "colour", "RED", "BLUE", "pair", "callback", "name", "one")
    assert symbols.definitions == dict.fromkeys(names, 1)


@pytest.mark.parametrize(
    "text",
    [
        "int f(int);",
        "API int f(void);",
        "API(int) f(int a, int (*b)(int));",
        "char *(f)(char *);",
        "void printf_like(1, 2) f(const char *, ...);",
        "int f(void) __attribute__((noreturn));",
        'extern "C" {\nint f(void);\n}',
    ],
)
def test_a_prototype_is_a_declaration(text: str) -> None:
    symbols = extract(text, "a.h")
    assert symbols.declarations == {"f": 1}
    assert "f" not in symbols.definitions
    assert "f" not in symbols.references


def test_an_extern_variable_is_a_declaration() -> None:
    symbols = extract("extern int level;\n", "a.h")
    assert (symbols.declarations, symbols.definitions) == ({"level": 1}, {})


def test_static_functions_are_private_in_a_c_file_not_in_a_header() -> None:
    text = "static int one(void)\n{\n    return 1;\n}\nstatic int two;\n"
    assert extract(text, "a.c").private == ("one", "two")
    assert extract(text, "a.h").private == ()


def test_includes_are_read_outside_comments_and_keep_their_brackets() -> None:
    symbols = extract('#include <stdio.h>\n# include "x/y.h"\n/*\n#include "no.h"\n*/\n// #include "no.h"\n')
    assert [(i.module, i.name) for i in symbols.imports] == [("<stdio.h>", "*"), ("x/y.h", "*")]


def test_comments_strings_numbers_and_members_are_not_names() -> None:
    references = extract("int f(void) { return g(0x1fUL, \"h\", 'i') + p->member; /* j */ } // k").references
    assert references.keys() == {"f", "g", "p", ".member"}


def test_parameters_and_local_variables_are_not_references() -> None:
    references = extract(
        "int f(int size, struct node *list)\n{\n    char *text = use(size, list);\n}\n"
    ).references
    assert references.keys() == {"f", "node", "use"}


def test_a_macro_stands_for_the_words_of_its_body() -> None:
    symbols = extract("#define TWICE(x) do_it((x), \\\n    LIMIT, (x)->next)\n", "a.h")
    assert symbols.expansions == {"TWICE": ("do_it", "LIMIT")}
    assert symbols.references == {}


def test_both_branches_of_a_conditional_count() -> None:
    symbols = extract(
        "#ifdef A\nint f(int a)\n{\n#else\nint f(void)\n{\n#endif\n    return g();\n}\nint h;\n"
    )
    assert symbols.definitions.keys() == {"f", "h"}


def test_a_use_leads_to_the_header_and_to_the_defining_file() -> None:
    texts = {
        "src/use.c": '#include "lib.h"\nint main(void) { return run(); }\n',
        "src/lib.h": "int run(void);\n",
        "src/lib.c": '#include "lib.h"\nint run(void)\n{\n    return 1;\n}\n',
        "src/other.c": "static int run(void)\n{\n    return 2;\n}\n",
    }
    assert pairs(texts) == {
        ("src/use.c", "src/lib.h"),
        ("src/use.c", "src/lib.c"),
        ("src/lib.c", "src/lib.h"),
    }


def test_the_user_of_a_macro_uses_its_body_and_the_header_does_not() -> None:
    texts = {
        "use.c": '#include "lib.h"\nint main(void) { return OUTER(1); }\n',
        "lib.h": "int run_it(int);\n#define INNER(x) run_it(x)\n#define OUTER(x) INNER(x)\n",
        "lib.c": "int run_it(int a)\n{\n    return a;\n}\n",
    }
    assert pairs(texts) == {("use.c", "lib.h"), ("use.c", "lib.c")}


def test_a_struct_named_by_a_header_leads_to_the_header_with_its_members() -> None:
    texts = {
        "use.h": "struct box;\nint use(struct box *b, struct stat *s);\n",
        "box.h": "struct box { int size; };\n",
        "alone.c": "struct stat { int size; };\n#define box 1\n",
    }
    assert pairs(texts) == {("use.h", "box.h")}


def test_the_definition_nearest_to_the_announcement_is_meant() -> None:
    texts = {
        "one/lib.h": "int run(void);\n",
        "one/lib.c": "int run(void)\n{\n    return 1;\n}\n",
        "two/stub.c": "int run(void)\n{\n    return 2;\n}\n",
        "use.c": '#include "one/lib.h"\nint main(void) { return run(); }\n',
    }
    assert pairs(texts) == {("use.c", "one/lib.h"), ("use.c", "one/lib.c")}


@pytest.mark.parametrize(
    "files, include, expected",
    [
        (["src/a.h", "include/a.h"], '"a.h"', "src/a.h"),
        (["src/a.h", "include/a.h"], "<a.h>", "src/a.h"),
        (["include/lib/a.h", "other/lib/a.h"], "<lib/a.h>", "include/lib/a.h"),
        (["a.h"], '"../a.h"', "a.h"),
        (["lib/deep/a.h", "lib/b/a.h"], '"b/a.h"', "lib/b/a.h"),
        (["src/stdio.h"], "<stdio.h>", None),
        (["src/stdio.h"], '"stdio.h"', "src/stdio.h"),
    ],
)
def test_an_include_means_the_nearest_file_whose_path_ends_in_it(
    files: list[str], include: str, expected: str | None
) -> None:
    texts = dict.fromkeys(files, "") | {"src/use.c": f"#include {include}\n"}
    assert {target for _, target in pairs(texts)} == ({expected} if expected else set())


def test_a_name_with_an_underscore_is_seen_through_an_include() -> None:
    texts = {
        "net.h": "int _net_send(int);\n",
        "net.c": '#include "net.h"\nint _net_send(int a)\n{\n    return a;\n}\n',
        "use.c": '#include "net.h"\nint main(void)\n{\n    return _net_send(1);\n}\n',
    }
    assert ("use.c", "net.c") in pairs(texts)


def test_a_header_knows_what_its_includers_included() -> None:
    texts = {
        "types.h": "typedef int my_int;\nstruct later;\n",
        "api.h": "my_int f(void);\n",
        "main.c": '#include "types.h"\n#include "api.h"\nint my_other;\n',
        "far.h": 'typedef int far_int;\n#include "needs.h"\n',
        "needs.h": "far_int g(void);\nalone_int h(void);\n",
        "alone.h": "typedef int alone_int;\n",
    }
    assert {to for of, to in pairs(texts) if of in ("api.h", "needs.h")} == {"types.h"}


def test_a_use_leads_weakly_to_its_header_and_makes_no_cycle() -> None:
    texts = {
        "z.h": "void zfree(void *p);\n",
        "z.c": '#include "z.h"\nvoid zfree(void *p) {}\n',
        "all.h": '#include "z.h"\n',
        "u.c": '#include "all.h"\nvoid g(void) { zfree(0); }\n',
    }
    weights = {row["depends_on"]: row["weight"] for row in Sorted(texts).edges if row["doc_id"] == "u.c"}
    assert weights.keys() == {"all.h", "z.c", "z.h"}
    assert weights["z.c"] == 1.0 > 0.1 > weights["z.h"]


def test_calls_of_macros_are_read_with_the_names_they_are_given() -> None:
    symbols = extract(
        "TEST(a) {\n}\n  LIST(b, 1 + 2, c)\nfoo(d);\n  foo(e);\nint x = BAR(f);\nNONE(1 + 1)\nVOID()\n"
        "#define PASTE(x, y) run_##x(y) x ## _ ## y ## _end fixed##words\n"
    )
    assert symbols.calls == {"TEST": ("a{",), "LIST": ("b,,c",), "foo": ("d",)}
    assert symbols.expansions == {"PASTE": ("run_#0", "#0_#1_end")}


@pytest.mark.parametrize(
    "use, expected",
    [
        ("CALL(one)", {"one.c"}),
        ("CALL(two)", {"two.c"}),
        ("CALL(three)", set()),
        ("CALL(1 + one)", set()),
        ("CALL()", set()),
    ],
)
def test_a_name_that_a_macro_pastes_is_used_and_made_by_its_arguments(use: str, expected: set[str]) -> None:
    texts = {
        "m.h": "#define MAKE(n, t) t made_##n(void)\n#define CALL(n) made_##n();\n",
        "one.c": '#include "m.h"\nMAKE(one, int)\n{ return 1; }\n',
        "two.c": "int made_two(void) { return 2; }\n",
        "use.c": f'#include "m.h"\nint f(void) {{\n  {use}\n}}\n',
    }
    assert dependencies(texts, "use.c") - {"m.h"} == expected


def test_a_header_of_cpp_is_read_as_cpp() -> None:
    symbols = extract("class Box {\n public:\n  void open();\n};\n", "a.h")
    assert (symbols.definitions, symbols.declarations) == ({"Box": 1}, {"Box.open": 1})


@pytest.mark.parametrize(
    "source",
    [
        b"(" * MAX_SOURCE_BYTES,
        b")" * MAX_SOURCE_BYTES,
        b"f(" * (MAX_SOURCE_BYTES // 2),
        b"a(){" * (MAX_SOURCE_BYTES // 4),
        b"){\n" * (MAX_SOURCE_BYTES // 3),
        b"a " * (MAX_SOURCE_BYTES // 2),
        b"a(b" + b" " * MAX_SOURCE_BYTES,
        b"/*" * (MAX_SOURCE_BYTES // 2),
        b"int a(int);\n" * (MAX_SOURCE_BYTES // 12),
        b"a->b" * (MAX_SOURCE_BYTES // 4),
        b"{" * MAX_SOURCE_BYTES,
        b"#define a b\n" * (MAX_SOURCE_BYTES // 12),
        b"#" + b"\\\n" * (MAX_SOURCE_BYTES // 2),
        b"A(b)\n" * (MAX_SOURCE_BYTES // 5),
        b"#define a(b) b##c\n" * (MAX_SOURCE_BYTES // 18),
        b"#define a(b) b" + b"##c" * (MAX_SOURCE_BYTES // 3),
        b"struct a {" * (MAX_SOURCE_BYTES // 10),
        b"a*" * (MAX_SOURCE_BYTES // 2),
        b"(((a)" * (MAX_SOURCE_BYTES // 5),
        b"a::" * (MAX_SOURCE_BYTES // 3),
        b"a<" * (MAX_SOURCE_BYTES // 2),
        b'R"(' * (MAX_SOURCE_BYTES // 3),
        b"x f() {\n" * (MAX_SOURCE_BYTES // 8),
        b"/* " * (MAX_SOURCE_BYTES // 3),
        b'"' + b'\\"' * (MAX_SOURCE_BYTES // 2),
    ],
)
@pytest.mark.parametrize("path", ["a.c", "a.hpp"])
def test_a_hostile_file_of_the_largest_size_takes_seconds_at_most(source: bytes, path: str) -> None:
    from spark_udfs.depsort.languages.cpp.symbols import Cpp

    started = time.process_time()
    (LANGUAGE if path == "a.c" else Cpp()).extract(source[:MAX_SOURCE_BYTES], path)
    assert time.process_time() - started < 10
