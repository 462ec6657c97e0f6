"""Runs killed by SIGKILL: tables stay at their last published snapshot, the next run finishes the job.

`make test-crash POINTS=20 SEED=7` kills at as many random instants as one likes.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from factory.lake.fingerprint import fingerprint
from factory.lake.publish import AUDIT
from factory.lake.schemas import UNFINGERPRINTED
from factory.lake.tables import Lake
from factory.orchestration.host.reap import leftovers
from factory.settings import Settings
from tests.small_pipeline import CODE, PACKED_CODE, seeded_delays, write_corpus

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

# The tables of the pipeline, each after what it is made of.
ORDER = [
    *(f"{namespace}.{CODE}" for namespace in ("raw", "signals", "filtered")),
    *(
        f"dedup.small_code_{part}"
        for part in ("bags", "vocabulary", "signatures", "buckets", "edges", "components", "decisions")
    ),
    f"deduplicated.{CODE}",
    "models.small",
    *(f"depsort.{CODE}_{part}" for part in ("symbols", "dependencies")),
    *(f"{namespace}.{CODE}" for namespace in ("sorted", "tokenized", "packed")),
]


def run(home: Path, corpus: Path, *kill: str) -> int:
    options = ("--select", PACKED_CODE, *kill)
    environment = os.environ | {
        "FACTORY_HOME": str(home),
        "FACTORY_SPARK_MASTER": "local[2]",
        "FACTORY_SPARK_DRIVER_MEMORY": "1g",
    }
    done = subprocess.run(
        ["timeout", "-k", "5", "900", sys.executable, "-m", "tests.small_pipeline", str(corpus), *options],
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


@dataclass(frozen=True)
class Line:
    """A lake that the tests of this file disturb one after the other, and what its first run told."""

    corpus: Path
    home: Path
    events: Path


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Line:
    folder = tmp_path_factory.mktemp("crash")
    made = Line(write_corpus(folder / "corpus", ("json",), prose=False), folder / "lake", folder / "events")
    assert run(made.home, made.corpus, "--events", str(made.events)) == 0
    return made


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(1_800)
def test_a_killed_run_publishes_nothing_half(line: Line) -> None:
    for asset, phase, delay_s in POINTS:
        _change(line.corpus, asset)
        before = contents(line.home)
        assert run(line.home, line.corpus, "--kill", f"{asset}:{phase}:{delay_s}") != 0, (
            f"seed {SEED}: {asset} was not killed"
        )
        after = contents(line.home)
        unpublished = ORDER[ORDER.index(asset) :]
        changed = [table for table in unpublished if after[table] != before[table]]
        assert changed == [], f"seed {SEED}: changed without a publish after the kill at {asset}"


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(3_600)
def test_a_run_killed_at_random_instants_leaves_only_published_rows(
    line: Line, kill_points: int, kill_seed: int
) -> None:
    for point, kill in enumerate(random_instants(line.events, kill_points, kill_seed)):
        print(f"seed {kill_seed}, point {point}: {kill}")
        _change(line.corpus, f"point{point}")
        run(line.home, line.corpus, "--kill", kill)
        assert_only_published_rows(line.home)


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(1_800)
def test_the_run_after_the_kills_gives_what_an_undisturbed_lake_has(line: Line, tmp_path: Path) -> None:
    _change(line.corpus, "last")
    assert run(line.home, line.corpus) == 0
    assert leftovers(Lake(Settings(home=line.home)), AUDIT) == {}
    assert run(tmp_path, line.corpus) == 0
    assert contents(line.home) == contents(tmp_path)


def random_instants(events: Path, n: int, seed: int) -> list[str]:
    """Instants spread evenly over a run, each as ASSET:PHASE:DELAY_S after the event before it."""
    chance = random.Random(seed)
    told = [line.split() for line in events.read_text().splitlines()]
    times = [float(seconds) for seconds, _, _ in told]
    instants = []
    for _ in range(n):
        at = chance.uniform(times[0], times[-1])
        seconds, asset, phase = told[bisect_right(times, at) - 1]
        instants.append(f"{asset}:{phase}:{at - float(seconds):.3f}")
    return instants


def assert_only_published_rows(home: Path) -> None:
    """Main of every table holds the rows whose fingerprint was sealed before it was published, no others."""
    lake = Lake(Settings(home=home))
    for name in lake.names():
        if lake.table(name).current_snapshot() is not None:
            rows = lake.read(name)
            columns = [column for column in rows.column_names if column not in UNFINGERPRINTED]
            assert str(fingerprint(rows.to_batches(), columns)) == lake.published(name).lineage.content, name


def _change(corpus: Path, tag: str) -> None:
    """Add a file, so that every table downstream has something new to hold."""
    original = corpus / "code" / "json" / "json" / "decoder.py"
    name = tag.replace(".", "_")
    shutil.copyfile(original, corpus / "code" / "json" / f"{name}.py")
    with (corpus / "code" / "json" / f"{name}.py").open("a") as file:
        file.writelines(f"\n\ndef {name}_{n}(value):\n    return value + {n}\n" for n in range(60))
