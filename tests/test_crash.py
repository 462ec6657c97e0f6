"""Runs killed by SIGKILL: tables stay at their last published snapshot, the next run finishes the job."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from factory.lake.publish import AUDIT
from factory.lake.tables import Lake
from factory.orchestration.reap import leftovers
from factory.settings import Settings
from tests.small_line import CODE, seeded_delays, write_corpus

SEED = 20
DELAYS = seeded_delays(SEED, 3)

# (asset, phase it has reached, seconds after that): inside a write, between audit and publish, twice inside
# dedup, between the publishes of two tables of one asset
POINTS = [
    (f"raw.{CODE}", "started", DELAYS[0] + 1.0),
    (f"filtered.{CODE}", "sealed", 0),
    ("dedup.small_code_edges", "started", DELAYS[1]),
    ("dedup.small_code_decisions", "started", DELAYS[2]),
    (f"packed.{CODE}", "publishing", 0),
]

# The tables of the line, each after what it is made of.
ORDER = [
    *(f"{namespace}.{CODE}" for namespace in ("raw", "signals", "filtered")),
    *(
        f"dedup.small_code_{part}"
        for part in ("vocabulary", "signatures", "buckets", "edges", "components", "decisions")
    ),
    f"deduplicated.{CODE}",
    "models.small",
    *(f"depsort.{CODE}_{part}" for part in ("symbols", "dependencies")),
    *(f"{namespace}.{CODE}" for namespace in ("sorted", "tokenized", "packed")),
]


def run(home: Path, corpus: Path, *kill: str) -> int:
    environment = os.environ | {
        "FACTORY_HOME": str(home),
        "FACTORY_SPARK_MASTER": "local[2]",
        "FACTORY_SPARK_DRIVER_MEMORY": "1g",
    }
    done = subprocess.run(
        ["timeout", "-k", "5", "200", sys.executable, "-m", "tests.small_line", str(corpus), *kill],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    _wait_for_jvm(home)
    assert done.returncode in (0, -9, 137), done.stderr
    return done.returncode


def _wait_for_jvm(home: Path) -> None:
    """A killed run's JVM outlives it by a second or two and may still be writing."""
    for process in psutil.process_iter(["cmdline"]):
        if str(home) in " ".join(process.info["cmdline"] or []) and process.pid != os.getpid():
            process.wait(timeout=60)


def contents(home: Path) -> dict[str, str]:
    lake = Lake(Settings(home=home))
    return {
        str(name): lake.published(name).lineage.content
        for name in lake.names()
        if lake.table(name).current_snapshot() is not None
    }


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(600)
def test_a_killed_run_publishes_nothing_half_and_the_next_finishes(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", ("json",), prose=False)
    home = tmp_path / "lake"
    assert run(home, corpus) == 0
    for asset, phase, delay_s in POINTS:
        _change(corpus, asset)
        before = contents(home)
        assert run(home, corpus, f"{asset}:{phase}:{delay_s}") != 0, f"seed {SEED}: {asset} was not killed"
        after = contents(home)
        unpublished = ORDER[ORDER.index(asset) :]
        changed = [table for table in unpublished if after[table] != before[table]]
        assert changed == [], f"seed {SEED}: changed without a publish after the kill at {asset}"
    assert run(home, corpus) == 0
    assert leftovers(Lake(Settings(home=home)), AUDIT) == {}

    undisturbed = tmp_path / "undisturbed"
    assert run(undisturbed, corpus) == 0
    assert contents(home) == contents(undisturbed)


def _change(corpus: Path, tag: str) -> None:
    """Add a file, so that every table downstream has something new to hold."""
    original = corpus / "code" / "json" / "json" / "decoder.py"
    name = tag.replace(".", "_")
    shutil.copyfile(original, corpus / "code" / "json" / f"{name}.py")
    with (corpus / "code" / "json" / f"{name}.py").open("a") as file:
        file.writelines(f"\n\ndef {name}_{n}(value):\n    return value + {n}\n" for n in range(60))
