"""The `factory` command itself: its options, and errors as one sentence with an exit code."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from factory.cli import error_boundary, main
from factory.cli.error_boundary import INTERRUPTED
from factory.errors import CheckFailed, ConfigurationError, LakeLocked, MachineError
from factory.lake.lock import writing
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.cli.command import factory, process


@pytest.mark.invariant(
    "A mistake on the command line gives one sentence and its own exit code; an unexpected error is not "
    "hidden."
)
@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (("sample", "book"), 2, "namespace.name"),
        (("sample", "row.book"), 2, "Unknown namespace `row`"),
        (("sample", "raw.other"), 5, "factory materialize '*raw.other' --changed"),
        (("sample", "raw.book", "--rejected-by", "word_count"), 2, "Sample filtered.book"),
        (("trace", "document", "nothing"), 8, "`nothing`"),
        (("trace", "batch", "0" * 32, "3"), 8, "no blend"),
    ],
)
def test_a_wrong_name_is_one_sentence_and_its_own_exit_code(
    lake: Lake, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = factory(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_clean_waits_for_no_run(lake: Lake) -> None:
    with writing(lake.settings, "a long run"):
        result = factory("clean")
    assert result.exit_code == LakeLocked.exit_code
    assert "a long run" in result.stderr


@pytest.mark.process
def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for command in ("ui", "serve"):
            done = process(tmp_path, command, "--port", port)
            assert done.returncode == MachineError.exit_code, done.stderr
            assert port in done.stderr
            assert "Traceback" not in done.stderr


def test_a_number_above_all_ports_is_refused(lake: Lake) -> None:
    result = factory("ui", "--port", "99999")
    assert (result.exit_code, result.stdout) == (ConfigurationError.exit_code, "")
    assert result.stderr == "Port 99,999 is out of range. Use 1 to 65,535, or 0 for any.\n"


@pytest.mark.process
@pytest.mark.parametrize(
    "command, java_home",
    [
        (("materialize", "raw.*"), ""),
        pytest.param(("materialize", "raw.*"), "/nonexistent", marks=pytest.mark.slow),
        pytest.param(("demo",), "", marks=pytest.mark.slow),
        (("demo",), "/nonexistent"),
    ],
)
def test_a_missing_jvm_is_one_sentence(tmp_path: Path, command: tuple[str, ...], java_home: str) -> None:
    done = process(tmp_path, *command, PATH="/nonexistent", JAVA_HOME=java_home)
    assert done.returncode == MachineError.exit_code
    (line,) = done.stderr.splitlines()
    assert "needs a JVM of version 17 or newer. " in line


@pytest.mark.process
def test_the_doctor_misses_a_jvm(tmp_path: Path) -> None:
    found = process(tmp_path, "doctor", PATH="/nonexistent", JAVA_HOME="")
    assert found.returncode == MachineError.exit_code


@pytest.mark.process
def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = process(tmp_path / "file" / "lake", "materialize", "*")
    assert done.returncode == MachineError.exit_code
    assert "cannot be written (Not a directory). Set FACTORY_HOME" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.process
def test_a_second_run_on_the_lake_is_told_who_holds_it(tmp_path: Path) -> None:
    with writing(Settings(home=tmp_path), "the first run"):
        done = process(tmp_path, "materialize", "*")
    assert done.returncode == LakeLocked.exit_code
    assert "the first run" in done.stderr


@pytest.mark.invariant(
    "The error of a second run names the holder of the lake, even if both start at once; a killed holder "
    "leaves no lock."
)
@pytest.mark.process
def test_the_loser_of_two_runs_started_at_once_is_told_who_won(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("One note.")
    file, home = tmp_path / "my.yaml", tmp_path / "lake"
    file.write_text("datasets: [{name: notes, kind: prose, format: files, paths: notes}]")
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "factory.cli.main", "materialize", "raw.notes"],
            env=os.environ | {"FACTORY_HOME": str(home), "FACTORY_DATASETS": str(file)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    while not (ended := [run for run in both if run.poll() is not None]):
        time.sleep(0.1)
    (loser,) = ended
    (winner,) = set(both) - {loser}
    winner.send_signal(signal.SIGINT)
    _, said = loser.communicate()
    winner.communicate()
    assert (loser.returncode, winner.returncode) == (LakeLocked.exit_code, INTERRUPTED)
    (line,) = said.splitlines()
    assert line.startswith(f"Another run is writing the lake {home}: process {winner.pid}, ")


@pytest.mark.process
def test_a_dry_run_says_why_and_makes_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("One note.")
    file, home = tmp_path / "my.yaml", tmp_path / "lake"
    file.write_text("datasets: [{name: notes, kind: prose, format: files, paths: notes}]")
    done = process(home, "materialize", "--dry-run", "raw.*", FACTORY_DATASETS=str(file), PATH="/nonexistent")
    assert (done.returncode, done.stderr) == (0, "")
    line, last = done.stdout.splitlines()
    assert line.split() == ["make", "raw.notes", "because", "it", "is", "new"]
    assert last == "Nothing was run. A run makes 1 table, and keeps 0."
    assert Lake(Settings(home=home)).names() == []


def test_a_shell_can_complete_the_commands() -> None:
    asked = {"_FACTORY_COMPLETE": "complete_bash", "COMP_WORDS": "factory mat", "COMP_CWORD": "1"}
    completed = CliRunner().invoke(main.app, [], prog_name="factory", env=asked)
    assert completed.stdout.split() == ["materialize"]


def test_the_version_is_that_of_the_package() -> None:
    assert factory("--version").stdout == f"factory {version('corpus-factory')}\n"


@pytest.mark.process
def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    done = process(tmp_path, "tables", FACTORY_INSTALLATION_SHARE="7")
    assert done.returncode == ConfigurationError.exit_code
    assert "FACTORY_INSTALLATION_SHARE" in done.stderr


def test_a_full_disk_is_recognised_in_whoever_says_it() -> None:
    for said in (
        "java.io.IOException: No space left on device",
        "java.nio.file.FileSystemException: /x: No space left on device",
        "OSError: [Errno 28] No space left on device: '/data/x'",
        "IOError: Error writing bytes to file. Detail: [errno 28] No space left on device",
        "No space left on device (os error 28)",
        "database or disk is full",
    ):
        known = error_boundary.translate(RuntimeError(f"raw.x: {said}"))
        assert isinstance(known, MachineError)
        assert "The disk is full" in str(known)


def test_data_that_speak_of_a_full_disk_are_none() -> None:
    quoted = "Rejected: not_json, for example `No space left on device in docker: database or disk is full`."
    for error in (CheckFailed(quoted), ConfigurationError(quoted)):
        assert error_boundary.translate(error) is error


@pytest.mark.parametrize("words", ["disk I/O error", "unable to open database file"])
def test_words_of_any_reason_mean_a_full_disk_where_no_room_is_left(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTORY_HOME", str(tmp_path / "not made yet"))
    error = sqlite3.OperationalError(words)
    assert error_boundary.translate(error) is None
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4096))
    assert isinstance(error_boundary.translate(error), MachineError)
    assert error_boundary.translate(RuntimeError("no such table")) is None


def test_a_refused_access_names_what_was_refused_and_claims_no_more() -> None:
    read = error_boundary.translate(PermissionError(13, "Permission denied", "/data/web.jsonl"))
    assert str(read).startswith("Access was refused: Permission denied (/data/web.jsonl). ")
    nameless = error_boundary.translate(PermissionError(1, "Operation not permitted"))
    assert str(nameless).startswith("Access was refused: Operation not permitted. ")
    assert isinstance(nameless, MachineError)
    read_only = error_boundary.translate(OSError(errno.EROFS, "Read-only file system", "/data/lake"))
    assert str(read_only).startswith("Access was refused: Read-only file system (/data/lake). ")


@pytest.mark.invariant(
    "A mistake on the command line gives one sentence and its own exit code; an unexpected error is not "
    "hidden."
)
def test_an_error_nobody_foresaw_is_not_hidden() -> None:
    assert error_boundary.translate(KeyError("surprise")) is None
