"""The installation is listed as repositories, chosen by name, without our own and ownerless files."""

from __future__ import annotations

import sysconfig
from importlib.metadata import Distribution, PathDistribution, distributions
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.ingest.installation import (
    code_work,
    installed,
    is_code,
    license_of,
    normalized,
    position,
    prose_format,
    prose_work,
    repositories,
    repository_of,
    standard_library,
)
from factory.settings import Settings


def distribution(
    folder: Path, name: str, metadata: str = "", files: tuple[str, ...] = (), **more: str
) -> Distribution:
    """An installed distribution below `folder` with the given headers and file list."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n{metadata}\nAbout {name}.\n")
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    for file, content in more.items():
        (info / file).write_text(content)
    return PathDistribution(info)


def test_published_positions_never_change() -> None:
    assert round(position("cpython"), 6) == 0.054948
    assert position("cpython") != position("numpy")


def test_the_standard_library_is_in_at_a_share_of_a_tenth() -> None:
    assert 0.02 < position("cpython") < 0.1


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_contains_a_smaller_one(one: float, other: float) -> None:
    names = ["cpython", *(f"package-{n}" for n in range(50))]
    smaller, larger = ({name for name in names if position(name) < share} for share in sorted([one, other]))
    assert smaller <= larger


def test_a_share_selects_about_that_part_of_all_names() -> None:
    inside = sum(position(f"package-{n}") < 0.3 for n in range(2000))
    assert 500 < inside < 700


def test_a_distribution_is_a_repository_with_its_metadata(tmp_path: Path) -> None:
    files = ("pkg/b.py", "pkg/a.py", "../../bin/tool", "/etc/x.py", "Foo_Bar-1.0.dist-info/METADATA")
    headers = "Summary: Does it\nHome-page: UNKNOWN\nLicense-Expression: MIT\n"
    headers += "Project-URL: Source Code, https://s\n"
    [found] = installed([distribution(tmp_path, "Foo_Bar", headers, files)])
    assert (found.name, found.root) == ("foo-bar", tmp_path)
    assert found.paths == ("Foo_Bar-1.0.dist-info/METADATA", "pkg/a.py", "pkg/b.py")
    assert (found.origin.source, found.origin.revision, found.origin.license) == ("foo-bar@1.0", "1.0", "MIT")
    assert found.origin.metadata == {
        "name": "foo-bar",
        "version": "1.0",
        "summary": "Does it",
        "url_source_code": "https://s",
    }


@pytest.mark.parametrize(
    "headers, license",
    [
        ("License-Expression: MIT OR Apache-2.0\nLicense: MIT\n", "MIT OR Apache-2.0"),
        ("License: BSD-3-Clause\nClassifier: License :: OSI Approved :: BSD License\n", "BSD-3-Clause"),
        ("License: UNKNOWN\nClassifier: License :: OSI Approved :: BSD License\n", "BSD License"),
        ("License: A long\n  text\nClassifier: License :: OSI Approved :: MIT License\n", "MIT License"),
        ("Classifier: License :: OSI Approved\nClassifier: License :: A\nClassifier: License :: B\n", "A; B"),
        ("", None),
    ],
)
def test_the_license_is_the_most_exact_statement(tmp_path: Path, headers: str, license: str | None) -> None:
    assert license_of(distribution(tmp_path, "x", headers).metadata) == license


def test_editable_distributions_and_second_copies_are_left_out(tmp_path: Path) -> None:
    editable, archive = '"dir_info": {"editable": true}', '"archive_info": {}'
    mine, from_file = (
        distribution(tmp_path, name, **{"direct_url.json": f'{{"url": "file:///x", {info}}}'})
        for name, info in (("mine", editable), ("wheel", archive))
    )
    first, second = distribution(tmp_path / "1", "A.b"), distribution(tmp_path / "2", "a_B")
    found = list(installed([mine, from_file, first, second]))
    assert [(it.name, it.root) for it in found] == [("a-b", tmp_path / "1"), ("wheel", tmp_path)]


def test_a_damaged_distribution_does_not_end_the_listing(tmp_path: Path) -> None:
    odd = distribution(tmp_path, "odd", **{"direct_url.json": "{"})
    torn = distribution(tmp_path, "torn")
    (tmp_path / "torn-1.0.dist-info" / "METADATA").write_bytes(b"Name: torn\xff\n")
    (tmp_path / "~left.dist-info").mkdir()
    found = installed([torn, PathDistribution(tmp_path / "~left.dist-info"), odd])
    assert [it.name for it in found] == ["odd"]


@pytest.mark.parametrize("name", ["Foo.Bar_x", "foo--bar-X", "foo_.bar__x"])
def test_names_are_normalized_by_the_specification(name: str) -> None:
    assert normalized(name) == "foo-bar-x"


@pytest.mark.parametrize(
    "path, format",
    [
        ("x-1.dist-info/METADATA", "description"),
        ("x.egg-info/PKG-INFO", "description"),
        ("pkg/_vendor/y-2.dist-info/METADATA", "description"),
        ("pkg/METADATA", None),
        ("pydoc_data/topics.py", "topics"),
        ("x-1.dist-info/licenses/LICENSE", "text"),
        ("x-1.dist-info/licenses/vendor/mit/LICENSE.txt", "text"),
        ("x-1.dist-info/licenses/MIT-text", "text"),
        ("x-1.dist-info/AUTHORS.md", "text"),
        ("x-1.dist-info/COPYING.LESSER", "text"),
        ("x-1.dist-info/RECORD", None),
        ("x-1.dist-info/entry_points.txt", None),
        ("x-1.dist-info/top_level.txt", None),
        ("pkg/LICENSE", "text"),
        ("pkg/license.py", None),
        ("pkg/LICENSE-x.html", None),
        ("pkg/README.md", "text"),
        ("pkg/docs/guide.rst", "text"),
        ("pkg/notes.TXT", "text"),
        ("pkg/tests/data/numbers.txt", None),
        ("pkg/tests/README.rst", None),
        ("pkg/module.py", None),
    ],
)
def test_prose_is_recognized_by_its_path(path: str, format: str | None) -> None:
    assert prose_format(path) == format


def test_code_and_prose_are_listed_from_the_same_repository(tmp_path: Path) -> None:
    files = ("pkg/a.py", "pkg/a.pyc", "pkg/README.md", "x-1.0.dist-info/METADATA", "x-1.0.dist-info/LICENSE")
    repository = repository_of(distribution(tmp_path, "x", files=files), "x")
    assert [(work.format, work.names) for work in code_work([repository])] == [("text", (b"pkg/a.py",))]
    assert [(work.format, work.names) for work in prose_work([repository])] == [
        ("description", (b"x-1.0.dist-info/METADATA",)),
        ("text", (b"pkg/README.md", b"x-1.0.dist-info/LICENSE")),
    ]


def test_the_standard_library_is_whole_and_nothing_else() -> None:
    library = standard_library()
    assert {"os.py", "asyncio/base_events.py", "pydoc_data/topics.py", "LICENSE.txt"} <= set(library.paths)
    assert not [path for path in library.paths if "site-packages" in path or "__pycache__" in path]
    expected = [
        path
        for path in Path(sysconfig.get_path("stdlib")).rglob("*.py")
        if not {"site-packages", "dist-packages", "__pycache__"} & set(path.parts[len(library.root.parts) :])
    ]
    assert sum(map(is_code, library.paths)) == len(expected)


def test_this_platform_is_not_in_its_own_corpus() -> None:
    assert "corpus-factory" in {normalized(distribution.metadata["Name"]) for distribution in distributions()}
    assert "corpus-factory" not in {repository.name for repository in repositories(1)}


def test_the_default_share_has_the_standard_library_and_more() -> None:
    names = [repository.name for repository in repositories(Settings().installation_share)]
    assert "cpython" in names
    assert 10 < len(names) < len(repositories(1)) / 2
    assert names == sorted(names)
