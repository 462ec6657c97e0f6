"""Workers of Spark import from the environment, and what the daemon loads is not garbage."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from bench.processes import Meter
from tests.conftest import ROOT


def _imports(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        path = json.dumps([*sys.path, *sys.path_importer_cache])
        yield pa.RecordBatch.from_pydict(
            {"path": [path], "pyspark": [pyspark.__file__], "frozen": [gc.get_freeze_count()]}
        )


@pytest.mark.spark
def test_a_worker_imports_from_the_environment_and_freezes_modules(spark: SparkSession) -> None:
    columns = "path string, pyspark string, frozen long"
    (found,) = spark.range(1).coalesce(1).mapInArrow(_imports, columns).collect()
    assert not [path for path in json.loads(found["path"]) if path.endswith((".zip", ".jar"))]
    assert found["pyspark"] == pyspark.__file__
    assert found["frozen"] > 10_000


def _burn_and_die(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from ()
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.spark
def test_the_cpu_time_of_a_killed_worker_is_not_lost(spark: SparkSession) -> None:
    with Meter() as meter, pytest.raises(Exception, match="crashed"):
        spark.range(1).coalesce(1).mapInArrow(_burn_and_die, "id long").collect()
    assert meter.spans[0].cpu_s.workers >= 0.45


@pytest.mark.parametrize("elsewhere, left", [(True, 0), (False, 2)])
def test_an_archive_stays_if_pyspark_is_nowhere_else(tmp_path: Path, elsewhere: bool, left: int) -> None:
    archives = sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))
    assert len(archives) == 2
    packages = Path(pyspark.__file__).parents[1] if elsewhere else tmp_path
    code = (
        "import sys; from factory.spark.daemon import leave_archives; sys.path.extend(sys.argv[1:]); "
        "leave_archives(); print(len([it for it in sys.path if it in sys.argv[2:]])); import pyspark"
    )
    command = [sys.executable, "-S", "-c", code, str(packages), *map(str, archives)]
    assert int(subprocess.check_output(command, env=os.environ | {"PYTHONPATH": str(ROOT)})) == left
