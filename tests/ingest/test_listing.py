"""Files are found by glob patterns, in one order, without following links."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.ingest.listing import as_table, files_below, in_items
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.rows import Origin

FILES = ["a.py", "b.txt", "src/c.py", "src/deep/d.py", "src/deep/e.md", ".git/config", "src/x+y.py"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.mark.parametrize(
    "include, exclude, expected",
    [
        (["**/*"], [], FILES),
        (["**/*"], ["**/.git/**"], [name for name in FILES if ".git" not in name]),
        (["*.py"], [], ["a.py"]),
        (["**/*.py"], [], ["a.py", "src/c.py", "src/deep/d.py", "src/x+y.py"]),
        (["src/*.py", "*.txt"], [], ["b.txt", "src/c.py", "src/x+y.py"]),
        (["src/**"], ["src/deep/**"], ["src/c.py", "src/x+y.py"]),
        (["**/deep/?.py"], [], ["src/deep/d.py"]),
        (["src/x+y.py"], [], ["src/x+y.py"]),
        ([], [], []),
    ],
)
def test_globs_choose_files(tree: Path, include: list[str], exclude: list[str], expected: list[str]) -> None:
    found = [os.fsdecode(name) for name in files_below(LocalFiles.at(tree), include, exclude)]
    assert sorted(found) == sorted(expected)


def test_the_order_does_not_depend_on_the_file_system(tree: Path) -> None:
    for name in ("z.py", "A.py", "m.py"):
        (tree / name).write_text("")
    assert list(files_below(LocalFiles.at(tree), ["*.py"], [])) == [b"A.py", b"a.py", b"m.py", b"z.py"]


def test_linked_folders_are_named_and_not_entered(tree: Path) -> None:
    (tree / "src" / "loop").symlink_to(tree)
    found = list(files_below(LocalFiles.at(tree), ["**/*.py"], []))
    assert b"src/loop" in found
    assert not [name for name in found if name.startswith(b"src/loop/")]


def test_a_missing_folder_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a folder\. Name a folder"):
        list(files_below(LocalFiles.at(tmp_path / "gone"), ["**/*"], []))


def test_every_name_is_in_exactly_one_item() -> None:
    names = [b"%d" % n for n in range(7)]
    place = LocalFiles(b"/x")
    items = list(in_items("text", Origin("s", metadata={"a": "b"}), place, names, 3))
    assert [item.names for item in items] == [(b"0", b"1", b"2"), (b"3", b"4", b"5"), (b"6",)]
    given = {"format": "text", "source": "s", "metadata": [("a", "b")], "names": [b"6"]}
    given["place"] = pickle.dumps(place)
    nulls = dict.fromkeys(("repository", "revision", "license", "language", "part"))
    assert as_table(items).to_pylist()[2] == given | nulls | {"number": 2}
