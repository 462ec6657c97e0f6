"""Files that git ignores, as patterns: `git check-ignore` is the oracle where git is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from factory.ingest import git_ignored
from factory.ingest.git_ignored import GitIgnores, ignored_patterns
from spark_udfs.ingest.place import LocalFiles
from tests.orchestration.datasets.test_guess import fill

FILES = (
    *("src/a.js", "src/a.gen.js", "b.gen.js", "build/c.js", "src/build/d.js", "packages/x/out/e.js"),
    *("packages/y/out/f.js", "keep/g.gen.js", "secret.js", "deep/secret.js", "logs/h.js", "logs/keep.js"),
    *("[odd].js", "a b.js", "sub/only.js", "sub/deep/only.js", "x/logs/i.js"),
    *("kept/a.js", "kept/b.js", "kept/deep/a.js", "kept/deep/c.js", "names/a.js", "names/deep/a.js"),
    *("tail ", "head", "note"),
)
IGNORES = {
    ".gitignore": "# comment\n\n!\nbuild/\n*.gen.js\n/secret.js\nlogs/*\n!logs/keep.js\n\\[odd\\].js\n"
    "tail\\ \nhead  \nnote/  \n",
    "keep/.gitignore": "!*.gen.js\n",
    "packages/x/.gitignore": "out\n",
    "sub/.gitignore": "/only.js\n",
    "kept/.gitignore": "*\n!*/\n!a.js\n",
    "names/.gitignore": "a.js\n!deep/\ndeep.js/\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    fill(tmp_path, *FILES)
    for name, text in IGNORES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


IGNORED = {
    *("src/a.gen.js", "b.gen.js", "build/c.js", "src/build/d.js", "packages/x/out/e.js", "secret.js"),
    *("logs/h.js", "[odd].js", "sub/only.js", "kept/b.js", "kept/deep/c.js", "names/a.js", "names/deep/a.js"),
    *("tail ", "head"),
}


def test_the_innermost_file_decides_and_an_ignored_folder_takes_nothing_back(checkout: Path) -> None:
    ignores = GitIgnores(LocalFiles.at(checkout))
    assert {name for name in FILES if ignores.ignored_place(name.encode())} == IGNORED
    assert ignores.ignored_place(b"src/build/d.js") == b"src/build/"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the oracle")
def test_git_ignores_the_same_files(checkout: Path) -> None:
    subprocess.run(["git", "init", "-q", checkout], check=True)
    asked = subprocess.run(
        ["git", "-C", checkout, "check-ignore", "-z", "--stdin"],
        input="\0".join(FILES).encode(),
        capture_output=True,
        check=True,
    )
    assert {os.fsdecode(name) for name in asked.stdout.split(b"\0") if name} == IGNORED


def test_patterns_are_general_where_they_match_no_other_file(checkout: Path) -> None:
    assert ignored_patterns(LocalFiles.at(checkout), [name.encode() for name in FILES]) == [
        "**/[odd].js",
        "**/b.gen.js",
        "**/build/**",
        "**/head",
        "**/b.js",
        "**/c.js",
        "**/h.js",
        "names/a.js",
        "names/deep/a.js",
        "packages/x/out/**",
        "secret.js",
        "**/a.gen.js",
        "sub/only.js",
        "**/tail ",
    ]
    assert ignored_patterns(LocalFiles.at(checkout / "packages" / "y"), [b"out/f.js"]) == []


@pytest.mark.parametrize(
    "lines, names, expected",
    [
        ("/gen_?.py", ["gen_1.py", "b/gen_3.py"], ["gen_?.py"]),
        ("src/gen_*.py", ["src/gen_1.py", "src/gen_2.py", "src/a.py"], ["src/gen_*.py"]),
        ("a/**/z/*.py", ["a/z/1.py", "a/b/c/z/2.py", "z/3.py"], ["a/**/z/*.py"]),
        ("gen_[0-9]*.py", ["gen_1.py", "gen_22.py", "d.py"], ["**/gen_?*.py"]),
        ("gen_[0-9]*.py", ["gen_1.py", "gen_22.py", "gen_x.py"], ["**/gen_1.py", "**/gen_22.py"]),
        ("a\\?.py", ["a?.py", "ab.py"], []),
        ("x", ["x/a.py", "b/x", "c.py"], ["**/x", "**/x/**"]),
        ("x/**", ["x/a.py", "x/b/c.py", "c.py"], ["x/**"]),
        ("*\n!*/\n!keep.py", ["keep.py", "a.py", "s/keep.py", "s/b.py"], ["**/a.py", "**/b.py"]),
    ],
)
def test_a_line_with_places_or_classes_is_the_pattern_where_it_matches_no_other_file(
    tmp_path: Path, lines: str, names: list[str], expected: list[str]
) -> None:
    (tmp_path / ".gitignore").write_text(f"{lines}\n")
    assert ignored_patterns(LocalFiles.at(tmp_path), [name.encode() for name in names]) == expected


def test_a_gitignore_ends_at_a_repository_below(tmp_path: Path) -> None:
    fill(tmp_path, "one/.git/HEAD", "one/a.js", "two/b.js")
    (tmp_path / ".gitignore").write_text("*.js\n")
    assert ignored_patterns(LocalFiles.at(tmp_path), [b"one/a.js", b"two/b.js"]) == ["**/b.js"]


def test_plain_names_are_compiled_only_for_their_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled_lines: list[str] = []
    pattern_of = git_ignored._pattern_of

    def record(line: str) -> object:
        compiled_lines.append(line)
        return pattern_of(line)

    monkeypatch.setattr(git_ignored, "_pattern_of", record)
    names = "".join(f"made_{n}.js\n" for n in range(1_000))
    (tmp_path / ".gitignore").write_text(f"*.tmp\n{names}*.tmp\n")
    assert ignored_patterns(LocalFiles.at(tmp_path), [b"made_7.js", b"a.js"]) == ["**/made_7.js"]
    assert compiled_lines == ["*.tmp", "made_7.js"]


def test_a_line_with_a_wildcard_is_the_pattern_where_it_matches_no_other_file(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("# made\ngen_*.py\ntmp?/\n*_x.py\n!keep_x.py\n")
    ignored = [b"a/gen_1.py", b"gen_2.py", b"tmp1/a.py", b"b/tmp2/c.py", b"c_x.py"]
    assert ignored_patterns(LocalFiles.at(tmp_path), [*ignored, b"own.py", b"keep_x.py"]) == [
        "**/gen_*.py",
        "**/tmp?/**",
        "**/c_x.py",
    ]


def test_a_path_that_no_pattern_matches_alone_has_none(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("a\\*.py\n")
    names = [b"a*.py", b"ab.py"]
    assert GitIgnores(LocalFiles.at(tmp_path)).ignored_place(b"a*.py")
    assert ignored_patterns(LocalFiles.at(tmp_path), names) == []


def test_files_of_one_ending_are_one_pattern(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.gen.js\n")
    assert ignored_patterns(LocalFiles.at(tmp_path), [b"a.gen.js", b"b/c.gen.js", b"d.js"]) == ["**/*.gen.js"]
