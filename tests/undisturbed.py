"""A lake that the small pipeline made without a disturbance, made once for all test processes of a run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from factory.settings import Settings
from tests.small_pipeline import PACKED_CODE, add_file, run_apart, write_corpus

ADDED = "added"  # a file of the corpus that is not the standard library's


@dataclass(frozen=True)
class SmallLake:
    """The packed code of one small corpus; tests read it and change nothing."""

    corpus: Path
    settings: Settings


def embedded(home: Path) -> Settings:
    """An embedded lake below `home` as small as the machine of a test."""
    return Settings(home=home, spark_master="local[2]", spark_driver_memory="1g")


def undisturbed_lake(tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """The lake of this run of the tests, made by whichever test process asks first."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # what the workers have in common
    small = SmallLake(folder / "undisturbed" / "corpus", embedded(folder / "undisturbed" / "lake"))
    made = folder / "undisturbed" / "made"
    with FileLock(folder / "undisturbed.lock"):
        if not made.exists():
            add_file(write_corpus(small.corpus, ("json",), prose=False), ADDED)
            done = run_apart(small.corpus, small.settings, "--select", PACKED_CODE)
            assert done.returncode == 0, done.stderr
            made.touch()
    return small
