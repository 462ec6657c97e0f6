"""A pattern is the place of the files that match it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.errors import ConfigurationError
from factory.ingest.items import files_of
from factory.ingest.listing import UNWANTED, files_below
from factory.ingest.overlapping_paths import refuse_overlap
from factory.ingest.state import listing
from factory.orchestration.declare.ingest_partition_paths import path_of
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.globs import compiled
from spark_udfs.ingest.matching import MatchingFiles, folder_of
from spark_udfs.ingest.rows import Origin
from tests.ingest.memory_files import MemoryFiles
from tests.ingest.test_place import WorkOnly

names = st.lists(st.text("ab.", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)
patterns = st.lists(st.sampled_from(["*", "**", "?", "a*", "*.b", "a", "**b"]), min_size=1, max_size=3)


@given(files=st.sets(names, max_size=8), parts=patterns)
def test_the_files_are_those_that_match(files: set[str], parts: list[str]) -> None:
    pattern = "/".join(parts)
    leaves = {name for name in files if not any(other.startswith(f"{name}/") for other in files)}
    folder = MemoryFiles(b"memory:/x", {f"memory:/x/{name}".encode(): name.encode() for name in leaves})
    place = MatchingFiles(folder, pattern)
    matches = {name.encode() for name in leaves if compiled([pattern]).fullmatch(os.fsencode(name))}
    assert {*place.walk(lambda _: True)} == {name for name, _ in place.states()} == matches
    assert place.kind() == ("folder" if matches else None)
    if matches:
        assert list(files_below(place, ["**/*"], UNWANTED)) == [*place.walk(lambda _: True)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("web/a.jsonl", "web/sub/b.jsonl", "web/sub/c.json", "web/other/d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f'{{"text": "the text of {name}"}}\n')
    return tmp_path


def test_documents_have_the_keys_of_the_folder(folder: Path) -> None:
    by_pattern = WorkOnly().jsonl(folder / "web" / "**" / "*.jsonl")
    assert by_pattern == WorkOnly().jsonl(folder / "web")
    assert [row["key"] for row in by_pattern] == ["a.jsonl:1", "sub/b.jsonl:1"]
    assert {row["source"] for row in by_pattern} == {"web"}
    [row] = WorkOnly().jsonl(folder / "web" / "*" / "*.json")  # a pattern may name files of any ending
    assert row["key"] == "sub/c.json:1"


def test_a_file_that_several_patterns_match_is_read_once(folder: Path) -> None:
    paths = [folder / "web", folder / "web" / "*.jsonl", folder / "web" / "**" / "*.jsonl"]
    assert [work.names for work in files_of("jsonl", paths, Origin(""))] == [(b"a.jsonl",), (b"sub/b.jsonl",)]
    rows = WorkOnly().files([folder / "web" / "**" / "*.txt", folder / "web" / "o*" / "*"], markup="keep")
    assert [row["key"] for row in rows] == ["other/d.txt"]


def test_another_folder_with_the_same_file_is_refused(folder: Path) -> None:
    paths = [folder / "web" / "**" / "*.jsonl", folder / "web" / "sub"]
    items = list(files_of("jsonl", paths, Origin("")))
    files = [(work.place.address, work.names[0]) for work in items]
    with pytest.raises(ConfigurationError, match=r"`.*/web/sub` is inside `.*/web`, and both"):
        refuse_overlap([folder_of(place_of(path)) for path in paths], files)


def test_the_state_is_that_of_the_files_that_match(folder: Path) -> None:
    path = folder / "web" / "*" / "*.jsonl"
    before = listing([path])
    assert list(before.entries) == ["sub/b.jsonl"]
    (folder / "web" / "sub" / "c.json").write_text("changed")
    assert listing([path]).state == before.state
    (folder / "web" / "other" / "new.jsonl").touch()
    assert listing([path]).state != before.state


def test_a_partition_may_be_in_the_folder_and_in_the_pattern(folder: Path) -> None:
    place = place_of("web/{partition}/*-{partition}.jsonl", folder)
    assert path_of(place, "k").display() == f"{folder}/web/k/*-k.jsonl"
    assert path_of(place, "k").canonical() == place_of("web/k/*-k.jsonl", folder)


def test_repositories_are_no_files(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"reads folders of repositories\. Name the folder"):
        WorkOnly().repositories(folder / "web" / "*" / "*.txt")
