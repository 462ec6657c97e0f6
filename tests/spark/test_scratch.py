"""Scratch of Spark is dropped when its maker and the JVM that uses it are gone."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from factory.settings import Settings
from factory.spark.scratch import LOCAL_DIR, drop_dead_scratch, own_scratch
from factory.spark.session import spark_conf

MAKE = """
import sys
from factory.settings import Settings
from factory.spark.scratch import own_scratch
folder = own_scratch(Settings(home=sys.argv[1]))
(folder / "spark-1").mkdir()
print(folder, flush=True)
sys.stdin.read()
"""
JVM = (sys.executable, "-c", "print(flush=True); input()", "--conf")  # a process of a JVM's command line


@contextmanager
def running(*command: str) -> Iterator[str]:
    """A process that runs until the end of the block, and its first line of output."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.invariant("Spark's scratch stays while its process or JVM lives; the next run drops it.")
def test_scratch_stays_as_long_as_its_maker_or_its_jvm_lives(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    mine = own_scratch(settings)
    with running(sys.executable, "-c", MAKE, str(tmp_path)) as line:
        folder = Path(line)
        assert folder.parent == mine.parent
        assert drop_dead_scratch(settings) == []
    with running(*JVM, f"{LOCAL_DIR}={folder}"):
        assert drop_dead_scratch(settings) == []  # the maker was killed, and the JVM still writes there
    assert drop_dead_scratch(settings) == [folder]
    assert not folder.exists()
    assert mine.exists()


def test_another_process_of_the_same_number_is_not_the_maker(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    mine = own_scratch(settings)
    host_and_pid = mine.name.rsplit("-", 1)[0]
    before = mine.with_name(f"{host_and_pid}-1000")
    before.mkdir()
    elsewhere = mine.with_name("another-host-1-1000")
    elsewhere.mkdir()
    assert drop_dead_scratch(settings) == [before]
    assert elsewhere.exists()


def test_unowned_scratch_stays_while_a_jvm_uses_its_folder(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    unowned = tmp_path / "spark" / "blockmgr-1"
    unowned.mkdir(parents=True)
    with running(*JVM, f"{LOCAL_DIR}={unowned.parent}"):
        assert drop_dead_scratch(settings) == []
    assert drop_dead_scratch(settings) == [unowned]


def test_a_folder_with_blanks_is_one_option_of_the_jvm(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "my lake")
    options = shlex.split(spark_conf(settings)["spark.driver.extraJavaOptions"])  # as Spark splits them
    assert f"-Djava.io.tmpdir={own_scratch(settings)}" in options
    assert all(option.startswith("-") for option in options)
