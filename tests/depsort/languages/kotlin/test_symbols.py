"""Symbols of one Kotlin file, and the files of a repository that its names lead to."""

from __future__ import annotations

import pytest

from spark_udfs.depsort.languages.kotlin.symbols import MAX_BYTES, Kotlin
from spark_udfs.depsort.model import FileSymbols
from tests.depsort.repositories import dependencies

KOTLIN = Kotlin()


def extract(text: str) -> FileSymbols:
    return KOTLIN.extract(text.encode(), "a.kt")


def uses(code: str) -> list[str]:
    """The references of a function's body, its parameter's type left out."""
    return sorted(set(extract(f"fun f(b: Box) {{\n{code}\n}}\n").references) - {"Box"})


def test_classes_members_and_package_functions_are_typed_definitions() -> None:
    symbols = extract(
        "package a.b\n\nopen class Box<T>(val lid: Lid, n: Int) : Base<T>(n), Open {\n"
        "  val items: List<Item> = make()\n"
        "  companion object {\n    fun make(): Box = Box()\n  }\n"
        "  enum class Kind {\n    BIG, SMALL\n  }\n}\n"
        "object Store : Shop() {\n  fun open() {}\n}\nfun top() = Box()\nval one by lazy { 1 }\n"
        "typealias Case = Box\n"
        "fun Lid.close(): Box = this.box()\n"
    )
    assert symbols.package == "a.b"
    assert " ".join(sorted(symbols.definitions)) == (
        "Box Box.Kind Box.Kind.BIG Box.Kind.SMALL Box.items Box.lid Box.make Box.n Case Store Store.open "
        "close one this.close top"
    )
    assert symbols.bases == {"Box": ("Base", "Open"), "Store": ("Shop",), "Case": ("Box",), "1": ("Lid",)}
    assert symbols.types["top"] == symbols.types["close"] == "Box"
    assert symbols.types["Box.items"] == "~Box/Item"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("import a.b.C", ("a.b", "C", "C")),
        ("import a.b.C as D", ("a.b", "C", "D")),
        ("import a.b.*", ("a.b", "*", None)),
    ],
)
def test_imports_are_read_as_written(text: str, expected: tuple[str, str, str | None]) -> None:
    assert [(i.module, i.name, i.alias) for i in extract(f"{text}\n").imports] == [expected]


@pytest.mark.parametrize(
    "code, expected",
    [
        ("b.lid().open()", ["Box.lid.open"]),
        ("val x = Maker.make()\nx.run()", ["Maker.make", "Maker.make.run"]),
        ("for (i in b.items) { i.go() }", ["Box.items", "Box.items.go"]),
        ("b!!.lid?.open()", ["Box.lid.open"]),
        ("(o as Item).go()", ["Item", "Item.go", "o"]),
        ("xs.map { it.go() }", [".go", "xs.map"]),
        ("xs.map { x: Item -> x.go() }", ["Item", "Item.go", "xs.map"]),
        ("try {\n} catch (e: Bad) {\n  e.say()\n}", ["Bad", "Bad.say"]),
        ("call(name = b)", ["call"]),
        ("val (p, q) = pair\np.go()", [".go", "pair"]),
        ("val k = Item::go", ["Item.go"]),
    ],
)
def test_a_use_is_written_from_the_declared_type_on(code: str, expected: list[str]) -> None:
    assert uses(code) == expected


REPOSITORY = {
    "Base.java": "package a; public class Base { protected Tool tool() { return null; } }",
    "Tool.kt": "package a\n\nclass Tool {\n  fun run() {}\n}\n",
    "ext.kt": "package x\n\nfun String.shout() = 1\n",
    "top.kt": "package a\n\nfun make(): Tool = Tool()\n",
}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("package a\n\nval t = Tool()\n", {"Tool.kt"}),
        ("package c\n\nimport a.Tool\n\nclass X(val t: Tool)\n", {"Tool.kt"}),
        ("package c\n\nimport a.*\n\nfun f() = make().run()\n", {"top.kt", "Tool.kt"}),
        ("package c\n\nclass X : a.Base() {\n  fun f() = tool().run()\n}\n", {"Base.java", "Tool.kt"}),
        ("package c\n\nimport x.shout\n\nfun f(y: String) = y.shout()\n", {"ext.kt"}),
        ("package c\n\nimport x.shout\n\nfun f() = list { it.shout() }\n", {"ext.kt"}),
        ("package c\n\nfun a.Base.f() = tool()\n", {"Base.java"}),
        ("package c\n\nclass X<Tool>(val t: Tool)\n", set()),
    ],
)
def test_a_name_leads_to_the_file_that_defines_it_in_either_language(text: str, expected: set[str]) -> None:
    assert dependencies({**REPOSITORY, "X.kt": text}, "X.kt") == expected


MULTIPLATFORM = {
    "src/commonMain/okio/-CommonPlatform.kt": "package okio\n\nexpect class Lock\n\n"
    "internal expect fun ByteArray.toUtf8String(): String\n\nexpect val here: Int\n",
    "src/commonMain/okio/Buffer.kt": "package okio\n\nexpect class Buffer() {\n  fun read(): String\n}\n",
    "src/commonMain/okio/Okio.kt": '@file:JvmName("Okio")\n\npackage okio\n\nfun Buffer.buffer() = this\n',
    "src/commonMain/okio/User.kt": "package okio\n\nfun user(b: ByteArray) = b.toUtf8String()\n",
    "src/jvmMain/okio/-JvmPlatform.kt": '@file:JvmName("-JvmPlatform")\n\npackage okio\n\n'
    "actual typealias Lock = java.util.concurrent.locks.ReentrantLock\n\n"
    "internal actual fun ByteArray.toUtf8String(): String = String(this)\n\nactual val here: Int = 1\n",
    "src/jvmMain/okio/Buffer.kt": 'package okio\n\nactual class Buffer {\n  actual fun read() = ""\n}\n',
    "src/jvmMain/okio/JvmOkio.kt": '@file:JvmMultifileClass\n@file:JvmName("Okio")\n\npackage okio\n\n'
    "fun File.source(): Buffer = Buffer()\n",
    "src/jvmMain/okio/JvmUser.kt": "package okio\n\nfun user(b: ByteArray) = b.toUtf8String()\n",
    "src/other/Buffer.kt": "package other\n\nactual class Buffer\n",
    "samples/Sample.java": "package samples;\nimport okio.Okio;\nclass Sample {\n"
    "  void f(java.io.File x) { Okio.source(x).read(); }\n}\n",
    "samples/Static.java": "package samples;\nimport static okio.Okio.source;\nclass Static {\n"
    "  void f(java.io.File x) { source(x); }\n}\n",
    "samples/sample.kt": "package samples\n\nimport okio.source\n\nfun f(x: java.io.File) = x.source()\n",
}


@pytest.mark.parametrize(
    "path, expected",
    [
        ("src/jvmMain/okio/-JvmPlatform.kt", {"src/commonMain/okio/-CommonPlatform.kt"}),
        ("src/jvmMain/okio/Buffer.kt", {"src/commonMain/okio/Buffer.kt"}),
        ("src/commonMain/okio/-CommonPlatform.kt", set()),
        ("src/commonMain/okio/User.kt", {"src/commonMain/okio/-CommonPlatform.kt"}),
        ("src/jvmMain/okio/JvmUser.kt", {"src/jvmMain/okio/-JvmPlatform.kt"}),
        ("src/other/Buffer.kt", set()),
    ],
)
def test_an_actual_declaration_depends_on_the_expected_one(path: str, expected: set[str]) -> None:
    assert dependencies(MULTIPLATFORM, path) == expected


@pytest.mark.parametrize("path", ["samples/Sample.java", "samples/Static.java", "samples/sample.kt"])
def test_functions_are_found_by_import_and_by_the_class_that_java_sees(path: str) -> None:
    assert "src/jvmMain/okio/JvmOkio.kt" in dependencies(MULTIPLATFORM, path)


def test_a_file_too_long_for_the_grammar_gives_no_symbols() -> None:
    line = "class A {\n val b = 1\n}\n"
    assert extract(line * (MAX_BYTES // len(line))).definitions.keys() == {"A", "A.b"}
    assert extract(line * (MAX_BYTES // len(line) + 1)) == FileSymbols()
