"""Overlapping paths are refused if a file would become two documents."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.ingest.overlapping_paths import refuse_overlap


def files(*found: tuple[Path, str]) -> list[tuple[bytes, bytes]]:
    return [(os.fsencode(folder), name.encode()) for folder, name in found]


def test_a_file_of_two_paths_is_named_with_both(tmp_path: Path) -> None:
    inner = tmp_path / "sub"
    with pytest.raises(ConfigurationError) as caught:
        refuse_overlap([tmp_path, inner], files((tmp_path, "sub/a.txt"), (inner, "a.txt")))
    assert str(caught.value) == (
        f"`{inner}` is inside `{tmp_path}`, and both paths read `a.txt`, which would be two documents. "
        "Name one of the two paths."
    )
    file = tmp_path / "a.jsonl"
    with pytest.raises(ConfigurationError, match=f"^`{file}` is inside `{tmp_path}`"):
        refuse_overlap([file, tmp_path], files((tmp_path, "a.jsonl"), (tmp_path, "a.jsonl")))


def test_paths_whose_files_differ_may_overlap(tmp_path: Path) -> None:
    inner = tmp_path / "sub"
    refuse_overlap([tmp_path, inner], files((tmp_path, "a.txt"), (inner, "a.txt")))
    refuse_overlap([tmp_path, tmp_path], files((tmp_path, "a.txt")))
