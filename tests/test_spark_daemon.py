from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]


def _told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        path = json.dumps([*sys.path, *sys.path_importer_cache])
        yield pa.RecordBatch.from_pydict(
            {"path": [path], "pyspark": [pyspark.__file__], "frozen": [gc.get_freeze_count()]}
        )


@pytest.mark.spark
def test_a_worker_has_its_modules_from_the_environment_and_not_as_garbage(spark: SparkSession) -> None:
    (told,) = (
        spark.range(1).coalesce(1).mapInArrow(_told, "path string, pyspark string, frozen long").collect()
    )
    assert not [place for place in json.loads(told["path"]) if place.endswith((".zip", ".jar"))]
    assert told["pyspark"] == pyspark.__file__
    assert told["frozen"] > 10_000


@pytest.mark.parametrize("elsewhere, left", [(True, 0), (False, 2)])
def test_an_archive_stays_where_pyspark_is_found_nowhere_else(
    tmp_path: Path, elsewhere: bool, left: int
) -> None:
    archives = sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))
    assert len(archives) == 2
    packages = Path(pyspark.__file__).parents[1] if elsewhere else tmp_path
    code = (
        "import sys; from factory.spark_daemon import leave_archives; sys.path.extend(sys.argv[1:]); "
        "leave_archives(); print(len([it for it in sys.path if it in sys.argv[2:]])); import pyspark"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(packages), *map(str, archives)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert int(done.stdout) == left
