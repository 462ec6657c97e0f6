"""Every reader, listing and guess gives the same of a folder on disk and of a place in memory."""

from __future__ import annotations

import gzip
import io
import os
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from factory.errors import ConfigurationError
from factory.ingest.containers import container_warnings
from factory.ingest.fact_files import FactFiles, columns_of, fact_rows, files_at
from factory.ingest.git_ignored import ignored_patterns
from factory.ingest.items import Paths
from factory.ingest.left_out import endings_left_out
from factory.ingest.listing import UNWANTED, Work, as_table, files_below
from factory.ingest.overlapping_paths import refuse_overlap
from factory.ingest.readers import Ingests
from factory.ingest.state import differences, listing, state, total_bytes
from factory.orchestration.datasets.guess import guess
from factory.orchestration.declare.ingest_partition_paths import path_of
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.html import WebPages
from spark_udfs.ingest.image_document import ImageOptions
from spark_udfs.ingest.place import LocalFiles, Place
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.registry import READERS, RECORD_FILES
from spark_udfs.ingest.rows import Origin
from spark_udfs.ingest.work import read_work
from tests.ingest.inputs import ORIGIN, picture, tarred, zipped
from tests.ingest.memory_files import MemoryFiles
from tests.ingest.web.archives import page, pages

LINES = b'{"text": "one line"}\n\n\n{"text": 7}\nno json\n{"text": "another line"}\n'
OPTIONS = {None: None, Fields: Fields(), WebPages: WebPages(), ImageOptions: ImageOptions()}


def parquet(**columns: list[Any]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, row_group_size=40)
    return buffer.getvalue()


TABLE = parquet(text=[f"row {number} of a table" for number in range(100)], n=[*range(100)])
FILES: dict[str, dict[str, bytes]] = {  # of each reader
    "text": {
        "a.py": b"import os\n",
        "latin.py": "# coding: latin-1\n# café\n".encode("latin-1"),
        "caf\udce9.txt": b"a name that is not UTF-8",
        "bad.md": b"caf\xe9",
        "empty.txt": b"",
        "notebook.ipynb": b"{}",
    },
    "description": {"METADATA": b"Name: a\nDescription-Content-Type: text/markdown\n\n# A package\n"},
    "topics": {"topics.py": b"topics = {'if': 'The if statement', 'for': ''}\n"},
    "html": {"page.html": page(1), "none.html": b"<html></html>"},
    "parquet": {"a.parquet": TABLE, "damaged.parquet": TABLE[:40] + b"\xff" * 90 + TABLE[130:]},
    "registered": {"a.parquet": TABLE},
    "jsonl": {
        "a.jsonl": LINES,
        "a.jsonl.gz": gzip.compress(LINES, mtime=0),
        "a.jsonl.zst": zstandard.compress(LINES),
    },
    "warc": {"a.warc": pages(3, gzip=False), "a.warc.gz": pages(3, requests=True)},
    "archive": {
        "a.zip": zipped({"a.py": b"x = 1", "b.txt": b"caf\xe9"}),
        "a.tar.gz": gzip.compress(tarred({"a.py": b"x = 1", "b/c.md": b"# text"}), mtime=0),
    },
    "images": {
        "cat.png": picture(),
        "cat.txt": b"A cat.",
        "dog.jpg": picture("JPEG"),
        "fox.txt": b"A fox that nobody drew.",
    },
}


def rows_of(format: str, place: Place, name: str) -> list[dict[str, Any]]:
    reader = READERS[format]
    source = Input(ORIGIN, place, os.fsencode(name))
    rows = list(reader.rows_of(source, OPTIONS[reader.options]))
    for row in rows:
        if at := row.get("text_at"):
            assert at["file"] == place.location(source.name)
            row["text_at"] = {**at, "file": name, "modified_ns": 0}
    return rows


@pytest.mark.invariant("A reader gives the same rows of any place: a folder on disk, or files in memory.")
@pytest.mark.parametrize("format", READERS)
def test_every_reader_gives_the_same_rows_of_any_place(tmp_path: Path, format: str) -> None:
    for name, content in FILES[format].items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / f"cut.{name}").write_bytes(content[: len(content) * 2 // 3])
    local, memory = LocalFiles.at(tmp_path), MemoryFiles.copy_of(tmp_path)
    for path in tmp_path.iterdir():
        rows = rows_of(format, local, path.name)
        assert rows == rows_of(format, memory, path.name)
        assert rows
    [missing] = rows_of(format, memory, "missing")
    assert [missing] == rows_of(format, local, "missing")
    assert missing["reason"] == "vanished"


class WorkOnly(Ingests):
    """The rows of the items of a reader, without Spark."""

    def __init__(self) -> None:
        pass

    def _ingest(self, work: Iterable[Work], _paths: Paths, options: object = None, *_: Any, **__: Any) -> Any:
        batches = read_work(as_table(work).to_batches(), options)
        return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of all readers, a card, repositories with licenses, and files to leave out."""
    folder = tmp_path_factory.mktemp("place") / "corpus"
    files = {
        f"{format}/{name}": content for format, named in FILES.items() for name, content in named.items()
    }
    files |= {
        "README.md": b"---\nlicense: mit\nlanguage: en\nconfigs:\n- data_files:\n"
        b"  - {split: train, path: 'jsonl/*.jsonl'}\n---\n",
        "repositories/one/pyproject.toml": b'[project]\nname = "one"\nlicense = "Apache-2.0"\n',
        "repositories/one/src/a.py": b"a = 1\n",
        "repositories/one/.git/config": b"",
        "repositories/two/LICENSES/MIT.txt": b"",
        "repositories/two/build/made.gen.py": b"",
        "repositories/two/.gitignore": b"*.gen.py\n",
        "repositories/two/b.py": b"b = 2\n",
        "repositories/loose.py": b"",
        "list.json.gz": gzip.compress(b"[\n{}\n]", mtime=0),
        "tables/a.csv": b"a,b\n1,2\n",
        "tables-old/a.csv": b"a,b\n1,2\n",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


INGESTS: dict[str, Callable[[Ingests, Place], Any]] = {
    "files": lambda ingests, place: ingests.files(place, markup="keep"),
    "some files": lambda ingests, place: ingests.files(place, "**/*.py", ("**/.git/**", "topics/**")),
    "repositories": lambda ingests, place: ingests.repositories(place.below(b"repositories")),
    "jsonl": lambda ingests, place: ingests.jsonl(place),
    "one file": lambda ingests, place: ingests.jsonl(place.below(b"jsonl/a.jsonl")),
    "parquet": lambda ingests, place: ingests.parquet(place, Fields(text="{n}: {text}")),
    "html": lambda ingests, place: ingests.html([place.below(b"html"), place.below(b"warc")]),
    "warc": lambda ingests, place: ingests.warc(place),
    "archive": lambda ingests, place: ingests.archive(place),
    "images": lambda ingests, place: ingests.images(place.below(b"images")),
}


@pytest.mark.parametrize("reading", INGESTS)
def test_every_method_of_the_readers_lists_and_reads_any_place(folder: Path, reading: str) -> None:
    read = INGESTS[reading]
    rows = read(WorkOnly(), place_of(folder))
    assert rows
    assert rows == read(WorkOnly(), MemoryFiles.copy_of(folder))
    if reading == "repositories":
        licenses = {(row["source"], row["license"]) for row in rows if row["reason"] is None}
        assert licenses == {("one", "Apache-2.0"), ("two", "MIT")}
    if reading == "jsonl":
        documents = [row for row in rows if row["reason"] is None]
        assert {row["license"] for row in documents} == {"mit"}
        assert dict(documents[0]["metadata"])["split"] == "train"


def test_listings_of_any_place_are_in_one_order(folder: Path) -> None:
    local, memory = place_of(folder), MemoryFiles.copy_of(folder)
    for exclude in (UNWANTED, (), ("repositories/**", "**/*.gz")):
        for deep in (True, False):
            names = list(files_below(local, ["**/*"], exclude, deep=deep))
            assert names == list(files_below(memory, ["**/*"], exclude, deep=deep))
            assert names
    with pytest.raises(ConfigurationError, match="`memory:/corpus/gone` is not a folder"):
        list(files_below(memory.below(b"gone"), ["**/*"], ()))


def test_guesses_and_advice_are_the_same_of_any_place(folder: Path) -> None:
    memory = MemoryFiles.copy_of(folder)
    assert guess(folder) == guess(memory)
    assert guess(folder / "repositories") == guess(memory.below(b"repositories"))
    names = [b"two/build/made.gen.py", b"one/src/a.py"]
    for place in (place_of(folder / "repositories"), memory.below(b"repositories")):
        assert ignored_patterns(place, names) == ["two/**/*.gen.py"]
        [table] = container_warnings("web", [(place.parent, b"tables/a.csv"), (place, b"one/src/a.py")])
        assert "a table" in table
    for format in RECORD_FILES:
        patterns = RECORD_FILES[format]
        assert endings_left_out([folder], patterns) == endings_left_out([memory], patterns)


def test_a_state_tells_changes_of_a_place_in_memory() -> None:
    before = MemoryFiles(b"memory:/a", {b"memory:/a/x": b"1", b"memory:/a/y/z": b"2"})
    after = MemoryFiles(b"memory:/a", {b"memory:/a/x": b"3", b"memory:/a/y/new": b"2"})
    assert state([before]) == state([MemoryFiles(b"memory:/a", dict(before.files))])
    assert differences(listing([before]), listing([after])) == ["+1 y/new", "-1 y/z", "1 changed: x"]
    assert listing([before.below(b"x")]).entries.keys() == {"x"}
    assert total_bytes([before, after]) == 4


def test_facts_are_read_from_any_place(tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "b.csv").write_text("host,rank\nx.example,1\n")
    (folder / "a.jsonl").write_text('{"host": "y.example", "rank": 2}\n')
    pq.write_table(pa.table({"host": ["z.example"], "rank": [3]}), folder / "c.parquet")
    places = (place_of(folder), MemoryFiles.copy_of(folder))
    local, memory = (fact_rows([FactFiles((place,), "host", "host")]) for place in places)
    assert local.equals(memory)
    assert local["file"].to_pylist() == ["a/b.csv", "a.jsonl", "c.parquet"]
    assert [columns_of(file) for file in files_at(places[1])] == [["host", "rank"]] * 3


def test_facts_behind_links_are_read(tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "blob").write_text("host,rank\nx.example,1\n")
    (tmp_path / "facts" / "hosts.csv").symlink_to(tmp_path / "blob")
    for path in (tmp_path / "facts", tmp_path / "facts" / "hosts.csv"):
        rows = fact_rows([FactFiles((LocalFiles.at(path),), "host", "host")])
        assert rows["file"].to_pylist() == ["hosts.csv"]


def test_a_partition_of_any_place_has_its_key_in_the_path() -> None:
    address = "/a/{partition}/x-{partition}.jsonl"
    for place in (LocalFiles.at(address), MemoryFiles(address.encode(), {})):
        assert path_of(place, "k").display() == "/a/k/x-k.jsonl"
        assert path_of(place.parent.parent, "k").display() == "/a/k"


def test_a_declared_place_keeps_its_links_and_is_relative_to_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    (tmp_path / "link").symlink_to("gone")
    link = place_of("link", tmp_path)
    assert (link.display(), link.link_target()) == (f"{tmp_path}/link", "gone")
    assert link.canonical().link_target() is None
    assert place_of("~/x", tmp_path).display() == "/home/me/x"
    assert place_of(link, tmp_path) == place_of(link) == link


def test_overlapping_places_are_refused() -> None:
    place = MemoryFiles(b"memory:/a", {b"memory:/a/b/c": b""})
    files = [(place.address, b"b/c"), (place.below(b"b").address, b"c")]
    with pytest.raises(ConfigurationError, match="`memory:/a/b` is inside `memory:/a`, and both"):
        refuse_overlap([place, place.below(b"b")], files)


@pytest.mark.parametrize("place", [LocalFiles.at("/a/b"), MemoryFiles(b"memory:/a", {})])
def test_a_place_travels_to_workers(place: Place) -> None:
    assert pickle.loads(pickle.dumps(place)) == place
    assert Input(Origin("s"), place, b"x").key == "x"


def test_a_path_of_a_user_is_a_place_without_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    link = LocalFiles.at(tmp_path / "link")
    assert place_of(tmp_path / "link") == place_of(str(tmp_path / "folder")) == link.canonical()
    assert (link.name, link.canonical().name, link.parent.is_link(b"link")) == ("link", "folder", True)
    assert link.kind() == "folder"
    assert link.kind(b"gone") is link.kind(b"a\0b") is None
