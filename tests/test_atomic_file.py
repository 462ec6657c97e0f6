"""A file is replaced whole, through links, and the leftovers of killed processes are deleted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from factory.atomic_file import drop_abandoned, replacing, write_atomically

KILLED = """
import os, signal, sys
from pathlib import Path
from factory.atomic_file import replacing

with replacing(Path(sys.argv[1])) as temporary:
    temporary.touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_error_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    write_atomically(file, "older")
    with pytest.raises(KeyError), replacing(file) as temporary:
        raise KeyError(temporary.write_text("half"))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("kept.jsonl", "older")]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    target.parent.mkdir()
    link.symlink_to(target)
    for content in ("first", "second"):
        write_atomically(link, content)
        assert (link.readlink(), target.read_text()) == (target, content)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["far", "link"]


def test_only_the_files_of_dead_processes_are_dropped(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, tmp_path / "a.parquet"], check=False)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".a.parquet.")
    (tmp_path / ".a.parquet.of-a-user").touch()
    with replacing(tmp_path / "b.parquet") as temporary:
        temporary.touch()
        drop_abandoned(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted([tmp_path / ".a.parquet.of-a-user", temporary])
