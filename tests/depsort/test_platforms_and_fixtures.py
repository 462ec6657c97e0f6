"""Names with several definers, some of them impossible: other systems, builds and test fixtures."""

from __future__ import annotations

import pytest

from spark_udfs.depsort.fixtures import fixture_of
from spark_udfs.depsort.languages.go import modules as go_modules
from spark_udfs.depsort.platforms import exclude_each_other, systems_of
from tests.depsort.repositories import pairs


def test_go_files_that_are_never_built_together_see_nothing() -> None:
    texts = {
        "go.mod": "module m\n",
        "p/open_linux.go": "package p\nfunc open() int { return help() }\nfunc help() int { return 1 }\n",
        "p/open_windows.go": "package p\nfunc open() int { return only() }\nfunc only() int { return 2 }\n",
        "p/help_other.go": "//go:build !linux\n\npackage p\nfunc help() int { return 3 }\n",
        "p/use.go": "package p\nfunc Use() int { return open() + help() }\n",
        "p/use_unix.go": "//go:build unix\n\npackage p\nfunc Go() int { return open() + only() }\n",
        "p/gen.go": "//go:build ignore\n\npackage p\nfunc gen() int { return open() }\n",
        "q/q_windows.go": 'package q\nimport "m/p"\nfunc F() int { return p.Use() + p.Go() }\n',
    }
    assert pairs(texts) == {
        ("p/use.go", "p/open_linux.go"),
        ("p/use.go", "p/open_windows.go"),
        ("p/use.go", "p/help_other.go"),
        ("p/use_unix.go", "p/open_linux.go"),
        ("q/q_windows.go", "p/use.go"),
    }


def test_more_variants_than_a_name_may_have_are_few_for_one_system() -> None:
    systems = ("aix", "darwin", "dragonfly", "freebsd", "linux", "netbsd", "openbsd", "solaris", "windows")
    texts = {f"p/z_{system}.go": "package p\nconst Size = 1\n" for system in systems}
    assert pairs({**texts, "p/a_linux.go": "package p\nvar a = Size\n"}) == {("p/a_linux.go", "p/z_linux.go")}


def test_the_number_of_pairs_of_conditions_tried_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "p/a_linux.go": "package p\nvar a = Size\n",
        "p/b_windows.go": "package p\nconst Size = 1\n",
        "p/c_aix.go": "package p\nvar c = Size\n",
    }
    assert not pairs(texts)
    monkeypatch.setattr(go_modules, "MAX_PAIRS", 1)
    assert pairs(texts) == {("p/c_aix.go", "p/b_windows.go")}


def test_a_c_file_of_one_system_does_not_depend_on_another_system_s() -> None:
    texts = {
        "include/io.h": "int io_open(void);\nint io_close(void);\n",
        "src/unix/open.c": '#include "io.h"\nint io_open(void) { return 1; }\n',
        "src/unix/use.c": '#include "io.h"\nint f(void) { return io_open() + io_close(); }\n',
        "src/win32/open.c": '#include "io.h"\nint io_open(void) { return 2; }\n'
        "int io_close(void) { return 0; }\n",
        "src/main.c": '#include "io.h"\nint main(void) { return io_open(); }\n',
    }
    found = {edge for edge in pairs(texts) if edge[1] != "include/io.h"}
    assert found == {
        ("src/unix/use.c", "src/unix/open.c"),
        ("src/main.c", "src/unix/open.c"),
        ("src/main.c", "src/win32/open.c"),
    }


def test_a_program_of_rust_by_itself_is_seen_by_no_other() -> None:
    texts = {
        "Cargo.toml": '[package]\nname = "k"\n',
        "src/lib.rs": "mod sys;\npub fn run() {}\n",
        "src/sys/mod.rs": "#[cfg(windows)]\nmod windows;\n#[cfg(unix)]\nmod unix;\n",
        "src/sys/windows.rs": "pub struct Handle;\npub struct Overlapped;\n",
        "src/sys/unix.rs": "pub struct Fd(Overlapped);\n",
        "tests/one.rs": "struct Setup;\nfn a() { k::run(); }\n",
        "tests/two.rs": "fn b(_: Setup) {}\n",
    }
    found = pairs(texts)
    assert not found & {("src/sys/unix.rs", "src/sys/windows.rs"), ("tests/two.rs", "tests/one.rs")}
    assert ("tests/one.rs", "src/lib.rs") in found


def test_scripts_that_are_fixtures_see_no_other_script() -> None:
    texts = {
        "tests/fixtures/a.js": "var foo = 1;\n",
        "tests/fixtures/b.js": "foo();\nbar();\n",
        "tests/fixtures/c/d.js": "require('./e'); foo();\n",
        "tests/fixtures/c/e.js": "",
        "docs/bar.js": "var bar = 2;\n",
        "docs/use.js": "bar(); foo();\n",
        "one/define.js": "function setup() {}\n",
        "one/use.js": "setup();\n",
        "two/define.js": "function setup() {}\n",
        "two/use.js": "setup();\n",
    }
    assert pairs(texts) == {
        ("tests/fixtures/c/d.js", "tests/fixtures/c/e.js"),
        ("docs/use.js", "docs/bar.js"),
        ("one/use.js", "one/define.js"),
        ("two/use.js", "two/define.js"),
    }


@pytest.mark.parametrize(
    "suffix, defines, uses",
    [
        ("rb", "class Thing\n  def go; end\nend\n", "Thing.new\n"),
        ("cs", "namespace N; public class Thing { }\n", "namespace N; public class User { Thing t; }\n"),
        ("php", "<?php\nnamespace N;\nclass Thing {}\n", "<?php\nnamespace N;\nnew Thing();\n"),
        ("java", "package n;\nclass Thing {}\n", "package n;\nclass User { Thing t; }\n"),
    ],
)
def test_a_name_is_not_found_in_another_fixture(suffix: str, defines: str, uses: str) -> None:
    inside = {f"test/fixtures/a/x.{suffix}": defines, f"test/fixtures/a/y.{suffix}": uses}
    assert pairs(inside) == {(f"test/fixtures/a/y.{suffix}", f"test/fixtures/a/x.{suffix}")}
    assert not pairs({f"test/fixtures/a/x.{suffix}": defines, f"test/fixtures/b/y.{suffix}": uses})


@pytest.mark.parametrize(
    "path, expected",
    [
        ("src/a.c", None),
        ("fixtures.c", None),
        ("test/fixtures/a.c", "test/fixtures"),
        ("test/__fixtures__/x/y/a.js", "test/__fixtures__/x"),
        ("pkg/testdata/src/a/a.go", "pkg/testdata/src"),
    ],
)
def test_a_fixture_is_the_folder_below_the_fixtures(path: str, expected: str | None) -> None:
    assert fixture_of(path) == expected


@pytest.mark.parametrize(
    "one, other, apart",
    [
        ("src/unix/a.c", "src/win32/a.c", True),
        ("src/unix/linux-core.c", "src/unix/darwin.c", True),
        ("src/unix/core.c", "src/unix/linux.c", False),
        ("src/a_windows.rs", "src/a_unix.rs", True),
        ("src/posix.c", "src/win32/a.c", False),
        ("src/window.c", "src/unix/a.c", False),
        ("src/win/unix.c", "src/unix/a.c", False),  # which of the two it is nobody can say
    ],
)
def test_a_path_says_the_system_a_file_is_for(one: str, other: str, apart: bool) -> None:
    assert exclude_each_other(systems_of(one), systems_of(other)) is apart
