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
    "path, sentence",
    [
        ("s3a://bucket/web/", "`s3a://bucket/web/` has a scheme of Hadoop. Write `s3://bucket/web/`."),
        ("gcs://bucket", "Write `gs://bucket`."),
        (
            "hdfs://node:9000/x/y",
            "Addresses of `hdfs` are not supported yet: `hdfs://node:9000/x/y`. Copy or",
        ),
        ("data/{a,b}.md", "Patterns in `paths` have `*`, `?` and `**` alone: `data/{a,b}.md`. Write a list"),
        ("data/[ab].md", "`data/[ab].md`. Write a list of paths."),
    ],
)
def test_what_cannot_be_read_is_told_with_a_remedy(path: str, sentence: str) -> None:
    assert sentence in str(why_unsupported(path))


def test_a_plain_path_is_none_of_them(tmp_path: Path) -> None:
    assert why_unsupported("data/web-1.jsonl") is why_unsupported("web/{partition}/a") is None
    assert "Variables in `paths` are not supported yet" in str(why_unsupported("$HOME/data"))
    assert "Write the path, `/data/web`." in str(why_unsupported("file:///data/web"))
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    assert "is a link to `nowhere`, which does not exist" in str(why_missing("link", LocalFiles.at(link)))


def test_readers_in_python_say_the_same(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="has a scheme of Hadoop"):
        list(files_of("parquet", "s3a://b/x", Origin("")))
    with pytest.raises(ConfigurationError, match=r"No file matches `.*/\*`\. Correct the pattern"):
        folders(tmp_path / "*")
    with pytest.raises(ConfigurationError, match=r"has no folder: `.*/gone` does not exist"):
        list(files_of("jsonl", tmp_path / "gone" / "*.jsonl", Origin("")))


def test_a_file_may_have_the_name_of_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "*.jsonl").touch()
    [work] = files_of("jsonl", tmp_path / "*.jsonl", Origin(""))
    assert work.names == (b"*.jsonl",)
