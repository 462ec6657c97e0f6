"""A lake of every kind of dataset: each input is in one place, by a script that reads tables alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from factory.settings import Settings
from tests.every_dataset import write_every_dataset

SCRIPT = Path(__file__).parent.parent / "examples" / "accounting.py"

pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.timeout(900)]


def test_every_input_of_every_kind_of_dataset_is_in_one_place(tmp_path: Path) -> None:
    places = write_every_dataset(tmp_path)
    lake = Settings(
        home=tmp_path / "lake", spark_master="local[2]", spark_driver_memory="2g", spark_shuffle_partitions=2
    )
    environment = os.environ | lake.environment() | {"FACTORY_DATASETS": str(tmp_path / "datasets.yaml")}
    run = subprocess.run(
        ["timeout", "-k", "5", "800", sys.executable, "-m", "factory.cli.main", "materialize", "*"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-5000:]
    account = subprocess.run(
        [sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False
    )
    assert (account.returncode, account.stderr) == (0, ""), account.stdout + account.stderr
    assert account.stdout.splitlines() == [
        f"{dataset}: {n.rejected} rejected, {n.filtered} filtered, {n.duplicate} duplicate, "
        f"{n.without_tokens} without tokens, {n.packed} packed"
        for dataset, n in sorted(places.items())
    ]
