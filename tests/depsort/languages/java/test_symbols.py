"""Symbols of one Java file, and the files of a repository that its names lead to."""

from __future__ import annotations

import pytest

from spark_udfs.depsort.languages.java.symbols import Java
from spark_udfs.depsort.model import FileSymbols
from tests.depsort.repositories import dependencies, pairs

JAVA = Java()


def extract(text: str) -> FileSymbols:
    return JAVA.extract(text.encode(), "A.java")


def uses(code: str) -> list[str]:
    """The references of a method's body in a class without a base, its parameter's type left out."""
    return sorted(set(extract(f"class A {{ void f(Box b) {{ {code} }} }}").references) - {"Box"})


def test_classes_and_their_members_are_definitions_with_their_types() -> None:
    symbols = extract(
        "package a.b; public class Box<T> extends Base<T> implements p.Lid, Open {\n"
        "  int n; private Item first, last; static final List<Item> ALL = null;\n"
        "  Box(int n) {} Item get() { int local; return null; } <X> X any() { return null; }\n"
        "  enum Kind { BIG, SMALL { int size() { return 1; } } }\n"
        "  interface Opener { Box open(); }\n  record Pair(Item left, int right) {}\n"
        "  @interface Mark { String value(); }\n}"
    )
    assert symbols.package == "a.b"
    assert " ".join(sorted(symbols.definitions)) == (
        "Box Box.ALL Box.Kind Box.Kind.BIG Box.Kind.SMALL Box.Mark Box.Mark.value Box.Opener Box.Opener.open "
        "Box.Pair Box.Pair.left Box.Pair.right Box.any Box.first Box.get Box.last Box.n"
    )
    assert symbols.bases["Box"] == ("Base", "p.Lid", "Open")
    assert symbols.types["Box.Kind.BIG"] == "Box.Kind"
    assert symbols.types["Box.Opener.open"] == "Box.Opener/Box"
    assert (symbols.types["Box.get"], symbols.types["Box.ALL"]) == ("Box/Item", "~Box/Item")
    assert "Box.any" not in symbols.types  # its result is a type parameter


@pytest.mark.parametrize(
    "written, name",
    [
        ("a.Map<K, List<@N(x) V>>.@M Entry<K>", "a.Map.Entry"),
        (f"{'A<' * 20_000}A{'>' * 20_000}.B", "A.B"),
    ],
)
def test_the_name_of_a_type_has_no_arguments_or_annotations(written: str, name: str) -> None:
    assert extract(f"class T {{ {written} x; }}").types == {"T.x": name}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("import a.b.C;", ("a.b", "C", "C")),
        ("import a.b.*;", ("a.b", "*", None)),
        ("import static a.b.C.run;", ("a.b.C", "run", "run")),
        ("import static a.b.C.*;", ("a.b.C", "*", None)),
    ],
)
def test_imports_are_read_as_written(text: str, expected: tuple[str, str, str | None]) -> None:
    assert [(i.module, i.name, i.alias) for i in extract(text).imports] == [expected]


@pytest.mark.parametrize(
    "code, expected",
    [
        ("b.lid().open();", ["Box.lid.open"]),
        ("b.lid.size++;", ["Box.lid.size"]),
        ("var x = Maker.make(); x.run();", ["Maker.make", "Maker.make.run"]),
        ("Lid l = new Lid() {}; l.close();", ["Lid", "Lid.close"]),
        ("for (Item i : b.items()) i.go();", ["Box.items", "Item", "Item.go"]),
        ("java.util.List<Item> l; a.b.C.run();", ["Item", "a.b.C.run", "java.util.List"]),
        ("if (o instanceof Item i) i.go();", ["Item", "Item.go", "o"]),
        ("use(Item::go, b::close);", ["Box.close", "Item", "Item.go", "use"]),
        ("((Item) o).go();", ["Item", "Item.go", "o"]),
        ("xs.map(x -> x.go()).each((p, q) -> p.run(q));", [".go", ".run", "xs.map.each"]),
        ("try (Res r = open()) {} catch (Bad | Worse e) { e.say(); }",
         ["Bad", "Bad.say", "Res", "Worse", "open"]),
        ("switch (b.kind()) { case BIG: break; default: }", ["Box.kind", "Box.kind.BIG"]),
        ("here: while (true) break here;", []),
        ("Object k = Item.class;", ["Item", "Object"]),
        ("class Local { void g() {} } Local l; l.g();", []),
    ],
)  # fmt: skip
def test_a_use_is_written_from_the_declared_type_on(code: str, expected: list[str]) -> None:
    assert uses(code) == expected


def test_a_name_that_may_be_inherited_names_its_class() -> None:
    symbols = extract("class A extends B { int own; void f() { own = helper(); this.up(); super.down(); } }")
    assert set(symbols.references) == {"B", "A.own", "A/helper", "A.up", "A.down"}


REPOSITORY = {
    "src/main/java/a/Base.java": "package a; public class Base { protected Tool tool() { return null; } }",
    "src/main/java/a/Tool.java": "package a; public class Tool { public static int MAX; void run() {} }",
    "src/main/java/b/Box.java": "package b; public class Box extends a.Base { public static class Lid {} }",
}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("package a; class X { Tool t; }", {"a/Tool"}),
        ("package c; import a.Tool; class X { Tool t; }", {"a/Tool"}),
        ("package c; import a.*; class X { Tool t; }", {"a/Tool"}),
        ("package c; class X { a.Tool t; }", {"a/Tool"}),
        ("package c; import static a.Tool.MAX; class X { int i = MAX; }", {"a/Tool"}),
        ("package c; import static a.Tool.*; class X { int i = MAX; }", {"a/Tool"}),
        ("package c; import b.Box.Lid; class X { Lid l; }", {"b/Box"}),
        ("package c; import b.Box; class X { Box.Lid l; }", {"b/Box"}),
        ("package b; class X extends Box { void f() { tool().run(); } }", {"b/Box", "a/Base", "a/Tool"}),
        ("package b; class X extends Box { Lid l; }", {"b/Box"}),
        ("package b; class X { void f(Box x) { new Box() { void g() { tool(); } }; } }", {"b/Box", "a/Base"}),
        ("package c; import java.util.*; import a.*; class X { List<Tool> l; void f() { l.get(0).run(); } }",
         {"a/Tool"}),
        ("package c; @a.Tool class X { }", {"a/Tool"}),
        ("package c; class Tool {} class X { Tool t; }", set()),
        ("package c; class X<Tool> { Tool t; void f(String Base) { Base.length(); } }", set()),
    ],
)  # fmt: skip
def test_a_name_leads_to_the_file_that_defines_it(text: str, expected: set[str]) -> None:
    path = "src/test/java/X.java"
    found = dependencies({**REPOSITORY, path: text}, path)
    assert found == {f"src/main/java/{name}.java" for name in expected}


def test_of_two_copies_of_a_class_the_nearer_is_meant() -> None:
    tool, use = "package a; class Tool {}", "package a; class Use { Tool t; }"
    texts = {f"{root}/a/{name}.java": text for root in ("jre", "android") for name, text in
             (("Tool", tool), ("Use", use))}  # fmt: skip
    assert pairs(texts) == {(f"{r}/a/Use.java", f"{r}/a/Tool.java") for r in ("jre", "android")}
