"""Symbols of one JavaScript or TypeScript file, and bounds on hostile files."""

from __future__ import annotations

import time

import pytest

from spark_udfs.depsort.languages.javascript.modules import GLOBAL, MODULE
from spark_udfs.depsort.languages.javascript.symbols import JavaScript, TypeScript
from spark_udfs.depsort.model import MAX_SOURCE_BYTES, FileSymbols

JAVASCRIPT, TYPESCRIPT = JavaScript(), TypeScript()


def extract(text: str, path: str = "file.ts") -> FileSymbols:
    language = TYPESCRIPT if path.endswith((".ts", ".tsx", ".mts", ".cts")) else JAVASCRIPT
    return language.extract(text.encode(), path)


def imported(text: str, path: str = "file.ts") -> list[tuple[str, str | None, str | None, bool]]:
    return [(i.module, i.name, i.alias, i.deferred) for i in extract(text, path).imports]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("import a from './m'", [("./m", "default", "a", False)]),
        ("import a, {b as c, type D} from 'm'",
         [("m", "D", "D", False), ("m", "b", "c", False), ("m", "default", "a", False)]),
        ("import * as ns from './m'", [("./m", None, "ns", False)]),
        ("import './m'", [("./m", None, "", False)]),
        ("import {} from './m'", [("./m", None, "", False)]),
        ("import type {T} from './m'", [("./m", "T", "T", False)]),
        ("import e = require('./m')", [("./m", None, "e", False)]),
        ("export * from './m'", [("./m", "*", None, False)]),
        ("export * as ns from './m'", [("./m", None, "ns", False)]),
        ("export {a as b, default as c} from './m'",
         [("./m", "a", "b", False), ("./m", "default", "c", False)]),
        ("import {a} from './m'\nexport {a as b}", [("./m", "a", "a", False), ("./m", "a", "b", False)]),
        ("import a from './m'\nexport default a",
         [("./m", "default", "a", False), ("./m", "default", "default", False)]),
        ("const a = require('./m')", [("./m", None, "a", False)]),
        ("const {a, b: c} = require('./m')", [("./m", "a", "a", False), ("./m", "b", "c", False)]),
        ("const a = require('./m').b", [("./m", "b", "a", False)]),
        ("require('./m')", [("./m", None, "", False)]),
        ("exports.a = require('./m')", [("./m", None, "a", False)]),
        ("module.exports = require('./m')", [("./m", "*", None, False)]),
        ("module.exports = {a: require('./m'), b: require('./n').c}",
         [("./m", None, "a", False), ("./n", "c", "b", False)]),
        ("function f() { const a = require('./m') }", [("./m", None, "a", True)]),
        ("const a = await import('./m')", [("./m", None, "a", False)]),
        ("const f = () => import('./m')", [("./m", None, "", True)]),
        ("type T = import('./m').X", [("./m", None, "", False)]),
        ("/// <reference path='m.d.ts' />\nlet a = 1", [("./m.d.ts", "*", None, False)]),
        ("/**\n * @typedef {import('./m').X} X\n */\nlet a = 1", [("./m", None, "", True)]),
        ("// import a from './m'\nconst s = \"require('./n')\"", []),
        ("/** @import { X } from './m' */\nlet a = 1", [("./m", None, "", True)]),
        ("/**\n * @import X, * as ns from './m'\n */\nlet a = 1", [("./m", None, "", True)]),
        ("export {}\ndeclare module './m' {\n  interface X {}\n}", [("./m", None, "", False)]),
        ("declare module './m' {\n  interface X {}\n}", []),
        ("require(name); import(name)", []),
    ],
)  # fmt: skip
def test_imports_are_read_in_every_way_they_are_written(
    text: str, expected: list[tuple[str, str | None, str | None, bool]]
) -> None:
    assert imported(text) == expected


def test_a_module_defines_its_exports_and_keeps_the_rest_private() -> None:
    symbols = extract(
        "export const a = 1, {b, c: [d]} = x\nexport function f() { const inner = 1 }\n"
        "export class K { open() {} constructor() {} }\nexport interface I { call(): void }\n"
        "export type T = I\nexport enum E { one }\nexport abstract class A { abstract run(): void }\n"
        "const hidden = 2\nconst seen = 3\nexport { seen as shown }\nexport default class D {}\n"
    )
    exported = ("a", "b", "d", "f", "K", "I", "T", "E", "A", "shown", "D", "default")
    assert set(symbols.definitions) == {*exported, "hidden", "seen", "K.open", "I.call", "A.run"}
    assert set(symbols.exports or ()) == {*exported} - {"default"}
    assert symbols.private == ("hidden", "seen")
    assert symbols.package == MODULE


def test_commonjs_defines_what_it_assigns_to_exports() -> None:
    symbols = extract(
        "exports.a = 1\nmodule.exports.b = function () {}\nmodule.exports = {c, d: 1, e() {}}\n"
        "function Box() {}\nBox.prototype.open = function () {}\n",
        "file.js",
    )
    assert set(symbols.definitions) == {"a", "b", "c", "d", "e", "Box", "Box.open"}
    assert symbols.package == MODULE


def test_a_script_shares_its_names_and_declared_globals_are_shared_too() -> None:
    script = extract("var app = {}\nfunction start() {}\nwindow.main = 1\n", "file.js")
    assert (script.package, script.private) == (None, ())
    assert set(script.definitions) == {"app", "start", "main"}
    module = extract("export {}\ndeclare global { interface Window { v: number } var flag: boolean }\n")
    assert module.package == GLOBAL
    assert {"Window", "flag"} <= set(module.definitions) - set(module.private)


def test_extension_functions_of_another_modules_types_are_seen() -> None:
    augmentation = "declare module './m' {\n  interface X { a(): void; b: { c: () => void; d: string } }\n}\n"
    assert extract(f"export {{}}\n{augmentation}").definitions == {"this.a": 1, "this.c": 1}
    assert not extract(augmentation).definitions  # no module: it declares ./m, which is not there


def test_uses_are_counted_where_nothing_in_the_function_hides_them() -> None:
    symbols = extract(
        "import {a, b, T} from './m'\nimport * as ns from './n'\n"
        "a(); a(); ns.deep.f(); ns?.g; x.method(); const y = {b}\n"
        "function f(a: T, {c}: T) { a(); c(); { const b = 1; b } }\nfree()\n"
    )
    once = dict.fromkeys(("b", "ns.deep.f", "ns.g", "free", "x", ".method"), 1)
    assert symbols.references == {"a": 2, "T": 2, **once}


def test_jsx_elements_are_uses_in_both_languages() -> None:
    text = "import {Box} from './m'\nexport const a = <Box size={1}>text</Box>\n"
    assert extract(text, "file.tsx").references["Box"] == 2
    assert extract(text, "file.jsx").references["Box"] == 2


def test_javascript_that_flow_checks_is_read_with_its_types() -> None:
    text = "// @flow\nimport type {T} from './m'\nexport function f(x: T): T { return x }\n"
    assert extract(text, "file.js").references == {"T": 2}


def test_minified_code_has_no_symbols() -> None:
    assert extract("var a=1;" * 10_000, "file.js") == FileSymbols()


@pytest.mark.parametrize(
    "source",
    [
        b"/*" + b"\n" * 300 + b"* @import " * (MAX_SOURCE_BYTES // 10 - 30),
        b"(\n" * (MAX_SOURCE_BYTES // 2),
        b"a" + b".a\n" * (MAX_SOURCE_BYTES // 3),
        b"x = " + b"[\n" * (MAX_SOURCE_BYTES // 2),
        b"a" + b"(1)\n" * (MAX_SOURCE_BYTES // 4),
        b"class A{}\n" * (MAX_SOURCE_BYTES // 20) + b"x={\n" + b"a(){},\n" * (MAX_SOURCE_BYTES // 14),
        b"function f(){\n" * (MAX_SOURCE_BYTES // 14),
        b"import a from 'm'\nfunction f(a){a}\n" * (MAX_SOURCE_BYTES // 36),
        b"`${\n" * (MAX_SOURCE_BYTES // 4),
        b"<a>\n" * (MAX_SOURCE_BYTES // 4),
    ],
    ids=[
        *("imports in comments", "parentheses", "members", "brackets", "calls", "classes", "functions"),
        *("hiding", "templates", "elements"),
    ],
)
def test_a_hostile_file_of_the_largest_size_takes_seconds_at_most(source: bytes) -> None:
    started = time.process_time()
    TYPESCRIPT.extract(source, "file.tsx")
    assert time.process_time() - started < 20  # without bounds the first two take minutes
