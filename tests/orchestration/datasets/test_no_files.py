"""The error for a dataset whose paths hold no file that its reader takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.orchestration.datasets.file import datasets_file
from factory.orchestration.datasets.no_files import no_file_to_read
from factory.orchestration.declare.located_yaml import LocatedYaml
from spark_udfs.ingest.address import place_of


@pytest.mark.parametrize(
    "format, files, said",
    [
        (
            "files, include: '*.md'",
            ["a.txt", "b.txt", ".git/x"],
            "matches `*.md` (2 files there, such as `a.txt`). Correct `include`, or name another path.",
        ),
        (
            "files, include: '*.md'",
            ["in/a.md"],
            "matches `*.md` (1 file there, such as `in/a.md`). "
            "Files in folders below match `**/*.md`: write that.",
        ),
        (
            "files, exclude: '**/*.md'",
            ["a.md"],
            "matches `**/*` (1 file there, such as `a.md`). "
            "`exclude` leaves out every file that matches: shorten it.",
        ),
        (
            "repositories, include: ['*.py', '*.pyi']",
            ["repo/a.c"],
            "matches `*.py`, `*.pyi` (1 file there, such as `repo/a.c`). "
            "Correct `include`, or name another path.",
        ),
        (
            "parquet",
            ["a.csv"],
            "matches `**/*.parquet` (1 file there, such as `a.csv`). "
            "Convert them to JSON lines or Parquet, or name another path.",
        ),
        (
            "parquet",
            ["a.jsonl"],
            "matches `**/*.parquet` (1 file there, such as `a.jsonl`). "
            "Write `format: jsonl`, or name another path.",
        ),
        (
            "archive",
            ["a.rar"],
            "matches `**/*.zip`, `**/*.tar`, `**/*.tgz`, `**/*.tar.gz`, `**/*.tar.bz2`, `**/*.tar.xz`, "
            "`**/*.tar.zst` (1 file there, such as `a.rar`). Unpack 7z and RAR archives and name the folder.",
        ),
    ],
)
def test_files_that_are_there_are_named_with_the_patterns_they_do_not_match(
    tmp_path: Path, format: str, files: list[str], said: str
) -> None:
    for name in files:
        (tmp_path / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / name).touch()
    assert answer(tmp_path, format) == f"No file under `notes` {said}"


def test_an_empty_folder_and_a_missing_one_get_different_errors(tmp_path: Path) -> None:
    assert answer(tmp_path, "jsonl") == "`notes` does not exist. Name another path."
    (tmp_path / "notes").mkdir()
    assert answer(tmp_path, "jsonl") == "No file exists under `notes`. Name another path."


def answer(folder: Path, format: str) -> str:
    (folder / "my.yaml").write_text(f"datasets: [{{name: a, kind: prose, paths: notes, format: {format}}}]\n")
    (entry,) = LocatedYaml.read(folder / "my.yaml").build(datasets_file()).datasets
    return no_file_to_read(entry, [place_of(folder / "notes")], folder)
