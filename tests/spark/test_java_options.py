"""The compilers of the JVM follow from what a run reads, and a setting overrides them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from factory.settings import Settings
from factory.spark.java_options import SMALL_INPUT_BYTES, compiler_options, is_quick_only, optimizes
from factory.spark.session import spark_conf

TWO_RUNS = """
import json, sys, threading
from pyspark import SparkContext
from factory.settings import Settings
from factory.spark.session import build_session

settings, jvms = Settings(spark_driver_memory="1g", spark_master="local[1]"), []

def run(input_bytes):
    session = build_session(settings, input_bytes=input_bytes)
    options = session.sparkContext.getConf().get("spark.driver.extraJavaOptions")
    quick = "-XX:TieredStopAtLevel=1" in options
    jvms.append([SparkContext._gateway.proc.pid, quick, session.range(7).count()])

for input_bytes in json.loads(sys.argv[1]):  # each run has a thread of its own
    thread = threading.Thread(target=run, args=(input_bytes,))
    thread.start()
    thread.join()
print(json.dumps(jvms))
"""


@pytest.mark.parametrize(
    "compiler, input_bytes, optimizing",
    [
        ("auto", 0, False),
        ("auto", SMALL_INPUT_BYTES, False),
        ("auto", SMALL_INPUT_BYTES + 1, True),
        ("auto", None, True),
        ("quick", None, False),
        ("optimizing", 0, True),
    ],
)
def test_a_small_input_needs_no_optimizing_compiler(
    compiler: str, input_bytes: int | None, optimizing: bool
) -> None:
    settings = Settings.model_validate({"java_compiler": compiler})
    assert optimizes(settings, input_bytes) is optimizing
    assert is_quick_only(compiler_options(optimizing=optimizing)) is not optimizing


def test_the_options_reach_the_jvm(tmp_path: Path) -> None:
    for optimizing in (True, False):
        options = spark_conf(Settings(home=tmp_path), optimizing=optimizing)["spark.driver.extraJavaOptions"]
        assert compiler_options(optimizing=optimizing) in options


@pytest.mark.spark
def test_a_jvm_of_a_small_run_is_replaced_for_a_large_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TWO_RUNS, json.dumps([10, 20, None, 10])]
    environment = os.environ | Settings(home=tmp_path).environment()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    small, again, large, later = json.loads(done.stdout.splitlines()[-1])
    assert small == again
    assert large == later  # a JVM that optimizes serves small runs as well
    assert small[0] != large[0]
    assert [small[1:], large[1:]] == [[True, 7], [False, 7]]
