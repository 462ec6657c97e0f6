"""The same line on other engines, by settings alone: the same fingerprints as embedded, the same batches.

Every line runs in a process of its own that knows nothing but its environment, as a person would start it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from blender import BlenderClient, Source
from factory.cli.demo import digest
from factory.cli.doctor import examine
from factory.cli.serving import blender_process
from factory.errors import MachineError
from factory.lake.names import packed
from factory.lake.publish import AUDIT
from factory.lake.tables import Lake
from factory.orchestration.host.instance import open_instance
from factory.orchestration.host.reap import leftovers
from factory.settings import Settings
from factory.spark.session import require_master
from tests.engines.processes import QUOTED, ObjectStore, Postgres, SparkCluster
from tests.ports import free_ports
from tests.small_pipeline import CODE, PACKED_CODE
from tests.undisturbed import SmallLake

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2_400)]

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
STEPS = 6


def run(corpus: Path, settings: Settings) -> list[list[str]]:
    """Run the pipeline in a process of its own; gives the command lines of that process and its children."""
    given = settings.model_copy(update={"spark_driver_memory": "1g"}).environment()
    line = ["-m", "tests.small_pipeline", str(corpus), "--select", PACKED_CODE]
    log = settings.home / "pipeline.log"  # a pipe would have to be read meanwhile
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["timeout", "-k", "5", "900", sys.executable, *line],
            env=os.environ | given,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    seen: dict[int, list[str]] = {}
    while process.poll() is None:
        for child in psutil.Process(process.pid).children(recursive=True):
            try:
                seen[child.pid] = child.cmdline() or seen.get(child.pid, [])  # one that is ending has none
            except psutil.Error:
                continue  # it has just ended
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            continue
    assert process.returncode == 0, log.read_text()[-4000:]
    return list(seen.values())


def contents(settings: Settings) -> dict[str, str]:
    """The fingerprint of every table."""
    lake = Lake(settings)
    return {str(name): lake.published(name).lineage.content for name in lake.names()}


def batches(settings: Settings) -> tuple[str, list[str]]:
    """The id of a blend of the lake and the digests of its first steps, from a Blender of its own."""
    with blender_process(settings) as address, BlenderClient(address) as blender:
        source = Source(str(packed(CODE)), weight=2, shuffle="row", oversample=True)
        blend = blender.create([source], seed=3)
        return blend.id, [digest(batch) for batch in blender.fetch(blend.id, offset=0, steps=STEPS)]


STARVED = """
import factory.spark.session
from factory.errors import MachineError
from factory.settings import settings

factory.spark.session._EXECUTOR_WAIT_S = 4
try:
    factory.spark.session.build_session(settings())
except MachineError as error:
    print(error)
"""


def test_a_cluster_without_room_for_an_executor_is_an_error(cluster: SparkCluster, tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path, spark_master=cluster.url, spark_driver_host="127.0.0.1", spark_executor_memory="100g"
    )
    said = subprocess.run(
        ["timeout", "-k", "5", "900", sys.executable, "-c", STARVED],
        env=os.environ | settings.environment(),
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert f"The cluster {cluster.url} gave no executor of 100g within 4 s." in said
    assert "FACTORY_SPARK_EXECUTOR_MEMORY" in said


@pytest.mark.parametrize("address", ["127.0.0.1:PORT", "nowhere.invalid:7077", "127.0.0.1"])
def test_a_master_that_is_away_is_one_sentence_before_anything_starts(address: str, tmp_path: Path) -> None:
    master = f"spark://{address.replace('PORT', str(free_ports(1)[0]))}"
    settings = Settings(home=tmp_path, spark_master=master)
    with pytest.raises(
        MachineError, match=rf"The Spark master {master} does not answer \(.+\)\. Start it, or"
    ):
        require_master(settings)
    finding = next(examination for examination in examine(settings) if examination.name == "Spark cluster")
    assert finding.remedy == "Start it, or correct FACTORY_SPARK_MASTER."


@pytest.mark.invariant(
    "Engines change no content: a cluster, Postgres and an object store give the tables and batches of "
    "the embedded lake."
)
def test_all_engines_together_give_the_same_tables_and_batches(
    undisturbed: SmallLake,
    postgres: Postgres,
    object_store: ObjectStore,
    cluster: SparkCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The variables are those of the page for people, with the addresses of this test's servers."""
    known, known_batches = contents(undisturbed.settings), batches(undisturbed.settings)
    here = {
        "postgresql://factory:secret@127.0.0.1:5432/factory": postgres.database("together"),
        "s3://lake/warehouse": f"{object_store.bucket('together')}/warehouse",
        "http://127.0.0.1:8333": object_store.endpoint,
        "factory": object_store.key_id,
        "secret": object_store.secret,
        "spark://127.0.0.1:7077": cluster.url,
    }
    documented = re.findall(r"^export (FACTORY_\w+)=(\S+)$", PAGE.read_text(), re.MULTILINE)
    assert set(here) <= {value for _, value in documented}
    for name, value in documented:
        monkeypatch.setenv(name, here.get(value, value))
    settings = Settings(home=tmp_path)
    command_lines = run(undisturbed.corpus, settings)
    made = contents(settings)
    assert str(packed(CODE)) in made
    assert made == {table: known[table] for table in made}
    assert batches(settings) == known_batches
    assert cluster.executors(cluster.newest()) == 2  # both workers took part
    assert leftovers(Lake(settings), AUDIT) == {}
    with open_instance(settings) as instance:
        (recorded,) = instance.get_runs()
        assert recorded.is_success
    assert not (tmp_path / "warehouse").exists()
    assert not (tmp_path / "catalog.db").exists()

    words = [word for line in command_lines for word in line]
    assert any("spark.sql.catalog.lake.s3.endpoint" in word for word in words)  # the JVM was among them
    for secret in (QUOTED, object_store.secret):
        assert not any(secret in word for word in words)
