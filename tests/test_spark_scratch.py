"""Scratch of Spark is dropped when nobody can need it: its maker is gone, and the JVM that has it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from factory.settings import Settings
from factory.spark_scratch import LOCAL_DIR, drop_dead_scratch, own_scratch

MAKE = """
import sys
from factory.settings import Settings
from factory.spark_scratch import own_scratch
folder = own_scratch(Settings(home=sys.argv[1]))
(folder / "spark-1").mkdir()
print(folder, flush=True)
sys.stdin.read()
"""


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_scratch_stays_as_long_as_its_maker_or_its_jvm_lives(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    mine = own_scratch(settings)
    with running(sys.executable, "-c", MAKE, str(tmp_path)) as maker:
        assert maker.stdout is not None
        folder = Path(maker.stdout.readline().strip())
        assert folder.parent == mine.parent
        assert drop_dead_scratch(settings) == []
    waits = "import sys; print(flush=True); sys.stdin.read()"
    with running(sys.executable, "-c", waits, "--conf", f"{LOCAL_DIR}={folder}") as jvm:
        assert jvm.stdout is not None
        jvm.stdout.readline()
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


def test_scratch_without_an_owner_stays_while_a_jvm_has_the_folder_of_all(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    unowned = tmp_path / "spark" / "blockmgr-1"
    unowned.mkdir(parents=True)
    with running(sys.executable, "-c", "print(flush=True); input()", f"{LOCAL_DIR}={unowned.parent}") as jvm:
        assert jvm.stdout is not None
        jvm.stdout.readline()
        assert drop_dead_scratch(settings) == []
    assert drop_dead_scratch(settings) == [unowned]
