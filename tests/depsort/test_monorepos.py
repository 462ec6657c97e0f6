"""Several packages of one name in a repository: the importer means the nearest, a test fixture last."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.depsort.fixtures import NearestFolder, remoteness
from tests.depsort.repositories import pairs


class Packages(NamedTuple):
    """A package `core` with one file, in some folder, and a file that uses it."""

    manifest: dict[str, str]  # file beside the package: text
    core: tuple[str, str]  # file of the package below its folder, text
    importer: tuple[str, str]


_PACKAGES = {
    "python": Packages(
        {}, ("core/__init__.py", "def area(): pass\n"), ("main.py", "from core import area\narea()\n")
    ),
    "javascript": Packages(
        {"package.json": '{"name": "@acme/core"}'},
        ("index.js", "export const area = 1;\n"),
        ("src/main.js", 'import { area } from "@acme/core";\narea();\n'),
    ),
    "rust": Packages(
        {"Cargo.toml": '[package]\nname = "acme-core"\n'},
        ("src/lib.rs", "pub fn area() {}\n"),
        ("src/main.rs", "use acme_core::area;\nfn main() { area(); }\n"),
    ),
    "go": Packages(
        {"go.mod": "module acme.org/core\n"},
        ("core.go", "package core\nfunc Area() int { return 1 }\n"),
        ("main.go", 'package main\nimport "acme.org/core"\nfunc main() { core.Area() }\n'),
    ),
    "java": Packages(
        {},
        ("src/acme/core/Core.java", "package acme.core;\npublic class Core { }\n"),
        ("src/acme/App.java", "package acme;\nimport acme.core.Core;\nclass App { Core core; }\n"),
    ),
    "kotlin": Packages(
        {},
        ("src/Core.kt", "package acme.core\nclass Core\n"),
        ("src/App.kt", "package acme\nimport acme.core.Core\nclass App(val core: Core)\n"),
    ),
    "csharp": Packages(
        {},
        ("Core.cs", "namespace Acme.Core; public class Shape { }\n"),
        ("App.cs", "using Acme.Core;\nnamespace Acme.App; class App { Shape shape; }\n"),
    ),
    "php": Packages(
        {},
        ("Core.php", "<?php\nnamespace Acme\\Core;\nclass Shape {}\n"),
        ("App.php", "<?php\nnamespace Acme\\App;\nuse Acme\\Core\\Shape;\nnew Shape();\n"),
    ),
    "php included": Packages(
        {},
        ("core/shape.php", "<?php\nfunction area() {}\n"),
        ("app.php", "<?php\nrequire 'core/shape.php';\n"),
    ),
    "ruby": Packages(
        {}, ("lib/core/shape.rb", "module CoreShape\nend\n"), ("lib/app.rb", 'require "core/shape"\n')
    ),
    "c": Packages(
        {},
        ("include/core/shape.h", "#define AREA 1\n"),
        ("src/app.c", '#include "core/shape.h"\nint x = AREA;\n'),
    ),
}
# Folders of the importer, of the package that it means, and of others with its name.
_FOLDERS = [
    ("shop/apps/web", "shop/packages/core", ["shop/apps/web/fixtures/core"]),
    ("shop/apps/web", "shop/packages/core", ["__fixtures__/core", "zoo/testdata/core"]),
    ("shop/apps/web", "shop/packages/core", ["bank/packages/core", "tools/core"]),
    ("shop/apps/web", "shop/packages/core", ["a/packages/core", "shop/tests/fixtures/core", "z/core"]),
    ("a/tests/fixtures/shop/web", "a/tests/fixtures/shop/core", ["packages/core", "b/tests/fixtures/core"]),
]


@pytest.mark.parametrize("language", _PACKAGES)
@pytest.mark.parametrize("importer, meant, others", _FOLDERS)
def test_an_import_means_the_nearest_package_of_its_name(
    language: str, importer: str, meant: str, others: list[str]
) -> None:
    packages = _PACKAGES[language]
    folders = [meant, *others]
    texts = {f"{folder}/{name}": text for folder in folders for name, text in packages.manifest.items()}
    texts |= {f"{folder}/{packages.core[0]}": packages.core[1] for folder in folders}
    texts[f"{importer}/{packages.importer[0]}"] = packages.importer[1]
    assert pairs(texts) == {(f"{importer}/{packages.importer[0]}", f"{meant}/{packages.core[0]}")}


@pytest.mark.parametrize("language", sorted(_PACKAGES.keys() - {"php included", "python"}))
def test_a_fixture_is_meant_where_nothing_else_has_the_name(language: str) -> None:
    packages = _PACKAGES[language]
    texts = {f"tests/fixtures/core/{name}": text for name, text in packages.manifest.items()}
    texts[f"tests/fixtures/core/{packages.core[0]}"] = packages.core[1]
    texts[f"tests/{packages.importer[0]}"] = packages.importer[1]
    assert pairs(texts) == {(f"tests/{packages.importer[0]}", f"tests/fixtures/core/{packages.core[0]}")}


def test_a_package_linked_by_a_manifest_is_meant_before_a_nearer_one() -> None:
    core = {"package.json": '{"name": "core"}', "index.js": "export const zero = 0;\n"}
    texts = {
        f"{folder}/{name}": text for folder in ("apps/core", "forks/core") for name, text in core.items()
    }
    texts["apps/web/package.json"] = '{"name": "web", "dependencies": {"core": "file:../../forks/core"}}'
    texts["apps/web/src/a.js"] = 'import { zero } from "core";\n'
    assert pairs(texts) == {("apps/web/src/a.js", "forks/core/index.js")}


def test_a_fixture_with_a_manifest_alone_takes_no_import() -> None:
    texts = {
        "__fixtures__/core/package.json": '{"name": "core"}',
        "packages/core/package.json": '{"name": "core", "exports": {"./shape": "./dist/shape.js"}}',
        "packages/core/src/shape.ts": "export const shape = 1;\n",
        "apps/web/a.ts": 'import { shape } from "core/shape";\n',
    }
    assert pairs(texts) == {("apps/web/a.ts", "packages/core/src/shape.ts")}


@pytest.mark.parametrize(
    "dependency, workspace",
    [
        ('base = { package = "acme-core", path = "../../forks/core" }', ""),
        ('acme-core = { path = "../../forks/core" }', ""),
        ("acme-core.workspace = true", 'dependencies = { acme-core = { path = "forks/core" } }'),
    ],
)
def test_a_crate_is_found_by_the_path_of_its_dependency(dependency: str, workspace: str) -> None:
    name = "base" if dependency.startswith("base") else "acme_core"
    crate = '[package]\nname = "acme-core"\n'
    texts = {
        "Cargo.toml": f'[workspace]\nmembers = ["crates/*", "forks/*"]\n{workspace}\n',
        "crates/app/Cargo.toml": f'[package]\nname = "app"\n[dependencies]\n{dependency}\n',
        "crates/app/src/main.rs": f"use {name}::zeta;\nfn main() {{ zeta(); }}\n",
        "crates/core/Cargo.toml": crate,
        "crates/core/src/lib.rs": "pub fn zeta() {}\n",
        "forks/core/Cargo.toml": crate,
        "forks/core/src/lib.rs": "pub fn zeta() {}\n",
    }
    assert pairs(texts) == {("crates/app/src/main.rs", "forks/core/src/lib.rs")}


def test_a_crate_inherits_from_the_workspace_around_it() -> None:
    app = "use base::zeta;\nfn main() { zeta(); }\n"
    texts: dict[str, str] = {}
    for product in ("one", "two"):
        texts |= {
            f"{product}/Cargo.toml": '[workspace]\nmembers = ["*"]\n'
            f'[workspace.dependencies]\nbase = {{ package = "{product}-core" }}\n',
            f"{product}/app/Cargo.toml": '[package]\nname = "app"\n[dependencies]\nbase.workspace = true\n',
            f"{product}/app/src/main.rs": app,
            f"{product}/core/Cargo.toml": f'[package]\nname = "{product}-core"\n',
            f"{product}/core/src/lib.rs": "pub fn zeta() {}\n",
        }
    assert pairs(texts) == {(f"{it}/app/src/main.rs", f"{it}/core/src/lib.rs") for it in ("one", "two")}


@pytest.mark.parametrize(
    "importer, folders",
    [
        ("a/b", ["a/b/c", "a/c", "c", "a/b/fixtures/c"]),
        ("a/fixtures/x", ["a/fixtures/y", "a/y", "y", "b/fixtures/x"]),
        ("", ["c", "testdata"]),
    ],
)
def test_folders_are_ranked_by_nearness_and_fixtures_last(importer: str, folders: list[str]) -> None:
    assert sorted(sorted(folders), key=lambda folder: remoteness(folder, importer)) == folders


_PATHS = st.lists(st.sampled_from(["a", "b", "fixtures"]), max_size=4).map("/".join)


@given(folders=st.lists(_PATHS, max_size=8), importer=_PATHS)
def test_the_nearest_folder_is_the_least_remote_one(folders: list[str], importer: str) -> None:
    nearest = NearestFolder(folders).seen_from(importer)
    assert nearest == min(folders, key=lambda folder: remoteness(folder, importer), default=None)
