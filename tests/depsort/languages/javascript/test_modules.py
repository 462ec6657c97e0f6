"""Names of JavaScript and TypeScript modules, each in a repository small enough to read."""

from __future__ import annotations

import json

import pytest

from spark_udfs.depsort.extract import MAX_MANIFEST_BYTES
from spark_udfs.depsort.weights import WEAK
from tests.depsort.repositories import Sorted

TARGET = "export function target() {}\n"


def uses(files: dict[str, str], path: str) -> dict[str, list[str]]:
    return Sorted(files).uses_of(path)


@pytest.mark.parametrize(
    "name, file",
    [
        ("./m", "a/m.ts"),
        ("./m", "a/m.tsx"),
        ("./m", "a/m.js"),
        ("./m", "a/m.d.ts"),
        ("./m", "a/m/index.ts"),
        ("./m", "a/m/index.js"),
        ("./m.js", "a/m.ts"),
        ("./m.js", "a/m.tsx"),
        ("./m.mjs", "a/m.mts"),
        ("./m.ts", "a/m.ts"),
        ("../m", "m.ts"),
        ("..", "index.ts"),
        (".", "a/index.ts"),
        ("./m?raw", "a/m.ts"),
        ("@/b/m", "src/b/m.ts"),
        ("~/b/m", "b/m.ts"),
        ("b/m", "src/b/m.ts"),
        ("@scope/lib", "packages/lib/src/index.ts"),
        ("@scope/lib/m", "packages/lib/src/m.ts"),
    ],
)
def test_a_name_means_the_file_that_a_bundler_would_take(name: str, file: str) -> None:
    files = {file: TARGET, "a/use.ts": f"import {{target}} from '{name}'\ntarget()\n"}
    assert uses(files, "a/use.ts") == {"target": [file]}


@pytest.mark.parametrize(
    "name", ["react", "fs", "node:fs", "fs/promises", "https://x/m.js", "../../m", "@a/b"]
)
def test_a_module_outside_the_repository_is_external(name: str) -> None:
    files = {
        "m.ts": TARGET,
        "fs/promises.ts": TARGET,
        "a/use.ts": f"import {{target}} from '{name}'\ntarget()\n",
    }
    assert uses(files, "a/use.ts") == {}
    assert Sorted(files).resolution_of("a/use.ts", "target") == "external"


def test_paths_of_the_nearest_tsconfig_are_followed_with_what_it_extends() -> None:
    mapped = '{"baseUrl": ".", "paths": {"#lib/*": ["libs/*/src"],},}'
    base = '{\n  // shared by all\n  "compilerOptions": ' + mapped + ",\n}"
    files = {
        "tsconfig.base.json": base,
        "apps/web/tsconfig.json": json.dumps({"extends": "../../tsconfig.base.json"}),
        "apps/web/use.ts": "import {target} from '#lib/one'\ntarget()\n",
        "libs/one/src/index.ts": TARGET,
    }
    assert uses(files, "apps/web/use.ts") == {"target": ["libs/one/src/index.ts"]}


def test_a_base_url_makes_bare_names_files() -> None:
    files = {
        "jsconfig.json": json.dumps({"compilerOptions": {"baseUrl": "source"}}),
        "source/m.js": TARGET,
        "source/a/use.js": "import {target} from 'm'\ntarget()\n",
    }
    assert uses(files, "source/a/use.js") == {"target": ["source/m.js"]}


@pytest.mark.parametrize(
    "manifest, name, file",
    [
        ({}, "lib", "packages/one/src/index.ts"),
        ({}, "lib/deep/m", "packages/one/src/deep/m.ts"),
        ({"main": "./dist/main.js"}, "lib", "packages/one/src/main.ts"),
        ({"main": "main.js"}, "lib", "packages/one/main.js"),
        ({"exports": "./dist/x.js"}, "lib", "packages/one/src/x.ts"),
        ({"exports": {"import": "./dist/x.mjs"}}, "lib", "packages/one/src/x.ts"),
        ({"exports": {".": {"types": "./dist/x.d.ts"}}}, "lib", "packages/one/src/x.ts"),
        ({"exports": {"./sub": "./dist/x.js"}}, "lib/sub", "packages/one/src/x.ts"),
        ({"exports": {"./*": "./dist/all/*.js"}}, "lib/y", "packages/one/src/all/y.ts"),
    ],
)
def test_a_package_of_the_repository_is_found_by_its_name(
    manifest: dict[str, object], name: str, file: str
) -> None:
    files = {
        "packages/one/package.json": json.dumps({"name": "lib", **manifest}),
        file: TARGET,
        "packages/two/use.ts": f"import {{target}} from '{name}'\ntarget()\n",
    }
    assert uses(files, "packages/two/use.ts") == {"target": [file]}


def test_the_repository_itself_is_a_package_that_its_tests_require() -> None:
    files = {
        "package.json": json.dumps({"name": "app", "main": "app.js"}),
        "app.js": "module.exports = function start() {}\n",
        "test/a.js": "const app = require('..')\n",
        "test/b.js": "const app = require('app')\n",
    }
    for path in ("test/a.js", "test/b.js"):
        assert Sorted(files).weights_of(path) == {"app.js": 1.0}


def test_private_imports_are_those_of_the_nearest_package() -> None:
    files = {
        "package.json": json.dumps({"name": "app", "imports": {"#m": "./wrong.js", "#x/*": "./inner/*.js"}}),
        "wrong.js": TARGET,
        "inner/m.js": TARGET,
        "a/use.js": "import {target} from '#x/m'\ntarget()\n",
    }
    assert uses(files, "a/use.js") == {"target": ["inner/m.js"]}


def test_manifests_that_are_broken_or_go_in_circles_do_no_harm() -> None:
    files = {
        "tsconfig.json": '{"extends": "./tsconfig.json", "compilerOptions": []}',
        "package.json": '{"name": "a", "main": ".", "exports": {".": {"x": "."}}, "imports": 3}',
        "b/package.json": "[" * 100_000,
        "b/tsconfig.json": '"' + '\\"' * (MAX_MANIFEST_BYTES // 2 - 1),
        "b/jsconfig.json": '{"compilerOptions": {"paths": {"*": 1}, "baseUrl": 2}}',
        "b/use.ts": "import {target} from 'a'\nimport '#m'\nimport './m'\ntarget()\n",
        "b/m.ts": TARGET,
    }
    assert Sorted(files).weights_of("b/use.ts") == {"b/m.ts": 1.0}


def test_a_name_is_followed_through_barrels_aliases_and_defaults() -> None:
    files = {
        "impl.ts": "export function work() {}\nexport default class Box { open() {} }\n",
        "barrel.ts": "export * from './impl'\nexport {default as Crate} from './impl'\n"
        "export * as all from './impl'\n",
        "node.js": "const impl = require('./impl')\nmodule.exports = {impl, run: impl.work}\n",
        "use.ts": "import {work as w, Crate, all} from './barrel'\nw(); new Crate().open(); all.work()\n",
        "use.js": "const {impl} = require('./node')\nimpl.work()\n",
    }
    assert uses(files, "use.ts") == {
        "w": ["impl.ts"],
        "Crate": ["impl.ts"],
        "all.work": ["impl.ts"],
        ".open": ["impl.ts"],
    }
    assert uses(files, "use.js") == {"impl.work": ["impl.ts"]}
    assert Sorted(files).order[0] == "impl.ts"


def test_scripts_see_each_others_names_and_no_modules() -> None:
    files = {
        "lib.js": "function shared() {}\n",
        "module.js": "export function shared() {}\nfunction secret() {}\n",
        "page.js": "shared()\nsecret()\n",
        "types.d.ts": "declare const flag: boolean\n",
        "use.ts": "import './x'\nif (flag) {}\n",
    }
    assert uses(files, "page.js") == {"shared": ["lib.js"]}
    assert uses(files, "use.ts") == {"flag": ["types.d.ts"]}


def test_a_declaration_file_beside_a_script_is_a_small_dependency() -> None:
    files = {"m.js": TARGET, "m.d.ts": "", "use.js": "import './m.js'\n"}
    assert Sorted(files).weights_of("use.js") == {"m.js": 1.0, "m.d.ts": WEAK}
