"""A lake on a real Postgres: publishing, conflicts, who is alive, restarts, refusals, Dagster's records."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from factory.cli.clean import clean
from factory.errors import ConfigurationError, FactoryError, MachineError, PublishConflict
from factory.lake.catalog import open_catalog
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.presence import dead, present
from factory.lake.publish import AUDIT, Audit, append, branch_name, drop_branches, head, publish, seal
from factory.lake.schemas.dedup import COMPONENTS
from factory.lake.servers import probe_postgres
from factory.lake.tables import Lake
from factory.orchestration.host.instance import open_instance
from factory.orchestration.host.launcher import LakeRunLauncher
from factory.orchestration.host.reap import LAKE_TAG, lake_session, leftovers, reap
from factory.settings import Settings, settings
from tests.engines.processes import Postgres
from tests.ports import free_ports

LINEAGE = Lineage(asset="dedup.t", run_id="run", code_version="1", upstream={"raw.x": 7})
TABLE = TableName("dedup", "t")

pytestmark = pytest.mark.process


@pytest.fixture
def lake(postgres: Postgres, unique: str, tmp_path: Path) -> Lake:
    """An empty lake whose catalog and Dagster records are in a database of its own."""
    uri = postgres.database(unique)
    return Lake(
        Settings(
            home=tmp_path,
            catalog="postgres",
            catalog_uri=uri,
            dagster_uri=uri,
            warehouse=str(tmp_path / "warehouse"),
        )
    )


def rows(*ids: str) -> pa.Table:
    return pa.Table.from_pylist(
        [{"doc_id": doc_id, "component": doc_id} for doc_id in ids], schema=COMPONENTS.columns
    )


def audited(lake: Lake, run_id: str, *ids: str) -> Audit:
    """Rows added on the audit branch of a run that began at main as it is now; main has row `x` at least."""
    table = lake.create(TABLE, COMPONENTS)
    if table.current_snapshot() is None:  # PyIceberg begins no branch on an empty main
        append(lake, TABLE, COMPONENTS, rows("x"), LINEAGE)
        table = lake.table(TABLE)
    at = head(table, "main")
    assert at is not None
    audit = Audit(TABLE, branch_name(run_id), at)
    table.manage_snapshots().create_branch(at, audit.branch).commit()
    lake.table(TABLE).append(rows(*ids), branch=audit.branch)
    seal(lake, audit, LINEAGE.with_content("0-0"))
    return audit


def test_rows_are_written_audited_published_and_read_with_their_lineage(lake: Lake) -> None:
    audit = audited(lake, "one", "a", "b")
    assert lake.read(TABLE, ["doc_id"])["doc_id"].to_pylist() == ["x"]  # main is as it was until then
    published = publish(lake, audit, {"of": "mine"})
    assert published.lineage.upstream == {"raw.x": 7}
    assert lake.published(TABLE).snapshot_id == published.snapshot_id
    assert sorted(lake.read(TABLE, ["doc_id"])["doc_id"].to_pylist()) == ["a", "b", "x"]
    assert lake.table(TABLE).properties["of"] == "mine"
    assert leftovers(lake, AUDIT) == {}


def test_concurrent_publishes_one_wins_the_other_names_both_snapshots(lake: Lake) -> None:
    first, second = audited(lake, "one", "a"), audited(lake, "two", "b")
    won = publish(lake, first)
    with pytest.raises(PublishConflict, match=rf"from snapshot {second.began_at} to {won.snapshot_id}"):
        publish(lake, second)
    assert sorted(lake.read(TABLE, ["doc_id"])["doc_id"].to_pylist()) == ["a", "x"]


def test_appends_at_once_lose_nothing_and_add_up_their_fingerprints(lake: Lake) -> None:
    lake.create(TABLE, COMPONENTS)
    writers = [Lake(lake.settings) for _ in range(4)]

    def write(number: int) -> None:
        for turn in range(4):
            append(writers[number], TABLE, COMPONENTS, rows(f"{number}-{turn}"), LINEAGE)

    with ThreadPoolExecutor(len(writers)) as pool:
        list(pool.map(write, range(len(writers))))
    found = lake.read(TABLE, ["doc_id"])["doc_id"].to_pylist()
    assert sorted(found) == sorted(f"{number}-{turn}" for number in range(4) for turn in range(4))
    other = TableName("dedup", "other")
    lake.create(other, COMPONENTS)
    at_once = append(lake, other, COMPONENTS, rows(*found), LINEAGE)
    assert lake.published(TABLE).lineage.content == at_once.lineage.content


def test_many_processes_may_open_a_new_catalog_at_the_same_moment(lake: Lake) -> None:
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: open_catalog(lake.settings).list_namespaces(), range(8)))
    assert opened == [[]] * 8


def test_an_open_lake_survives_a_restart_of_postgres(lake: Lake, tmp_path: Path) -> None:
    own = Postgres()
    try:
        settings = lake.settings.model_copy(update={"catalog_uri": own.database("lake")})
        kept = Lake(settings)
        publish(kept, audited(kept, "one", "a"))
        own.stop()
        own.start()
        assert kept.published(TABLE).rows == 2
    finally:
        own.remove()


@pytest.mark.parametrize(
    "wrong, kind, words",
    [
        (
            lambda it: it.uri("postgres", password="hush"),
            ConfigurationError,
            "password authentication failed",
        ),
        (lambda it: it.uri("nowhere"), ConfigurationError, 'database "nowhere" does not exist'),
        (lambda it: it.uri("postgres", user="nobody"), ConfigurationError, 'user "nobody"'),
        (lambda _: f"postgresql://u:hush@127.0.0.1:{free_ports(1)[0]}/d", MachineError, "Connection refused"),
        (lambda _: "postgresql://u:hush@nowhere.invalid/d", MachineError, "nowhere.invalid"),
    ],
    ids=["password", "database", "user", "port", "host"],
)
def test_an_absent_postgres_is_one_sentence_without_the_password(
    lake: Lake, postgres: Postgres, wrong: Callable[[Postgres], str], kind: type[FactoryError], words: str
) -> None:
    uri = wrong(postgres)
    catalog = Lake(lake.settings.model_copy(update={"catalog_uri": uri}))
    records = lake.settings.model_copy(update={"dagster_uri": uri})
    attempts: list[tuple[Callable[[], Any], str]] = [
        (catalog.names, "FACTORY_CATALOG_URI"),
        (lambda: open_instance(records), "FACTORY_DAGSTER_URI"),
        (lambda: probe_postgres(uri, "FACTORY_CATALOG_URI"), "FACTORY_CATALOG_URI"),
    ]
    for attempt, setting in attempts:
        with pytest.raises(kind, match=words) as raised:
            attempt()
        said = str(raised.value)
        assert setting in said
        assert "hush" not in said
        assert len(said.splitlines()) == 1


def test_a_user_who_may_not_create_tables_is_told_so(postgres: Postgres, unique: str) -> None:
    postgres.database(unique)
    postgres.execute(f"create role {unique} login password 'x'")
    uri = postgres.uri(unique, user=unique, password="x")
    with pytest.raises(ConfigurationError, match=f"User {unique} may not create tables in database {unique}"):
        probe_postgres(uri, "FACTORY_CATALOG_URI")
    with pytest.raises(MachineError, match="permission denied for schema public"):
        Lake(Settings(catalog="postgres", catalog_uri=uri, warehouse="/tmp/w")).names()
    assert probe_postgres(postgres.uri(unique), "X").endswith(f"database {unique}")


WRITE = """
import sys
from factory.lake.presence import present
from factory.settings import Settings
with present(Settings(), sys.argv[1]):
    print("in", flush=True)
    sys.stdin.read()
"""


def wait_until(holds: Callable[[], bool], wait_s: float = 60, every_s: float = 0.02) -> None:
    """Return once `holds`, at the latest after `wait_s`."""
    deadline = time.monotonic() + wait_s
    while not holds() and time.monotonic() < deadline:
        time.sleep(every_s)


@contextmanager
def elsewhere(settings: Settings, token: str) -> Any:
    """Another process that is in the lake as `token`, until the block ends and Postgres has noticed."""
    other = subprocess.Popen(
        [sys.executable, "-c", WRITE, token],
        env=os.environ | settings.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "in\n"
            yield other
        finally:
            other.kill()
    wait_until(lambda: dead(settings, [token]) == [token])


def test_a_run_is_alive_until_its_process_ends_however_it_ends(lake: Lake) -> None:
    with elsewhere(lake.settings, "audit_one") as other, present(lake.settings, "audit_two"):
        assert dead(lake.settings, ["audit_one", "audit_three", "audit_two"]) == ["audit_three"]
        other.send_signal(signal.SIGKILL)
        other.wait()
        wait_until(lambda: "audit_one" in dead(lake.settings, ["audit_one"]))  # the server notices after that
        assert dead(lake.settings, ["audit_one", "audit_two"]) == ["audit_one"]
    wait_until(lambda: dead(lake.settings, ["audit_two"]) == ["audit_two"])
    assert dead(lake.settings, ["audit_two"]) == ["audit_two"]


def begun(instance: dg.DagsterInstance, **tags: str) -> dg.DagsterRun:
    """A run that Dagster holds for running."""
    run = dg.DagsterRun(job_name="pipeline", status=dg.DagsterRunStatus.STARTED, tags=tags)
    instance.add_run(run)
    return run


@pytest.mark.invariant("On servers a run drops the branches of dead runs only.")
def test_a_run_drops_the_branches_of_dead_runs_and_of_no_other(lake: Lake) -> None:
    with open_instance(lake.settings) as instance:
        mine, alive, killed, starting = (
            begun(instance, **tags) for tags in ({}, {LAKE_TAG: "in"}, {LAKE_TAG: "in"}, {})
        )
        audited(lake, alive.run_id, "a")
        audited(lake, killed.run_id, "k")
        with elsewhere(lake.settings, branch_name(alive.run_id)), lake_session(lake, instance, mine.run_id):
            assert leftovers(lake, AUDIT) == {TABLE: [branch_name(alive.run_id)]}
            statuses = [instance.get_run_by_id(run.run_id).status for run in (mine, alive, killed, starting)]  # type: ignore[union-attr]
            started, failed = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE
            assert statuses == [started, started, failed, started]
            assert reap(instance, lake, mine.run_id) == []
        left = instance.get_run_by_id(mine.run_id)
        assert left is not None
        assert left.tags[LAKE_TAG] == "left"


def test_clean_drops_the_branches_of_dead_runs_and_of_no_other(lake: Lake) -> None:
    alive, killed = audited(lake, "alive", "a"), audited(lake, "killed", "k")
    with elsewhere(lake.settings, alive.branch):
        assert clean(lake.settings) == {str(TABLE): [killed.branch]}
    assert clean(lake.settings) == {str(TABLE): [alive.branch]}


def test_a_run_whose_branch_was_dropped_publishes_nothing(lake: Lake) -> None:
    audit = audited(lake, "one", "a")
    drop_branches(lake, TABLE, audit.branch)
    with pytest.raises(PublishConflict, match="another run took this one for dead"):
        seal(lake, audit, LINEAGE.with_content("0-0"))
    assert lake.read(TABLE, ["doc_id"])["doc_id"].to_pylist() == ["x"]


def test_dagsters_monitor_learns_which_runs_were_killed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in lake.settings.environment().items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    with open_instance(lake.settings) as instance:
        launcher = instance.run_launcher
        assert isinstance(launcher, LakeRunLauncher)
        killed, starting = begun(instance, **{LAKE_TAG: "in"}), begun(instance)
        health = [launcher.check_run_worker_health(run).status.value for run in (killed, starting)]
        assert health == ["FAILED", "RUNNING"]
        with elsewhere(lake.settings, branch_name(killed.run_id)):
            assert launcher.check_run_worker_health(killed).status.value == "RUNNING"
    settings.cache_clear()


DEFINITIONS = """
import dagster as dg

parts = dg.StaticPartitionsDefinition(["a", "b", "c"])


@dg.asset(partitions_def=parts)
def letters(context):
    return dg.MaterializeResult(metadata={"letter": context.partition_key})


defs = dg.Definitions([letters], executor=dg.in_process_executor)
"""


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_a_backfill_passes_the_queue_with_all_records_in_postgres(
    lake: Lake, postgres: Postgres, unique: str, tmp_path: Path
) -> None:
    (tmp_path / "letters.py").write_text(DEFINITIONS)
    with open_instance(lake.settings) as instance:
        environment = (
            os.environ | lake.settings.environment() | {"DAGSTER_HOME": str(lake.settings.files.dagster)}
        )
        run = ["timeout", "-k", "5", "1000", sys.executable]
        daemon = subprocess.Popen(
            [*run, "-m", "dagster._daemon", "run", "-f", "letters.py"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=(tmp_path / "dagster.log").open("wb"),
        )
        try:
            command = ["-m", "dagster", "job", "backfill", "-f", "letters.py", "-j", "__ASSET_JOB"]
            subprocess.run(
                [*run, *command, "--all", "--noprompt"],
                cwd=tmp_path,
                env=environment,
                check=True,
                capture_output=True,
            )
            wait_until_ended(instance, 3, tmp_path / "dagster.log")
        finally:
            daemon.terminate()
            daemon.wait()
        runs = instance.get_runs()
        assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS] * 3
        for run in runs:
            assert len(instance.all_logs(run.run_id, of_type=dg.DagsterEventType.RUN_ENQUEUED)) == 1
        assert instance.get_materialized_partitions(dg.AssetKey("letters")) == {"a", "b", "c"}
    assert postgres.execute("select count(*) from runs", unique) == [(3,)]
    assert not list(lake.settings.files.dagster.rglob("*.db"))


def wait_until_ended(instance: dg.DagsterInstance, n: int, log: Path) -> None:
    """Return once `n` runs have ended; a run that is still going when its server stops counts as failed."""
    ended = dg.RunsFilter(
        statuses=[dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
    )
    wait_until(lambda: instance.get_runs_count(ended) == n, wait_s=600, every_s=0.5)
    assert instance.get_runs_count(ended) == n, log.read_text()[-3000:]
