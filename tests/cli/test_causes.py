"""What a person is told of a Spark job that failed."""

from __future__ import annotations

import pytest

from factory.cli.causes import sentence

JAVA = (
    "\n\tat org.apache.spark.scheduler.Task.run(Task.scala:147)\n\tat java.base/java.lang.Thread.run(T.java)"
)
BEGIN = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling o216.overwrite.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times"
)


def worker(raised: str) -> str:
    trace = f'Traceback (most recent call last):\n  File "/x.py", line 60, in read\n    raise\n{raised}\n'
    return f"{BEGIN}{JAVA}\nCaused by: org.apache.spark.api.python.PythonException: {trace}{JAVA}"


@pytest.mark.parametrize(
    "said, told",
    [
        ("Spark has no room.", "Spark has no room."),
        ("Two lines.\nAnd no trace.", "Two lines.\nAnd no trace."),
        (worker("factory.errors.DamagedFile: File a.parquet is gone."), "File a.parquet is gone."),
        (worker("KeyError: 'text'"), "KeyError: 'text'"),
        (
            f"{BEGIN}{JAVA}\nCaused by: org.apache.hadoop.fs.ChecksumException: Checksum error: "
            f"file:/lake/a.parquet at 512 exp: 1 got: 2{JAVA}",
            "File /lake/a.parquet is not as it was written: bytes from 512 on have another checksum. "
            "Restore it, or make its table anew: factory materialize.",
        ),
        (
            f"{BEGIN}{JAVA}\nCaused by: java.io.IOException: no pages in a.parquet{JAVA}",
            "java.io.IOException: no pages in a.parquet",
        ),
    ],
)
def test_the_sentence_in_a_trace_is_told_and_the_trace_is_not(said: str, told: str) -> None:
    assert sentence(said) == told
