"""Runs killed by SIGKILL: tables stay at their last published snapshot, the next run finishes the job.

`make test-crash POINTS=20 SEED=7` kills at as many random instants as one likes.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

import pytest

from factory.lake.fingerprint import fingerprint
from factory.lake.publish import AUDIT
from factory.lake.schemas import UNFINGERPRINTED
from factory.lake.tables import Lake
from factory.orchestration.host.reap import leftovers
from factory.settings import Settings
from tests.small_pipeline import CODE, PACKED_CODE, add_file, run_apart, seeded_delays, write_corpus
from tests.undisturbed import ADDED, SmallLake, embedded

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


def run(pipeline: Pipeline, *options: str) -> int:
    done = run_apart(pipeline.corpus, pipeline.lake, "--select", PACKED_CODE, *options)
    assert done.returncode in (0, -9, 137), done.stderr
    return done.returncode


def contents(lake: Settings) -> dict[str, str]:
    tables = Lake(lake)
    return {
        str(name): tables.published(name).lineage.content
        for name in tables.names()
        if tables.table(name).current_snapshot() is not None
    }


@dataclass(frozen=True)
class Pipeline:
    """A lake that the tests of this file disturb one after the other, and the events of its first run."""

    corpus: Path
    lake: Settings
    events: Path


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    folder = tmp_path_factory.mktemp("crash")
    corpus = write_corpus(folder / "corpus", ("json",), prose=False)
    made = Pipeline(corpus, embedded(folder / "lake"), folder / "events")
    assert run(made, "--events", str(made.events)) == 0
    return made


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(1_800)
def test_a_killed_run_publishes_nothing_half(pipeline: Pipeline) -> None:
    add_file(pipeline.corpus, ADDED)  # each kill is at a table that the runs before it did not reach
    for asset, phase, delay_s in POINTS:
        before = contents(pipeline.lake)
        assert run(pipeline, "--kill", f"{asset}:{phase}:{delay_s}") != 0, (
            f"seed {SEED}: {asset} was not killed"
        )
        after = contents(pipeline.lake)
        unpublished = ORDER[ORDER.index(asset) :]
        changed = [table for table in unpublished if after[table] != before[table]]
        assert changed == [], f"seed {SEED}: changed without a publish after the kill at {asset}"


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(3_600)
def test_a_run_killed_at_random_instants_leaves_only_published_rows(
    pipeline: Pipeline, kill_points: int, kill_seed: int
) -> None:
    for point, kill in enumerate(random_instants(pipeline.events, kill_points, kill_seed)):
        print(f"seed {kill_seed}, point {point}: {kill}")
        add_file(pipeline.corpus, f"point{point}")
        run(pipeline, "--kill", kill)
        assert_only_published_rows(pipeline.lake)


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(1_800)
def test_the_run_after_the_kills_gives_what_an_undisturbed_lake_has(
    pipeline: Pipeline, undisturbed: SmallLake
) -> None:
    for path in pipeline.corpus.rglob("point*.py"):  # which leaves the corpus of the other lake
        path.unlink()
    assert run(pipeline) == 0
    assert leftovers(Lake(pipeline.lake), AUDIT) == {}
    assert contents(pipeline.lake) == contents(undisturbed.settings)


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


def assert_only_published_rows(settings: Settings) -> None:
    """Main of every table holds the rows whose fingerprint was sealed before it was published, no others."""
    lake = Lake(settings)
    for name in lake.names():
        if lake.table(name).current_snapshot() is not None:
            rows = lake.read(name)
            columns = [column for column in rows.column_names if column not in UNFINGERPRINTED]
            assert str(fingerprint(rows.to_batches(), columns)) == lake.published(name).lineage.content, name
