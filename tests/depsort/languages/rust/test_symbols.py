"""Symbols of one Rust file, and the files of a workspace that its names lead to."""

from __future__ import annotations

import time

import pytest

from spark_udfs.depsort.extract import MAX_MANIFEST_BYTES
from spark_udfs.depsort.languages.rust.symbols import Rust
from spark_udfs.depsort.model import MAX_SOURCE_BYTES, FileSymbols
from tests.depsort.repositories import Sorted, pairs

LANGUAGE = Rust()


def extract(text: str) -> FileSymbols:
    return LANGUAGE.extract(text.encode(), "src/a.rs")


def test_items_and_methods_are_definitions_not_nested_functions() -> None:
    symbols = extract(
        "pub struct Box<T>(T);\nenum Colour { Red }\ntrait Draw { fn draw(&self); }\nconst LIMIT: u8 = 1;\n"
        "static NAME: &str = \"\";\ntype Pair = (u8, u8);\nmacro_rules! shout { () => {} }\n"
        "impl<T> Draw for Box<T> { fn draw(&self) { fn inner() {} } }\nfn run() {}\n"
    )  # fmt: skip
    names = ("Box", "Colour", "Draw", "LIMIT", "NAME", "Pair", "shout", "run", "Draw.draw", "Box.draw")
    assert symbols.definitions == dict.fromkeys(names, 1)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("mod a;", {("self.a", None, "a")}),
        ("mod a { }", set()),
        ("use a;", {("a", None, "a")}),
        ("use crate::a::b;", {("crate.a", "b", "b")}),
        ("use crate::a::{b, c as d, e::f, self};",
         {("crate.a", "b", "b"), ("crate.a", "c", "d"), ("crate.a.e", "f", "f"), ("crate", "a", "a")}),
        ("pub use super::super::a::*;", {("super.super.a", "*", None)}),
        ("use a::T as _;", {("a", "T", "")}),
        ("mod tests { use super::*; use super::super::x; }", {("self", "*", None), ("super", "x", "x")}),
    ],
)  # fmt: skip
def test_uses_are_read_as_written(text: str, expected: set[tuple[str, str | None, str | None]]) -> None:
    assert {(i.module, i.name, i.alias) for i in extract(text).imports} == expected


def test_types_calls_macros_and_paths_are_references_not_variables() -> None:
    references = extract(
        "fn f<T: Bound>(a: &Kind, b: T) -> Out { let c = run(a); c.go(); m::new(b); "
        "say!(x, Deep::make(), c) }"
    ).references
    assert references.keys() == {"Bound", "Kind", "Out", "run", ".go", "m.new", "say", "Deep.make"}


WORKSPACE = {
    "core/Cargo.toml": '[package]\nname = "my-core"\n',
    "core/src/lib.rs": "pub mod shape;\nmod util;\npub use shape::Shape;\n",
    "core/src/shape/mod.rs": "mod round;\npub use self::round::Circle;\npub struct Shape;\n",
    "core/src/shape/round.rs": "use super::Shape;\nuse crate::util::area;\npub struct Circle(Shape);\n",
    "core/src/util.rs": "pub fn area() {}\n",
    "app/Cargo.toml": '[package]\nname = "app"\n',
    "app/src/main.rs": "use my_core::{shape::Circle, Shape};\nmod helper;\nfn main() { let s: Shape; }\n",
    "app/src/helper.rs": "pub fn go() { my_core::shape::Circle::new(); }\n",
    "app/tests/all.rs": "mod common;\nuse std::shape::Circle;\n",
    "app/tests/common/mod.rs": "",
}


def test_names_are_followed_through_modules_crates_and_re_exports() -> None:
    found = pairs(WORKSPACE)
    named = {(a.removeprefix("core/src/"), b.removeprefix("core/src/")) for a, b in found}
    assert {
        ("lib.rs", "shape/mod.rs"),
        ("lib.rs", "util.rs"),
        ("shape/mod.rs", "shape/round.rs"),
        ("shape/round.rs", "shape/mod.rs"),
        ("shape/round.rs", "util.rs"),
        ("app/src/main.rs", "shape/round.rs"),
        ("app/src/main.rs", "shape/mod.rs"),
        ("app/src/main.rs", "app/src/helper.rs"),
        ("app/src/helper.rs", "shape/round.rs"),
        ("app/tests/all.rs", "app/tests/common/mod.rs"),
    } <= named
    assert not {b for a, b in found if a == "app/tests/all.rs"} - {"app/tests/common/mod.rs"}
    assert ("core/src/shape/round.rs", "core/src/lib.rs") not in found


@pytest.mark.parametrize(
    "text, item",
    [
        ("extern crate a;", ("a", None, "a")),
        ("pub extern crate a as b;", ("a", None, "b")),
        ("extern crate self as me;", ("crate", None, "me")),
        ("#[macro_use] extern crate a as _;", ("a", None, "")),
    ],
)
def test_an_extern_crate_is_an_import(text: str, item: tuple[str, str | None, str]) -> None:
    assert {(i.module, i.name, i.alias) for i in extract(text).imports} == {item}


def test_types_and_constants_of_an_impl_are_its_members() -> None:
    symbols = extract("impl Iterator for Walk { type Item = u8; const MAX: u8 = 1; }\ntype Item = u8;\n")
    assert symbols.definitions.keys() == {"Walk.Item", "Walk.MAX", "Item"}


def test_a_short_name_is_found_where_one_file_alone_has_it() -> None:
    texts = {
        "src/lib.rs": "mod m;\nmod a;\n",
        "src/m.rs": "macro_rules! ok { () => {} }\n",
        "src/a.rs": "ok!();\n",
    }
    assert ("src/a.rs", "src/m.rs") in pairs(texts)
    assert ("src/a.rs", "src/m.rs") not in pairs({**texts, "src/n.rs": texts["src/m.rs"]})


def test_a_macro_uses_what_stands_behind_its_crate() -> None:
    body = "$crate::n::Col::new(); $x::y(); $crate"
    assert extract(f"macro_rules! m {{ ($x:path) => {{ {body} }} }}").references == {"$crate.n.Col.new": 1}


def test_a_path_in_a_macro_weighs_little_unless_the_file_uses_it_itself() -> None:
    texts = {
        "src/lib.rs": "mod a;\nmod n;\n",
        "src/n.rs": "pub struct Col;\n",
        "src/a.rs": "macro_rules! arg { () => { $crate::n::Col } }\n",
        "src/b.rs": "macro_rules! arg { () => { $crate::n::Col } }\nfn f() -> crate::n::Col { todo!() }\n",
    }
    weights = {row["doc_id"]: row["weight"] for row in Sorted(texts).edges if row["depends_on"] == "src/n.rs"}
    assert weights["src/a.rs"] < 0.1 < 1.0 <= weights["src/b.rs"]


def test_a_dependency_may_have_another_name_and_a_library_another_path() -> None:
    texts = {
        "Cargo.toml": '[workspace]\n[workspace.dependencies]\ndeep = { package = "lib-a", path = "a" }\n',
        "a/Cargo.toml": '[package]\nname = "lib-a"\n[lib]\npath = "code/a.rs"\n',
        "a/code/a.rs": "pub fn run() {}\n",
        "b/Cargo.toml": '[package]\nname = "b"\n[dependencies]\nshort = { package = "lib-a" }\n',
        "b/src/main.rs": "fn main() { short::run(); }\n",
        "c/Cargo.toml": "[package]\nname = 'c'\n[target.'cfg(unix)'.dependencies]\ndeep.workspace = true\n",
        "c/src/main.rs": "use deep::run;\nfn main() { run(); }\n",
        "core/Cargo.toml": '[package]\nname = "my-core"\n',
        "core/src/lib.rs": "use core::mem;\npub fn mem() {}\n",
        "d/src/main.rs": "use core::mem;\n",
    }
    assert {edge for edge in pairs(texts) if edge[0].endswith(".rs")} == {
        ("b/src/main.rs", "a/code/a.rs"),
        ("c/src/main.rs", "a/code/a.rs"),
    }


def test_a_crate_is_named_after_lists_in_its_manifest() -> None:
    texts = {
        "core/Cargo.toml": '[package]\nauthors = ["a", "b"]\nname = "shapes"\n[[bin]]\nname = "other"\n',
        "core/src/lib.rs": "pub fn area() {}\n",
        "app/Cargo.toml": "\n" * (MAX_MANIFEST_BYTES - 1),
        "app/src/main.rs": "use shapes::area;\nuse other::area as b;\n",
    }
    assert pairs(texts) == {("app/src/main.rs", "core/src/lib.rs")}
    assert Sorted(texts).resolution_of("app/src/main.rs", "other.area", "import") == "external"


@pytest.mark.parametrize(
    "piece",
    [
        *(b"(", b"a::", b"use {", b"fn f() {", b"a<", b"x!(A::b);", b"mod a { use b; "),
        *(b"use a::b;\n", b"mod a { b::c(); }\n"),
    ],
)
def test_a_hostile_file_of_the_largest_size_takes_seconds_at_most(piece: bytes) -> None:
    started = time.process_time()
    LANGUAGE.extract(piece * (MAX_SOURCE_BYTES // len(piece)), "a.rs")
    assert time.process_time() - started < 20
