"""`factory materialize` whose JVM is killed: a sentence, exit code 3, and scratch that the next run drops."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from factory.orchestration.table.spark_failure import JVM_DIED
from factory.settings import Settings
from factory.spark.scratch import drop_dead_scratch

KILLED = """
from pyspark import SparkContext
from factory.cli.main import main
from factory.orchestration.table import progress


def kill(event):
    if event.phase == "written":  # what follows is checked, cleared away and told without a JVM
        SparkContext._gateway.proc.kill()


with progress.listening(kill):
    main()
"""


@pytest.mark.invariant("A run reports a killed JVM in one sentence, and a killed Python worker as such.")
@pytest.mark.process
@pytest.mark.timeout(900)
def test_a_killed_jvm_is_one_sentence_and_leaves_scratch_that_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("A letter.")
    datasets = tmp_path / "datasets.yaml"
    datasets.write_text("datasets: [{name: letters, kind: prose, format: files, paths: letters}]\n")
    home = tmp_path / "lake"
    environment = os.environ | {
        "FACTORY_HOME": str(home),
        "FACTORY_DATASETS": str(datasets),
        "FACTORY_SPARK_MASTER": "local[2]",
        "FACTORY_SPARK_DRIVER_MEMORY": "1g",
    }
    command = [sys.executable, "-c", KILLED, "materialize", "raw.letters"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=800)
    assert (ended.returncode, ended.stderr.splitlines()) == (3, [JVM_DIED])
    assert "Traceback" not in ended.stdout

    left = [path for path in (home / "spark").iterdir() if path.is_dir()]
    assert left
    (home / "spark" / "blockmgr-of-a-release-before").mkdir()
    assert not [
        of for of in psutil.process_iter(["cmdline"]) if str(home) in " ".join(of.info["cmdline"] or ())
    ]
    drop_dead_scratch(Settings(home=home))
    assert [path for path in (home / "spark").iterdir() if path.is_dir()] == []
