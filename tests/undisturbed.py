"""A lake that the small pipeline made without a disturbance, made once for all test processes of a run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from factory.settings import Settings
from tests.small_pipeline import run_apart, write_corpus


@dataclass(frozen=True)
class SmallLake:
    """All tables of the small corpus; tests read them and change nothing."""

    corpus: Path
    settings: Settings


def undisturbed_lake(tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """The lake of this run of the tests, made by whichever test process asks first."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # what the workers have in common
    # Other cores, partitions, compilers and hashes of strings than those of the lakes that are compared with
    # this one.
    settings = Settings(
        home=folder / "undisturbed" / "lake",
        spark_master="local[1]",
        spark_shuffle_partitions=8,
        spark_driver_memory="1g",
        java_compiler="optimizing",
    )
    small = SmallLake(folder / "undisturbed" / "corpus", settings)
    made = folder / "undisturbed" / "made"
    with FileLock(folder / "undisturbed.lock"):
        if not made.exists():
            write_corpus(small.corpus)
            done = run_apart(small.corpus, small.settings, PYTHONHASHSEED="7", SPARK_SUBMIT_OPTS="")
            assert done.returncode == 0, done.stderr
            made.touch()
    return small
