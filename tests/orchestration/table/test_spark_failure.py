"""The error for what went wrong in Spark."""

from __future__ import annotations

import traceback

import pytest
from py4j.protocol import Py4JError

from blender.errors import StoreUnavailable
from factory.errors import DamagedFile, FactoryError, SourceChanged
from factory.orchestration.table.spark_failure import explained, failed_reading_parquet

JAVA = (
    "\n\tat org.apache.spark.scheduler.Task.run(Task.scala:147)\n\tat java.base/java.lang.Thread.run(T.java)"
)


def test_a_checksum_that_hadoop_finds_wrong_is_a_sentence_with_the_file() -> None:
    said = (
        "An error occurred while calling o216.overwrite.\n: org.apache.spark.SparkException: Job aborted"
        f"{JAVA}\nCaused by: org.apache.hadoop.fs.ChecksumException: Checksum error: file:/my lake/a.parquet "
        f"at 12800 exp: 1 got: 2{JAVA}"
    )
    error = explained(Py4JError(said))
    assert isinstance(error, DamagedFile)
    assert str(error) == (
        "File /my lake/a.parquet is not as it was written: bytes from 12,800 on have another checksum. "
        "Restore it, or make its table again: factory materialize."
    )


def test_an_error_that_came_from_itself_and_one_without_words_are_told_too() -> None:
    error = ValueError("not of Spark")
    error.__cause__ = error  # as `raise error from error` leaves it
    assert explained(error) is None
    assert str(explained(Py4JError(""))) == "Py4JError"


@pytest.mark.invariant(
    "A run that failed for one kind of reason ends with the exit code of that kind, raised in a step, at "
    "the lock or in a Spark worker."
)
@pytest.mark.parametrize("raised", [SourceChanged("File a is gone."), StoreUnavailable("No answer.")])
def test_an_error_that_a_worker_raises_keeps_its_class(raised: FactoryError) -> None:
    try:
        raise raised
    except FactoryError:
        printed = traceback.format_exc()
    error = explained(Py4JError(f"An exception was thrown from the Python worker: {printed}{JAVA}"))
    assert (type(error), str(error)) == (type(raised), str(raised))


PARQUET = "org.apache.iceberg.shaded.org.apache.parquet"


@pytest.mark.parametrize(
    "frame",
    [
        f"{PARQUET}.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:623)",
        f"{PARQUET}.hadoop.ColumnChunkPageReadStore$ColumnChunkPageReader.readPage(C.java:123)",
        f"{PARQUET}.column.values.delta.DeltaBinaryPackingValuesReader.readLong(D.java:1)",
        "org.apache.iceberg.parquet.ParquetReader$FileIterator.next(ParquetReader.java:170)",
        "org.apache.iceberg.parquet.BasePageIterator.initDataReader(BasePageIterator.java:9)",
        "org.apache.iceberg.arrow.vectorized.VectorizedArrowReader.read(VectorizedArrowReader.java:150)",
        "app//org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader.nextBatch(V.java)",
    ],
)
def test_a_frame_that_reads_parquet_sends_the_search_to_the_files(frame: str) -> None:
    said = f"An error occurred while calling o2.save.\n: java.lang.RuntimeException: crc\n\tat {frame}{JAVA}"
    failure = RuntimeError("The step failed.")
    failure.__cause__ = Py4JError(said)
    assert failed_reading_parquet(failure)
    assert not failed_reading_parquet(RuntimeError(said))
    assert not failed_reading_parquet(Py4JError(said.replace("crc", "No space left on device")))


@pytest.mark.invariant(
    "The search for the damaged file of a table accuses no whole file: only what pyarrow cannot read is "
    "damage, and a reader's failure that no file explains is called a failure of the machine. Only a "
    "failure of Spark to read Parquet starts the search, and a search that fails leaves Spark's own error"
    " in place."
)
@pytest.mark.parametrize(
    "frame",
    [
        f"{PARQUET}.hadoop.ParquetFileWriter.writeDataPageV1(ParquetFileWriter.java:703)",
        f"{PARQUET}.column.values.plain.PlainValuesWriter.writeBytes(PlainValuesWriter.java:5)",
        "org.apache.iceberg.parquet.ParquetWriter.close(ParquetWriter.java:257)",
        "org.apache.spark.sql.execution.python.BasePythonRunner$ReaderIterator.handlePythonException(P.scala:7)",
    ],
)
def test_a_frame_that_writes_parquet_leaves_the_files_alone(frame: str) -> None:
    said = f"An error occurred while calling o2.save.\n: java.io.IOException: Broken pipe\n\tat {frame}{JAVA}"
    assert not failed_reading_parquet(Py4JError(said))
