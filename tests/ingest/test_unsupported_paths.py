"""Patterns, addresses and variables among paths are named as such, with a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.ingest.items import files_of, folders
from factory.ingest.unsupported_paths import why_missing, why_unsupported
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.rows import Origin


@pytest.mark.parametrize(
    "path, remedy",
    [
        ("s3://bucket/web", "Copy it (`aws s3 sync s3://bucket/web web`), or mount it, and name `web`."),
        ("s3a://bucket/web/", "(`aws s3 sync s3://bucket/web/ web`)"),
        ("gs://bucket", "(`gcloud storage cp -r gs://bucket bucket`)"),
        ("hdfs://node:9000/x/y", "(`hdfs dfs -get hdfs://node:9000/x/y y`)"),
        (
            "hf://datasets/org/name@v1/a.parquet",
            "(`hf download org/name --repo-type dataset --local-dir name`)",
        ),
        ("https://a.example/a.jsonl", "(`curl -LO https://a.example/a.jsonl`)"),
        ("abfss://a@b/c", "Copy it, or mount it, and name that folder."),
    ],
)
def test_remote_paths_are_not_supported_yet(path: str, remedy: str) -> None:
    sentence = why_unsupported(path)
    assert sentence is not None
    assert sentence.startswith(f"Remote paths are not supported yet: `{path}`. ")
    assert remedy in sentence


@pytest.mark.parametrize(
    "path, patterns, remedy",
    [
        ("data/*.md", (), 'Name the folder, `data`, and use `include: "*.md"`.'),
        ("/a/b/**/x-?.md", (), 'Name the folder, `/a/b`, and use `include: "**/x-?.md"`.'),
        ("data/{a,b}.md", (), "Name the folder, `data`, and choose its files by `include`, with"),
        (
            "*.jsonl",
            ("**/*.jsonl",),
            "Name the folder, `.`: files below it that match `**/*.jsonl` are read.",
        ),
    ],
)
def test_patterns_are_not_supported_yet(path: str, patterns: tuple[str, ...], remedy: str) -> None:
    sentence = why_unsupported(path, patterns)
    assert sentence is not None
    assert sentence.startswith(f"Patterns in `paths` are not supported yet: `{path}`. ")
    assert remedy in sentence


def test_a_plain_path_is_none_of_them(tmp_path: Path) -> None:
    assert why_unsupported("data/web-1.jsonl") is why_unsupported("web/{partition}/a") is None
    assert "Variables in `paths` are not supported yet" in str(why_unsupported("$HOME/data"))
    assert "Write the path, `/data/web`." in str(why_unsupported("file:///data/web"))
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    assert "is a link to `nowhere`, which does not exist" in str(why_missing("link", LocalFiles.at(link)))


def test_readers_in_python_say_the_same(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"not supported yet: `s3://b/x`. Copy it"):
        list(files_of("parquet", "s3://b/x", Origin("")))
    with pytest.raises(ConfigurationError, match=r"not supported yet: `.*/\*`. Name the folder"):
        folders(tmp_path / "*")


def test_a_file_may_have_the_name_of_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "*.jsonl").touch()
    [work] = files_of("jsonl", tmp_path / "*.jsonl", Origin(""))
    assert work.names == (b"*.jsonl",)
