"""The readers in Spark: every input lands once, on any number of cores, and no path of the machine shows."""

from __future__ import annotations

import gzip
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from factory.errors import ConfigurationError
from factory.ingest.readers import Fields, Ingests
from factory.ingest.state import state
from factory.lake.identity import doc_id
from factory.lake.schemas.images import IMAGES, PLACEHOLDER
from factory.lake.schemas.ingest import RAW, REJECTED
from factory.lake_spark.audit import spark_schema
from tests.ingest.inputs import picture
from tests.ingest.outcomes import outcome, rows
from tests.ingest.test_parquet import deep

pytestmark = pytest.mark.spark


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder with one file of every kind of trouble."""
    folder = tmp_path / "shelf"
    (folder / "sub").mkdir(parents=True)
    (folder / "good.py").write_text("x = 1\n")
    (folder / "sub" / "good.md").write_text("# é\n")
    (folder / "empty.txt").write_text("")
    (folder / "bytes.txt").write_bytes(b"ab\xff")
    (folder / "latin.py").write_bytes(b"# coding: latin-1\n# \xe9\n")
    (folder / "odd.py").write_bytes(b"# coding: none-such\n")
    (folder / "link.txt").symlink_to("good.py")
    (folder / "sub" / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.txt")
    (folder / os.fsdecode(b"\xff.txt")).write_text("x")
    return folder


def test_each_file_of_a_folder_lands_once(ingests: Ingests, shelf: Path) -> None:
    found = ingests.files(shelf, license="MIT", metadata={"keeper": "Ann"})
    assert outcome(found) == {
        "good.py": "x = 1\n",
        "sub/good.md": "# é\n",
        "latin.py": "# coding: latin-1\n# é\n",
        "empty.txt": "empty at byte 0",
        "bytes.txt": "not_utf8 at byte 2",
        "odd.py": "unknown_encoding at byte 0",
        "link.txt": "link at byte 0",
        "sub/loop": "link at byte 0",
        "pipe.txt": "not_a_file at byte 0",
        r"\xff.txt": "name_not_utf8 at byte 0",
    }
    document = next(row for row in rows(found.documents) if row["key"] == "sub/good.md")
    assert document["doc_id"] == doc_id("shelf", "sub/good.md")
    assert (document["license"], document["metadata"]) == ("MIT", {"keeper": "Ann"})
    assert (document["language"], document["media_type"], document["n_bytes"]) == (
        "markdown",
        "text/markdown",
        5,
    )
    for table in (found.documents, found.rejected):
        assert str(shelf.parent) not in str(rows(table))


def test_both_frames_have_the_declared_columns(ingests: Ingests, shelf: Path) -> None:
    found = ingests.files(shelf)
    for frame, schema in ((found.documents, RAW), (found.rejected, REJECTED)):
        declared = [(field.name, field.dataType) for field in spark_schema(schema).fields]
        assert [(field.name, field.dataType) for field in frame.schema.fields] == declared


def test_readers_say_the_state_of_their_paths_before_they_read(ingests: Ingests, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n')
    (tmp_path / "b").mkdir()
    before = state([tmp_path])
    found = [
        *(read(tmp_path) for read in (ingests.files, ingests.repositories, ingests.jsonl)),
        *(read([str(tmp_path)]) for read in (ingests.parquet, ingests.archive)),
    ]
    (tmp_path / "a.jsonl").write_text('{"text": "another"}\n')
    assert {one.state for one in found} == {before} != {state([tmp_path])}
    assert ingests.jsonl(tmp_path / "a.jsonl").state == state([tmp_path / "a.jsonl"])


def test_what_was_read_is_read_once_until_it_is_released(ingests: Ingests, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("before")
    found = ingests.files(tmp_path, source="s")
    assert outcome(found) == {"a.txt": "before"}
    (tmp_path / "a.txt").write_text("after")
    assert outcome(found) == {"a.txt": "before"}
    found.release()
    assert outcome(found) == {"a.txt": "after"}


def test_a_file_that_vanishes_after_it_was_listed_is_recorded(ingests: Ingests, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    found = ingests.files(tmp_path)
    (tmp_path / "a.txt").unlink()
    assert outcome(found) == {"a.txt": "vanished at byte 0", "b.txt": "b.txt"}


def test_rows_do_not_depend_on_how_the_work_is_dealt_out(
    ingests: Ingests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (tmp_path / f"{number}.txt").write_bytes(b"\xff" if number % 7 == 0 else b"%d" % number)
    together = ingests.files(tmp_path)
    monkeypatch.setattr("factory.ingest.items.NAMES_PER_ITEM", 3)
    apart = ingests.files(tmp_path)
    assert apart.scan.rdd.getNumPartitions() > together.scan.rdd.getNumPartitions()
    assert rows(apart.documents) == rows(together.documents)
    assert rows(apart.rejected) == rows(together.rejected)
    assert len(rows(apart.documents)) == 17


def test_json_lines_of_several_files_and_compressions(ingests: Ingests, tmp_path: Path) -> None:
    (tmp_path / "web" / "b").mkdir(parents=True)
    (tmp_path / "web" / "a.jsonl").write_text('{"text": "one"}\n[]\n{"text": "two", "lang": "en"}\n')
    packed = gzip.compress(b"".join(json.dumps({"text": str(n) * 50}).encode() + b"\n" for n in range(9)))
    (tmp_path / "web" / "b" / "c.jsonl.gz").write_bytes(packed)
    (tmp_path / "web" / "broken.jsonl.zst").write_bytes(packed)
    (tmp_path / "web" / "notes.txt").write_text("not asked for")
    found = ingests.jsonl(tmp_path / "web", Fields(columns={"language": "lang"}))
    assert outcome(found) == {
        "a.jsonl:1": "one",
        "a.jsonl:2": "not_an_object at line 2",
        "a.jsonl:3": "two",
        "broken.jsonl.zst": "corrupt at line 1",
        **{f"b/c.jsonl.gz:{n + 1}": str(n) * 50 for n in range(9)},
    }
    assert {row["source"] for row in rows(found.documents)} == {"web"}
    assert [row["language"] for row in rows(found.documents) if row["key"] == "a.jsonl:3"] == ["en"]


def test_the_first_record_of_a_key_by_file_and_place_is_the_document(
    ingests: Ingests, tmp_path: Path
) -> None:
    lines = {
        "b.jsonl": [("k", "third"), ("l", "other")],
        "a.jsonl": [("k", "first"), ("k", "second")],
    }
    for name, records in lines.items():
        content = "".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in records)
        (tmp_path / name).write_text(content)
    found = ingests.jsonl(tmp_path, Fields(key="id"), source="s")
    assert {row["key"]: row["text"] for row in rows(found.documents)} == {"k": "first", "l": "other"}
    rejected = {row["key"]: row for row in rows(found.rejected)}
    assert {key: (row["reason"], row["location"], row["sample"]) for key, row in rejected.items()} == {
        "a.jsonl:2": ("key_taken", "line 2", b"second"),
        "b.jsonl:1": ("key_taken", "line 1", b"third"),
    }
    assert {row["detail"] for row in rejected.values()} == {"The key `k` is taken by line 1 of `a.jsonl`."}


def test_every_input_of_a_tree_of_trouble_is_a_document_or_a_rejected_record(
    ingests: Ingests, tmp_path: Path
) -> None:
    """Three readers over one tree: as many inputs are counted by other means as rows come out."""
    tree = tmp_path / "tree"
    (tree / "x.jsonl").mkdir(parents=True)  # a folder with the name of a file
    (tree / "up").symlink_to(tmp_path)
    os.mkfifo(tree / "pipe.jsonl")
    (tree / "empty.jsonl").write_text("")
    (tree / "x.jsonl" / "a.jsonl").write_bytes(
        b'{"text": "a"}\n{"text": "a", "text": "b"}\n\n{"text": 1}\n{"text": NaN}\n[[[\n{"text": "last"}'
    )
    pq.write_table(pa.table({"text": ["one", None, "a\0b", "four"]}), tree / "p.parquet", row_group_size=2)
    (tree / "cut.parquet").write_bytes((tree / "p.parquet").read_bytes()[:-20])
    with zipfile.ZipFile(tree / "z.zip", "w") as archive:
        for name, data in {"a.txt": b"a", "../b.txt": b"b", "c.zip": b"c", "d.txt": b"\xff"}.items():
            archive.writestr(name, data)
    links = 1
    counted = {
        "jsonl": links + len(["pipe.jsonl", "empty.jsonl"]) + 7,
        "parquet": links + 4 + len(["cut.parquet"]),
        "archive": links + 4,
        "files": sum(len(files) for _, _, files in os.walk(tree)) + links,
    }
    read = {
        "jsonl": ingests.jsonl(tree),
        "parquet": ingests.parquet(tree),
        "archive": ingests.archive(tree),
        "files": ingests.files(tree),
    }
    found = {name: outcome(it) for name, it in read.items()}
    assert {name: len(it) for name, it in found.items()} == counted
    assert found["jsonl"] == {
        "up": "link at line 1",
        "pipe.jsonl": "not_a_file at line 1",
        "empty.jsonl": "empty at line 1",
        "x.jsonl/a.jsonl:1": "a",
        "x.jsonl/a.jsonl:2": "repeated_field at line 2",
        "x.jsonl/a.jsonl:3": "empty at line 3",
        "x.jsonl/a.jsonl:4": "text_not_a_string at line 4",
        "x.jsonl/a.jsonl:5": "not_json at line 5",
        "x.jsonl/a.jsonl:6": "not_json at line 6",
        "x.jsonl/a.jsonl:7": "last",
    }
    assert found["parquet"]["p.parquet:2"] == "nul_byte at row 2"
    assert found["archive"]["z.zip!/c.zip"] == "nested at byte 0"


def test_parquet_rows_and_a_broken_file_beside_them(ingests: Ingests, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"text": ["one", None, "three"], "id": ["a", "b", "c"]}), tmp_path / "good.parquet"
    )
    (tmp_path / "bad.parquet").write_bytes((tmp_path / "good.parquet").read_bytes()[:-9])
    found = ingests.parquet(
        [tmp_path / "good.parquet", tmp_path / "bad.parquet"], Fields(key="id"), source="hub"
    )
    assert outcome(found) == {
        "a": "one",
        "good.parquet:1": "no_text at row 1",
        "c": "three",
        "bad.parquet": "corrupt at byte 0",
    }


@pytest.mark.invariant(
    "Hostile inputs (bombs, endless lines) are read in bounded memory and time; all bounds are in "
    "`spark_udfs/ingest/bounds.py`."
)
def test_files_that_are_made_to_end_a_run_end_neither_worker_nor_driver(
    ingests: Ingests, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"text": ["good"]}), tmp_path / "good.parquet")
    for levels in (300, 2_000, 90_000):
        (tmp_path / f"{levels}.parquet").write_bytes(deep(levels))
    found = ingests.parquet(tmp_path)
    assert outcome(found) == {
        "good.parquet:0": "good",
        "300.parquet": "too_complex at byte 0",
        "2000.parquet": "too_complex at byte 0",
        "90000.parquet": "too_complex at byte 0",
    }
    assert sorted(found.rewritten) == ["2000.parquet", "300.parquet", "90000.parquet"]


def test_pictures_are_read_with_their_captions(ingests: Ingests, tmp_path: Path) -> None:
    for name, content in {
        "a.png": picture(),
        "a.txt": b"A.",
        "b.png": b"",
        "b.txt": b"B.",
        "c.txt": b"C.",
    }.items():
        (tmp_path / name).write_bytes(content)
    reading = ingests.images(tmp_path)
    assert reading.documents.columns == [*RAW.names, IMAGES]
    [document] = reading.documents.collect()
    [image] = document.images
    assert (bytes(image.content), image.width, image.patches) == (picture(), 30, 6)
    assert outcome(reading) == {
        "a.png": f"{PLACEHOLDER}A.",
        "b.png": "empty_picture at byte 0",
        "c.txt": "no_picture at byte 0",
    }


def test_archives_of_two_kinds(ingests: Ingests, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as archive:
        archive.write(tmp_path / "a.py", "a.py")
        archive.writestr("bad.txt", b"\xff")
    with tarfile.open(tmp_path / "two.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.py", "sub/a.py")
    found = ingests.archive(tmp_path, repository="r", license="MIT")
    assert outcome(found) == {
        "one.zip!/a.py": "x = 1\n",
        "one.zip!/bad.txt": "not_utf8 at byte 0",
        "two.tar.gz!/sub/a.py": "x = 1\n",
    }
    assert {(row["repository"], row["license"]) for row in rows(found.documents)} == {("r", "MIT")}


def test_two_files_that_would_give_one_id_are_refused_by_name(ingests: Ingests, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.jsonl").write_text('{"text": "t"}\n')
    with pytest.raises(ConfigurationError, match=r"both hold `x\.jsonl`"):
        ingests.jsonl([tmp_path / "a", tmp_path / "b"], source="s")
    apart = ingests.jsonl([tmp_path / "a", tmp_path / "b"])
    assert sorted(row["source"] for row in rows(apart.documents)) == ["a", "b"]


def test_a_file_that_two_paths_hold_is_refused_and_paths_of_other_files_are_not(
    ingests: Ingests, tmp_path: Path
) -> None:
    inner = tmp_path / "a"
    inner.mkdir()
    (inner / "x.jsonl").write_text('{"text": "t"}\n')
    for read in (ingests.jsonl, ingests.files):
        with pytest.raises(
            ConfigurationError, match=f"^`{inner}` is inside `{tmp_path}`, and both paths read"
        ):
            read([tmp_path, inner])
    apart = ingests.files([tmp_path, inner], include="*.jsonl")
    assert [row["source"] for row in rows(apart.documents)] == ["a"]


def test_a_wrong_declaration_is_told_before_anything_is_read(ingests: Ingests, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Unknown column `author`"):
        Fields(columns={"author": "by"})
    with pytest.raises(ConfigurationError, match="does not exist"):
        ingests.parquet(tmp_path / "gone.parquet")


def test_a_folder_without_input_gives_two_empty_frames(ingests: Ingests, tmp_path: Path) -> None:
    found = ingests.parquet(tmp_path)
    assert (found.documents.count(), found.rejected.count()) == (0, 0)


def test_the_installation_at_a_small_share(ingests: Ingests) -> None:
    code, prose = ingests.installation_code(0.02), ingests.installation_prose(0.02)
    for found in (code, prose):
        documents, rejected = rows(found.documents), rows(found.rejected)
        assert documents
        assert {row["doc_id"] for row in documents}.isdisjoint(row["doc_id"] for row in rejected)
        for row in documents:
            assert row["source"] == f"{row['repository']}@{row['revision']}"
            assert not row["key"].startswith("/")
            assert row["created_at"] is None
            assert row["metadata"]["name"] == row["repository"]
    assert {row["language"] for row in rows(code.documents)} == {"python"}
    repositories = {row["repository"] for row in rows(code.documents)}
    assert "cpython" not in repositories
    assert "cpython" in {row["repository"] for row in rows(prose.documents)}
    assert repositories <= {row["repository"] for row in rows(prose.documents)}
    topics = [row for row in rows(prose.documents) if row["key"].startswith("pydoc_data/topics.py#")]
    assert len(topics) > 50


def test_a_folder_names_its_repositories_and_files_beside_them_have_none(
    ingests: Ingests, tmp_path: Path
) -> None:
    for path in (
        "mine/b/x.py",
        "mine/a/x.py",
        "mine/a/sub/y.py",
        "mine/a/.git/config",
        "mine/b/package.json",
        "mine/sub/.git",
        "mine/loose.md",
        "z/w.py",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text('{"license": "ISC"}' if path.endswith(".json") else f"{path}\n")
    (tmp_path / "mine" / "link").symlink_to(tmp_path / "z")
    found = ingests.repositories(tmp_path / "mine")
    assert {(row["source"], row["key"], row["repository"]) for row in rows(found.documents)} == {
        ("a", "x.py", "a"),
        ("a", "sub/y.py", "a"),
        ("b", "x.py", "b"),
        ("b", "package.json", "b"),
        ("mine", "loose.md", None),
    }
    licenses = {(row["repository"], row["license"]) for row in rows(found.documents)}
    assert licenses == {("a", None), ("b", "ISC"), (None, None)}
    given = ingests.repositories(tmp_path / "mine", license="MIT")
    assert {row["license"] for row in rows(given.documents)} == {"MIT"}
    assert [(row["source"], row["key"]) for row in rows(found.rejected)] == [("mine", "link")]


def test_several_folders_are_read_as_one_and_two_of_one_name_are_refused(
    ingests: Ingests, tmp_path: Path
) -> None:
    for path in ("a/notes/x.md", "b/notes/x.md", "b/other/x.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{path}\n")
    found = ingests.files([tmp_path / "a" / "notes", tmp_path / "b" / "other"])
    assert {row["source"] for row in rows(found.documents)} == {"notes", "other"}
    with pytest.raises(ConfigurationError, match="are both source `notes`"):
        ingests.files([tmp_path / "a" / "notes", tmp_path / "b" / "notes"])
    with pytest.raises(ConfigurationError, match="are both source `notes`"):
        ingests.repositories([tmp_path / "a", tmp_path / "b"])


@pytest.mark.invariant("A file that several tasks read in parts gives the tables of the whole file.")
def test_a_large_file_is_read_in_parts_with_the_rows_of_the_whole(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "{}",
        "",
        "",
        *(json.dumps({"text": f"text {n}"}) for n in range(300)),
        "{",
        '{"text": "text 7"}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.jsonl").write_text('{"text": "small"}\n')
    frames = [
        zstandard.compress(f'{{"text": "frame {n}"}}\n{{"text": "'.encode() + b'"}\n') for n in range(90)
    ]
    (tmp_path / "c.jsonl.zst").write_bytes(b"".join(frames))
    fields = Fields(key="text")
    whole, in_parts = Ingests(spark), Ingests(spark, part_bytes=500)
    try:
        whole_file, large_file = (readers.jsonl(tmp_path, fields) for readers in (whole, in_parts))
        assert large_file.scan.where("doc_id IS NULL").count() > 10
        assert rows(large_file.documents) == rows(whole_file.documents)
        assert rows(large_file.rejected) == rows(whole_file.rejected)
        assert large_file.count_files() == whole_file.count_files() == (3, 0)
        (tmp_path / "no_text.jsonl").write_text('{"key": "a"}\n')
        other_file = whole.jsonl(tmp_path / "no_text.jsonl", fields)
        assert whole_file.with_documents(whole_file.documents, other_file).count_files() == (4, 1)
        for read in (in_parts, whole):
            read.jsonl(tmp_path / "b.jsonl").documents.explain()
            assert "ArrowEval" not in capsys.readouterr().out
        large_file.documents.explain()
        assert "ArrowEval" in capsys.readouterr().out
        assert {row["reason"] for row in rows(large_file.rejected)} == {
            "key_taken",
            "no_key",
            "no_text",
            "empty",
            "not_json",
        }
    finally:
        whole.release()
        in_parts.release()


def test_row_groups_are_read_in_parts_and_registered(spark: SparkSession, tmp_path: Path) -> None:
    texts = pa.table({"text": [f"text {n}" if n % 50 else None for n in range(1_000)]})
    pq.write_table(texts, tmp_path / "a.parquet", row_group_size=30)
    whole, in_parts = Ingests(spark), Ingests(spark, part_bytes=3_000)
    try:
        whole_file, large_file = (readers.parquet(tmp_path) for readers in (whole, in_parts))
        assert len(large_file.scan.select(F.spark_partition_id()).distinct().collect()) > 1
        assert rows(large_file.documents) == rows(whole_file.documents)
        assert rows(large_file.rejected) == rows(whole_file.rejected)
        assert whole_file.registered is not None
        assert large_file.registered is not None
        assert rows(large_file.registered.rows) == rows(whole_file.registered.rows)
        assert large_file.count_files() == (1, 0)
    finally:
        whole.release()
        in_parts.release()
