"""The yardsticks of bench depsort: true dependencies, the orders compared with ours, the timed order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console

from bench.depsort import measure as bench
from bench.depsort.baselines import by_folders, by_regex
from bench.depsort.compilers import php, ruby, rust
from bench.depsort.compilers.python import edges
from bench.depsort.order import order, read
from bench.depsort.sources import SOURCES, Source
from bench.depsort.tools import ToolMissing
from bench.depsort.truth import TruthFailed, truth
from bench.harness import Report
from spark_udfs.depsort.registry import languages


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


PYTHON = {
    "app/__init__.py": "from .core import run as start\nfrom .shapes import *\n",
    "app/core.py": "from . import util\ndef run(): return util.helper()\n",
    "app/shapes.py": "class Square: pass\n",
    "app/util.py": "def helper(): pass\n",
    "broken.py": "def (\n",
    "local.py": "def f():\n    from app.util import helper\n    return helper()\n",
    "main.py": "import app\nfrom app import start, Square\napp.start(Square)\n",
}


def test_the_truth_of_python_follows_re_exports_to_the_definition(tmp_path: Path) -> None:
    assert edges(written(tmp_path, PYTHON)) == {
        ("app/__init__.py", "app/core.py"),
        ("app/__init__.py", "app/shapes.py"),
        ("app/core.py", "app/__init__.py"),
        ("app/core.py", "app/util.py"),
        ("local.py", "app/util.py"),
        ("main.py", "app/__init__.py"),
        ("main.py", "app/core.py"),
        ("main.py", "app/shapes.py"),
    }


def test_folder_order_keeps_folders_together_and_follows_edges() -> None:
    paths = ["a/one.py", "a/two.py", "b/one.py", "b/two.py"]
    edges = {
        ("a/one.py", "a/two.py"),
        ("a/two.py", "b/one.py"),
        ("b/one.py", "b/two.py"),
        ("b/two.py", "a/one.py"),
        ("a/one.py", "b/two.py"),
    }
    assert by_folders(paths, edges) == ["b/two.py", "b/one.py", "a/two.py", "a/one.py"]


def test_our_order_and_edges_are_those_of_the_tables(tmp_path: Path) -> None:
    found = order(read(written(tmp_path, PYTHON | {"notes.txt": "no code"})))
    assert found["n_files"] == len(PYTHON)
    assert sorted(found["order"]) == sorted(PYTHON)
    assert found["order"].index("app/util.py") < found["order"].index("app/core.py")
    around = ("app/core.py", "app/__init__.py")  # its own package, which imports it: no edge, it made a cycle
    assert edges(tmp_path) - set(found["edges"]) == {around}


@pytest.mark.parametrize(
    "language, files",
    [
        ("python", {"a.py": "from p.m import x\n", "p/m.py": "from . import n\n", "p/n.py": ""}),
        ("typescript", {"a.ts": "import x from './m'\n", "m/index.ts": "export * from '../n'\n", "n.ts": ""}),
        ("javascript", {"a.js": "const x = require('./m')\n", "m.js": "import('./n.js')\n", "n.js": ""}),
        ("java", {"A.java": "import p.M;\n", "p/M.java": "import static p.N.x;\n", "p/N.java": ""}),
        ("go", {"a.go": 'import "x.org/y/m"\n', "m/m.go": 'import (\n\tn "x.org/y/n"\n)\n', "n/n.go": ""}),
        (
            "rust",
            {
                "src/lib.rs": "mod a;\npub(crate) mod b;\n",
                "src/a.rs": "use crate::b::{self, Two};\nuse super::c::d;\n",
                "src/b/mod.rs": "pub mod e;\n",
                "src/b/e.rs": "use self::f;\nuse crate::c;\n",
                "src/c.rs": "",
            },
        ),
        ("kotlin", {"A.kt": "import p.M\n", "p/M.kt": "import p.N.x as y\n", "p/N.kt": ""}),
        ("csharp", {"A.cs": "using Acme.M;\n", "M/B.cs": "using N = Acme.M.P;\n", "M/P/C.cs": ""}),
        ("php", {"A.php": "use Acme\\M\\B;\n", "M/B.php": "use function Acme\\C;\n", "C.php": ""}),
        ("ruby", {"a.rb": "require 'm/b'\n", "m/b.rb": "require_relative '../c'\n", "c.rb": ""}),
        ("c", {"a.c": '#include "m.h"\n', "m.h": "# include <sys/n.h>\n", "sys/n.h": ""}),
    ],
)
def test_regular_expressions_find_plain_imports(language: str, files: dict[str, str]) -> None:
    assert by_regex(language, files) == list(files)[::-1]


RUST = {
    "Cargo.toml": '[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n',
    "src/lib.rs": "mod shape;\nmod size;\npub use shape::Square;\n",
    "src/shape.rs": "use crate::size::{self, Size};\npub struct Square(pub Size);\n"
    "impl Square { pub fn area(&self) -> u32 { size::one() * self.0.area() } }\n",
    "src/size.rs": "pub struct Size(u32);\nimpl Size { pub fn area(&self) -> u32 { self.0 } }\n"
    "pub fn one() -> u32 { 1 }\n",
}


def test_the_truth_of_rust_goes_to_the_file_that_defines_a_name(tmp_path: Path) -> None:
    assert rust.edges(written(tmp_path, RUST)) == {
        ("src/lib.rs", "src/shape.rs"),
        ("src/lib.rs", "src/size.rs"),
        ("src/shape.rs", "src/size.rs"),
    }


def test_a_truth_that_is_not_found_is_a_sentence_with_what_its_program_said(tmp_path: Path) -> None:
    broken = written(tmp_path / "own", {"Cargo.toml": "[package]\n"})
    source = Source("rust", "tiny", "cargo", "tiny=0.1.0")
    with pytest.raises(TruthFailed, match=r"No true dependencies of tiny: `cargo` ended with 101"):
        truth(source, broken, Console(quiet=True))


PHP = {
    "src/Box.php": "<?php namespace Acme; use Acme\\Size\\Unit as U; use function Acme\\Size\\one;\n"
    "class Box extends Shape { use Named; function f(): U { $this->area(one(), self::SIDES); } }\n",
    "src/Named.php": "<?php namespace Acme; trait Named { }\n",
    "src/Shape.php": "<?php namespace Acme; abstract class Shape implements Sides { function area() {} }\n",
    "src/Sides.php": "<?php namespace Acme; interface Sides { const SIDES = 4; }\n",
    "src/Unit.php": "<?php namespace Acme\\Size; class Unit {} function one() { return 1; }\n",
}


def test_the_truth_of_php_completes_names_and_finds_members_among_ancestors(tmp_path: Path) -> None:
    assert php.edges(written(tmp_path, PHP)) == {
        ("src/Box.php", "src/Named.php"),
        ("src/Box.php", "src/Shape.php"),
        ("src/Box.php", "src/Sides.php"),
        ("src/Box.php", "src/Unit.php"),
        ("src/Shape.php", "src/Sides.php"),
    }


RUBY = {
    "lib/acme.rb": "require 'acme/one/base'\nrequire_relative 'acme/two/base'\nrequire 'acme/two/leaf'\n",
    "lib/acme/one/base.rb": "module Acme\n  module One\n    class Base\n    end\n  end\nend\n",
    "lib/acme/two/base.rb": "module Acme\n module Two\n  class Base\n   def help; end\n  end\nend end\n",
    "lib/acme/two/leaf.rb": "module Acme\nmodule Two\nclass Leaf < Base\n   def run = help\n  end end end\n",
}


def test_the_truth_of_ruby_means_what_the_classes_around_a_constant_hold(tmp_path: Path) -> None:
    folder = written(tmp_path / "library", RUBY)
    assert ruby.edges_with(folder, ()) == {
        ("lib/acme.rb", "lib/acme/one/base.rb"),
        ("lib/acme.rb", "lib/acme/two/base.rb"),
        ("lib/acme.rb", "lib/acme/two/leaf.rb"),
        ("lib/acme/two/leaf.rb", "lib/acme/two/base.rb"),
    }


def test_a_missing_program_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match=r"`php` is missing on this machine.*`apt-get install php-cli`"):
        php.edges(tmp_path)
    source = Source("go", "tiny", "go", "x.org/tiny@v1.0.0")
    with pytest.raises(ToolMissing, match=r"`go` is missing on this machine.*`apt-get install golang-go`"):
        truth(source, tmp_path / "own", Console(quiet=True))


def test_what_is_not_measured_stands_in_the_table_without_figures() -> None:
    report = Report([], "")
    bench._show(report, [], [source for source in SOURCES if source.name == "rubocop"])
    assert [list(column.cells) for column in report.tables[0].columns[:3]] == [
        ["rubocop"],
        ["ruby"],
        ["not measured"],
    ]


def test_every_language_is_measured() -> None:
    assert {source.language for source in SOURCES} == set(languages())
