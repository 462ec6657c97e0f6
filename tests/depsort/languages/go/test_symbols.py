"""Symbols of one Go file, and the files of a module that its names lead to."""

from __future__ import annotations

import pytest

from spark_udfs.depsort.languages.go.symbols import Go
from spark_udfs.depsort.model import FileSymbols
from tests.depsort.repositories import dependencies, pairs

GO = Go()


def extract(text: str) -> FileSymbols:
    return GO.extract(f"package p\n{text}".encode(), "p.go")


def test_declarations_of_a_package_are_typed_definitions() -> None:
    symbols = extract(
        "const A, B = 1, 2\nvar v *Box\nvar w = New()\nfunc New() (*Box, error) { return nil, nil }\n"
        "type Box struct { x, y int; items []Item; Base; q.Other }\n"
        "func (b *Box) Open() q.Lid { inner := 1; return inner }\n"
        "type Opener interface { Open() q.Lid; Closer }\ntype Alias = Box\nfunc init() {}\nvar _ = 1\n"
    )
    assert " ".join(sorted(symbols.definitions)) == (
        "A Alias B Box Box.Base Box.Open Box.Other Box.items Box.x Box.y New Opener Opener.Open v w"
    )
    assert " ".join(f"{name}:{chain}" for name, chain in sorted(symbols.types.items())) == (
        "Box.Base:Base Box.Open:q.Lid Box.Other:q.Other Box.items:Item Box.x:int Box.y:int New:Box "
        "Opener.Open:q.Lid v:Box w:New"
    )
    assert symbols.bases == {"Box": ("Base", "q.Other"), "Opener": ("Closer",), "Alias": ("Box",)}
    assert symbols.package == "p"


@pytest.mark.parametrize(
    "spec, module, name, alias",
    [
        ('"a/b"', "a/b", None, "b"),
        ('"a/b/v2"', "a/b/v2", None, "b"),
        ('"gopkg.in/yaml.v3"', "gopkg.in/yaml.v3", None, "yaml"),
        ('x "a/b"', "a/b", None, "x"),
        ('. "a/b"', "a/b", "*", None),
        ('_ "a/b"', "a/b", None, ""),
    ],
)
def test_imports_bind_the_package_as_go_does(
    spec: str, module: str, name: str | None, alias: str | None
) -> None:
    assert [(i.module, i.name, i.alias) for i in extract(f"import {spec}").imports] == [(module, name, alias)]


@pytest.mark.parametrize(
    "body, uses",
    [
        ("c.engine.Run()", ["Context.engine.Run"]),
        ("x := New(); x.Run()", ["New", "New.Run"]),
        ("x, err := q.Open(1); x.Close(); err.Error()", [".Error", "q.Open", "q.Open.Close"]),
        ("x := &Box{Size: 1}; x.Lid.Open()", ["Box", "Box.Lid.Open", "Box.Size"]),
        ("for i, it := range c.items { it.Go(i) }", ["Context.items", "Context.items.Go"]),
        ("switch y := c.any().(type) { case *Box: y.Open(); default: y.No() }",
         [".No", "Box", "Box.Open", "Context.any"]),
        ("c.get().(*Box).Open()", ["Box", "Box.Open", "Context.get"]),
        ("var b Box; func() { b.Open() }()", ["Box", "Box.Open"]),
        ("m := map[string]*Box{}; m[k].Open()", ["Box", "Box.Open", "k", "string"]),
        ("a := []Box{{Size: 1}}; _ = a", ["Box", "Box.Size"]),
        ("if f := find(); f.ok() { f.go1() }", ["find", "find.go1", "find.ok"]),
        ("New := 1; use(New)", ["use"]),
        ("type Local struct{}; var l Local; l.x()", [".x"]),
        ("Outer: for { break Outer }", []),
    ],
)  # fmt: skip
def test_a_use_is_written_from_the_declared_type_on(body: str, uses: list[str]) -> None:
    symbols = extract(f"func f(c *Context) {{ {body} }}")
    assert sorted(set(symbols.references) - {"Context"}) == uses


def test_a_name_is_bound_after_its_declaration_within_its_block() -> None:
    symbols = extract("func f() {\n{ box := box.Get(func() { box := 1; _ = box }) }\nbox.Put()\n}")
    assert symbols.references == {"box.Get": 1, "box.Put": 1}


def test_type_parameters_stand_for_what_constrains_them() -> None:
    symbols = extract(
        "func f[T Runner, U any](t T, u U) { t.Run(); u.x() }\nfunc (b *Box[K]) g(k K) { k.x() }"
    )
    assert set(symbols.references) == {"Runner", "Runner.Run", "any", "any.x", "Box", ".x"}


MODULE = {
    "go.mod": "// m\n" + "\n" * 150_000 + "module example.com/m\n",
    "engine.go": "package m\ntype Engine struct { pool pool }\n",
    "run.go": "package m\nfunc (e *Engine) Run() {}\n",
    "pool.go": "package m\ntype pool struct{}\nfunc (p *pool) get() *Engine { return nil }\n",
}


def test_a_call_on_a_value_leads_to_its_method_without_an_import() -> None:
    texts = {**MODULE, "use.go": "package m\nfunc use(e *Engine) { e.pool.get().Run() }\n"}
    assert dependencies(texts, "use.go") == {"engine.go", "pool.go", "run.go"}


def test_an_import_leads_only_to_the_file_that_defines_what_is_used() -> None:
    texts = {**MODULE, "cmd/main.go": 'package main\nimport "example.com/m"\nvar e m.Engine\n'}
    assert dependencies(texts, "cmd/main.go") == {"engine.go"}


def test_without_go_mod_the_path_is_inferred_from_imports() -> None:
    texts = {
        "go/x/a.go": "package x\nfunc A() {}\n",
        "go/y/b.go": 'package y\nimport "example.com/m/go/x"\nfunc B() { x.A() }\n',
    }
    assert pairs(texts) == {("go/y/b.go", "go/x/a.go")}


def test_a_package_may_have_another_name_than_its_folder() -> None:
    texts = {
        "go.mod": "module m\n",
        "go-box/a.go": "package crate\nfunc A() {}\n",
        "b.go": 'package b\nimport "m/go-box"\nfunc B() { crate.A() }\n',
    }
    assert pairs(texts) == {("b.go", "go-box/a.go")}


def test_tests_see_the_package_and_nothing_sees_tests() -> None:
    texts = {
        "go.mod": "module m\n",
        "a.go": "package a\nfunc A() { helper() }\n",
        "export_test.go": "package a\nfunc helper() {}\n",
        "a_test.go": 'package a_test\nimport "m"\nfunc T() { a.A(); a.helper() }\n',
    }
    assert pairs(texts) == {("a_test.go", "a.go"), ("a_test.go", "export_test.go")}


def test_members_of_embedded_types_lead_to_the_type_that_has_them() -> None:
    texts = {
        "base.go": "package p\ntype Base struct{}\nfunc (b Base) Go() {}\n",
        "box.go": "package p\ntype Box struct { Base }\n",
        "use.go": "package p\nfunc use(b Box) { b.Go() }\n",
    }
    assert dependencies(texts, "use.go") == {"base.go", "box.go"}


def test_a_name_for_several_systems_leads_to_every_file_that_has_it() -> None:
    texts = {
        "a_linux.go": "package p\nfunc open() {}\n",
        "a_windows.go": "package p\nfunc open() {}\n",
        "b.go": "package p\nfunc B() { open() }\n",
    }
    assert pairs(texts) == {("b.go", "a_linux.go"), ("b.go", "a_windows.go")}


def test_types_that_lead_to_themselves_end() -> None:
    texts = {
        "a.go": "package p\ntype A B\ntype B A\nvar x = y\nvar y = x\n",
        "b.go": "package p\nfunc f(a A) { a.go1(); x.go2() }\n",
    }
    assert pairs(texts) == {("b.go", "a.go")}
