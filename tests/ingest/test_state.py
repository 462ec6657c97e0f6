"""The state of files: what changes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from factory.ingest.state import state


def test_the_state_sees_names_sizes_and_times_and_no_link(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    os.utime(file, (1, 1))
    states = [state([tmp_path])]
    os.utime(file, (2, 2))
    states.append(state([tmp_path]))
    file.write_text("four")
    os.utime(file, (2, 2))
    states.append(state([tmp_path]))
    file.rename(tmp_path / "b")
    states.append(state([tmp_path]))
    assert len(set(states)) == 4
    (tmp_path / "loop").symlink_to(tmp_path)
    assert state([tmp_path]) == state([tmp_path]) != states[-1]
    assert state([tmp_path / "absent"]) != state([])


def test_the_state_is_the_same_however_a_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "a").write_text("one")
    (tmp_path / "link").symlink_to(tmp_path / "web")
    monkeypatch.chdir(tmp_path)
    spellings = ["web", Path("web"), "web/../web", tmp_path / "web", "link"]
    assert len({state([path]) for path in spellings}) == 1
