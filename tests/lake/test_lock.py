"""The lake's lock, held and contested by real processes."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
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


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of the lake in `tmp_path`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.invariant(
    "The error of a second run names the holder of the lake, even if both start at once; a killed holder "
    "leaves no lock."
)
@pytest.mark.process
def test_a_second_run_is_told_who_holds_the_lake(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    refusal = pytest.raises(LakeLocked, match=f"process {holder.pid}, a long run")
    with refusal, writing(Settings(home=tmp_path), "x"):
        pass


@pytest.mark.process
@pytest.mark.parametrize("before", ["a killed run", None])
def test_a_holder_that_signs_late_is_named(
    tmp_path: Path, holder: subprocess.Popen[str], before: str | None
) -> None:
    path = tmp_path / "writing.json"
    signed = path.read_text()
    if before is None:
        path.unlink()
    else:
        path.write_text(json.dumps({"pid": 2**22 + 1, "what": before, "since": "00:00:00"}))  # above all pids
    late = threading.Timer(0.1, path.write_text, (signed,))
    late.start()
    refusal = pytest.raises(LakeLocked, match=f"process {holder.pid}, a long run")
    with refusal, writing(Settings(home=tmp_path), "x"):
        pass
    late.join()


@pytest.mark.process
@pytest.mark.parametrize("found", ["", "[]", None])
def test_a_holder_that_could_not_sign_still_holds_the_lake(
    tmp_path: Path, holder: subprocess.Popen[str], found: str | None
) -> None:
    (tmp_path / "writing.json").unlink()
    if found is not None:  # a full disk leaves an empty file
        (tmp_path / "writing.json").write_text(found)
    with pytest.raises(LakeLocked, match="Another run is writing"), writing(Settings(home=tmp_path), "x"):
        pass


@pytest.mark.invariant(
    "The error of a second run names the holder of the lake, even if both start at once; a killed holder "
    "leaves no lock."
)
@pytest.mark.process
def test_a_killed_holder_leaves_no_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    with writing(Settings(home=tmp_path), "the next run"):
        assert (tmp_path / "writing.json").exists()
    assert not (tmp_path / "writing.json").exists()


def test_a_folder_that_cannot_be_created_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    settings = Settings(home=tmp_path / "file" / "lake")
    with pytest.raises(MachineError, match="FACTORY_HOME"), writing(settings, "x"):
        pass


def test_a_lake_on_servers_has_no_lock(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path / "none", catalog="postgres", catalog_uri="postgresql://h/db", warehouse="s3://bucket/w"
    )
    with writing(settings, "one"), writing(settings, "two"):
        assert not settings.home.exists()


def test_a_killed_or_failed_process_leaves_no_partial_folder(tmp_path: Path) -> None:
    (tmp_path / ".making-1" / "half").mkdir(parents=True)
    with contextlib.suppress(KeyError), making(tmp_path) as new:
        new.mkdir()
        (new / "half").touch()
        raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ["making.lock"]


def test_a_holder_on_another_machine_is_named_although_its_process_is_not_here(tmp_path: Path) -> None:
    lake = Settings(home=tmp_path)
    with writing(lake, "a long run"):
        signature = {"pid": 2**22 + 1, "host": "elsewhere", "what": "a long run", "since": "00:00:00"}
        lake.files.writer.write_text(json.dumps(signature))
        with (
            pytest.raises(LakeLocked, match=f"process {2**22 + 1} on elsewhere, a long run, since 00:00:00"),
            writing(lake, "another run"),
        ):
            pass
