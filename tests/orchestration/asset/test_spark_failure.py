"""The sentence for what went wrong in Spark."""

from __future__ import annotations

from py4j.protocol import Py4JError

from factory.orchestration.asset.spark_failure import explained

JAVA = (
    "\n\tat org.apache.spark.scheduler.Task.run(Task.scala:147)\n\tat java.base/java.lang.Thread.run(T.java)"
)


def test_a_checksum_that_hadoop_finds_wrong_is_a_sentence_with_the_file() -> None:
    said = (
        "An error occurred while calling o216.overwrite.\n: org.apache.spark.SparkException: Job aborted"
        f"{JAVA}\nCaused by: org.apache.hadoop.fs.ChecksumException: Checksum error: file:/my lake/a.parquet "
        f"at 12800 exp: 1 got: 2{JAVA}"
    )
    assert explained(Py4JError(said)) == (
        "File /my lake/a.parquet is not as it was written: bytes from 12,800 on have another checksum. "
        "Restore it, or make its table again: factory materialize."
    )


def test_an_error_that_came_from_itself_and_one_without_words_are_told_too() -> None:
    error = ValueError("not of Spark")
    error.__cause__ = error  # as `raise error from error` leaves it
    assert explained(error) is None
    assert explained(Py4JError("")) == "Py4JError"
