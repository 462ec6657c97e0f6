"""Runs killed by SIGKILL: tables stay at their last published snapshot, the next run finishes the job.

`make test-crash POINTS=20 SEED=7` kills at as many random instants as one likes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from factory.lake.fingerprint import fingerprint
from factory.lake.publish import AUDIT
from factory.lake.schemas.base import UNFINGERPRINTED
from factory.lake.tables import Lake
from factory.orchestration.host.reap import leftovers
from factory.settings import Settings
from tests.small_pipeline import CODE, PACKED_CODE, add_file, run_apart, write_corpus
from tests.undisturbed import SmallLake

Point = tuple[str, str, float]  # asset, phase that it has reached, seconds after that
INSIDE_A_WRITE = (f"raw.{CODE}", "started", 1.3)
BEFORE_PUBLISHING = (f"filtered.{CODE}", "sealed", 0.0)
INSIDE_DEDUP = [("dedup.small_code_edges", "started", 0.2), ("dedup.small_code_decisions", "started", 0.5)]
BETWEEN_TWO_TABLES = (f"packed.{CODE}", "publishing", 0.0)
_LONGEST_S = 1.5  # until most assets have their rows

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


def killed_at(pipeline: Pipeline, asset: str, phase: str, delay_s: float) -> bool:
    """Run the pipeline and kill it `delay_s` after `asset` has reached `phase`; whether that kill came."""
    kill = f"{asset}:{phase}:{delay_s}"
    done = run_apart(pipeline.corpus, pipeline.lake, "--select", PACKED_CODE, "--kill", kill)
    assert done.returncode in (0, -9, 137), done.stderr
    return done.returncode != 0


def contents(lake: Settings) -> dict[str, str]:
    tables = Lake(lake)
    return {
        str(name): tables.published(name).lineage.content
        for name in tables.names()
        if tables.table(name).current_snapshot() is not None
    }


@dataclass(frozen=True)
class Pipeline:
    """A corpus and its lake, which a test disturbs."""

    corpus: Path
    lake: Settings


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    lake = Settings(home=tmp_path / "lake", spark_master="local[2]", spark_driver_memory="1g")
    return Pipeline(write_corpus(tmp_path / "corpus"), lake)


@pytest.mark.invariant(
    "A run killed at any point publishes no partial table, and the next run ends with the tables of an "
    "undisturbed run."
)
@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    "points",
    [
        pytest.param([INSIDE_A_WRITE, BEFORE_PUBLISHING, BETWEEN_TWO_TABLES], id="of each kind"),
        pytest.param(INSIDE_DEDUP, id="inside dedup", marks=pytest.mark.slow),
    ],
)
def test_killed_runs_publish_nothing_half_and_the_next_finishes(
    pipeline: Pipeline, undisturbed: SmallLake, points: list[Point]
) -> None:
    for asset, phase, delay_s in points:
        assert killed_at(pipeline, asset, phase, delay_s)
        published = contents(pipeline.lake)
        assert [table for table in ORDER if table in published] == ORDER[: ORDER.index(asset)]
    assert_the_next_run_finishes(pipeline, undisturbed)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(3_600)
def test_runs_killed_at_random_instants_leave_only_published_rows(
    pipeline: Pipeline, undisturbed: SmallLake, kill_points: int, kill_seed: int
) -> None:
    chance = random.Random(kill_seed)
    for point in range(kill_points):
        asset, delay_s = chance.choice(ORDER), round(chance.uniform(0, _LONGEST_S), 2)
        print(f"seed {kill_seed}, point {point}: {asset}, {delay_s} s after its start")
        before = contents(pipeline.lake)
        add_file(pipeline.corpus, f"point{point}")
        assert killed_at(pipeline, asset, "started", delay_s)
        after = contents(pipeline.lake)
        unpublished = ORDER[ORDER.index(asset) :]
        assert [after.get(table) for table in unpublished] == [before.get(table) for table in unpublished]
        assert_only_published_rows(pipeline.lake)
    for path in pipeline.corpus.rglob("point*.py"):  # as in the corpus of the undisturbed lake
        path.unlink()
    assert_the_next_run_finishes(pipeline, undisturbed)


def assert_the_next_run_finishes(pipeline: Pipeline, undisturbed: SmallLake) -> None:
    """A run after the kills leaves the tables that an undisturbed lake has, and no branch of an audit."""
    done = run_apart(pipeline.corpus, pipeline.lake, "--select", PACKED_CODE)
    assert done.returncode == 0, done.stderr
    assert leftovers(Lake(pipeline.lake), AUDIT) == {}
    published, expected = contents(pipeline.lake), contents(undisturbed.settings)
    assert [table for table in ORDER if table in published] == ORDER
    assert published == {table: expected[table] for table in published}


def assert_only_published_rows(settings: Settings) -> None:
    """Main of every table holds the rows whose fingerprint was sealed before it was published, no others."""
    lake = Lake(settings)
    for name in lake.names():
        if lake.table(name).current_snapshot() is not None:
            rows = lake.read(name)
            columns = [column for column in rows.column_names if column not in UNFINGERPRINTED]
            assert str(fingerprint(rows.to_batches(), columns)) == lake.published(name).lineage.content, name
