"""The lake's lock, held and contested by real processes."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from factory.errors import LakeLocked, MachineError
from factory.lake.lock import making, writing
from factory.settings import Settings

HOLD = """
import sys, time
from factory.lake.lock import writing
from factory.settings import Settings
with writing(Settings(home=sys.argv[1]), "a long run"):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(home: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(home)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


@pytest.mark.process
def test_a_second_run_is_told_who_holds_the_lake(tmp_path: Path) -> None:
    holder = hold(tmp_path)
    try:
        with (
            pytest.raises(LakeLocked, match=f"process {holder.pid}, a long run"),
            writing(Settings(home=tmp_path), "x"),
        ):
            pass
    finally:
        holder.kill()
        holder.wait()


@pytest.mark.process
@pytest.mark.parametrize("found", ["", "[]", None])
def test_a_holder_that_could_not_sign_holds_the_lake_all_the_same(tmp_path: Path, found: str | None) -> None:
    holder = hold(tmp_path)
    try:
        (tmp_path / "writing.json").unlink()
        if found is not None:  # a full disk leaves an empty file
            (tmp_path / "writing.json").write_text(found)
        with pytest.raises(LakeLocked, match="Another run is writing"), writing(Settings(home=tmp_path), "x"):
            pass
    finally:
        holder.kill()
        holder.wait()


@pytest.mark.process
def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    holder = hold(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with writing(Settings(home=tmp_path), "the next run"):
        assert (tmp_path / "writing.json").exists()
    assert not (tmp_path / "writing.json").exists()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(MachineError, match="FACTORY_HOME"),
        writing(Settings(home=tmp_path / "file" / "lake"), "x"),
    ):
        pass


def test_a_lake_on_servers_has_no_lock(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path / "none", catalog="postgres", catalog_uri="postgresql://h/db", warehouse="s3://bucket/w"
    )
    with writing(settings, "one"), writing(settings, "two"):
        assert not settings.home.exists()


def test_nothing_half_made_is_left_by_a_killed_process_nor_by_one_that_fails(tmp_path: Path) -> None:
    (tmp_path / ".making-1" / "half").mkdir(parents=True)
    with contextlib.suppress(KeyError), making(tmp_path) as new:
        new.mkdir()
        (new / "half").touch()
        raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ["making.lock"]
