"""A language is one folder and one line; other workers know none."""

from __future__ import annotations

import re
from importlib import resources

import pytest
import tree_sitter_python

from spark_udfs.depsort.languages.data import read_builtins, read_names
from spark_udfs.depsort.languages.tree_sitter_language import TreeSitterLanguage
from spark_udfs.depsort.registry import language_of, languages, manifest_names
from spark_udfs.depsort.scopes import ScopedNames
from spark_udfs.depsort.syntax import Syntax
from tests.product_code import ROOT, files_naming

LANGUAGES = ROOT / "spark_udfs/depsort/languages"
# Names that no file uses for another reason, as many do "go", "c", "java" and "python".
TELLING = re.compile("kotlin|csharp|c-sharp|typescript|\\bphp\\b|\\bruby\\b", re.IGNORECASE)
FILES_TO_TOUCH = {  # outside the language's own folder, as CONTRIBUTING counts them
    "spark_udfs/depsort/registry.py",
    "spark_udfs/ingest/file_types.py",
    "pyproject.toml",
    "constraints.txt",
}


@pytest.mark.invariant(
    "A language is one folder and one line in the registry; four files outside the folder name it."
)
def test_only_the_counted_files_name_a_language() -> None:
    naming = files_naming(TELLING, ("pyproject.toml", "constraints.txt"))
    folder = f"{LANGUAGES.relative_to(ROOT).as_posix()}/"
    assert {file for file in naming if not file.startswith(folder)} == FILES_TO_TOUCH


def test_only_c_and_cpp_import_each_other() -> None:
    imported = re.compile(r"spark_udfs\.depsort\.languages\.(\w+)\.")
    crossing = {
        (path.parent.name, other)
        for path in LANGUAGES.glob("*/*.py")
        for other in imported.findall(path.read_text("utf-8"))
        if other != path.parent.name
    }
    assert crossing == {("c", "cpp"), ("cpp", "c")}  # a header of C may be one of C++; both include text


def test_every_folder_is_registered_and_holds_its_data() -> None:
    packages = {type(language).__module__.rpartition(".")[0] for language in languages().values()}
    folders = {path.parent.name for path in LANGUAGES.glob("*/__init__.py")}
    assert {package.rpartition(".")[2] for package in packages} == folders
    for package in packages:
        assert any(file.name.endswith(".scm") for file in resources.files(package).iterdir())
        assert read_names(package, "builtins.txt")


def test_no_two_languages_claim_a_suffix() -> None:
    suffixes = [suffix for language in languages().values() for suffix in language.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert all(language_of(None, f"a{suffix}") for suffix in suffixes)


@pytest.mark.parametrize(
    "language, path, expected",
    [
        (None, "a/B.KT", "kotlin"),
        ("Python", "a.txt", "python"),
        ("text", "a.py", None),
        (None, "go.mod", None),
    ],
)
def test_the_column_decides_before_the_suffix(language: str | None, path: str, expected: str | None) -> None:
    assert language_of(language, path) == expected
    assert {"go.mod", "Cargo.toml", "package.json"} <= manifest_names()


def test_a_list_has_plain_names_members_and_comments() -> None:
    names, members = read_builtins("spark_udfs.depsort.languages.rust")
    assert {"Vec", "println"} <= names
    assert {"unwrap", "iter"} <= members
    assert not any(name[0] in "#." for name in names | members)


def test_captures_come_in_the_order_of_the_query_with_or_without_nodes() -> None:
    query = "; of @none\n(call) @second\n[(list) (set)] @first\n(dictionary) @second (identifier) @last"
    assert list(Syntax(tree_sitter_python.language(), query).captures(b"f(x)") or ()) == [
        *("second", "first", "last")
    ]


def test_plain_names_are_the_last_capture_of_languages_read_in_one_pass() -> None:
    found = [language for language in languages().values() if isinstance(language, TreeSitterLanguage)]
    one_pass = [it for it in found if issubclass(it.file, ScopedNames)]
    assert {it.name for it in one_pass} == {"go", "java", "kotlin", "csharp"}
    for language in one_pass:
        assert Syntax(type(language).grammar(), language.query).capture_names[-1] == "name"
