"""The error for a failure of Spark: the JVM died, a worker was killed or raised, or Spark's own message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors.exceptions.captured import CapturedException

from factory.errors import FactoryError, MachineError, error_from_text
from factory.lake.files.checksums import changed
from factory.spark.session import innermost_cause, jvm_died

JVM_DIED = (
    "Spark's JVM died during the run, usually because memory ran out. "
    "Free memory or raise FACTORY_SPARK_DRIVER_MEMORY, then run again."
)
WORKER_DIED = (
    "A Python worker of Spark was killed or crashed, usually because memory ran out. Free memory, or run "
    "fewer workers at once (two with FACTORY_SPARK_MASTER=local[2]), then run again."
)
_CHECKSUM = re.compile(r"ChecksumException: Checksum error: (?:file:)?(.+?) at (\d+)")  # of Hadoop
# A frame of a stack in a class that reads Parquet, of Parquet itself, Iceberg or Spark.
_READING = re.compile(r"\bat [\w.$/]*\.(?:parquet|vectorized)\.[\w.$]*(?:Read|PageIterator|ColumnIterator)")
_DISK_FULL = "No space left"
_DYING_S = 5  # a JVM whose connections are lost is gone within milliseconds
# Spark's messages when a Python worker, or the daemon that forks the workers, is gone.
_OF_WORKERS = (
    "Python worker exited unexpectedly",
    "Python worker failed to connect back",
    "occurred while reading the port number from",
)


def explained(error: BaseException) -> FactoryError | None:
    """Return the error to raise for an error that came from Spark, None for any other error.

    Its class is the one that a Python worker raised, if it is ours.
    """
    if _jvm_died(error):
        return MachineError(JVM_DIED)
    spark = next(
        (cause for cause in _chain(error) if isinstance(cause, (Py4JError, CapturedException))), None
    )
    if spark is None:
        return None
    text = str(spark).strip() or type(spark).__name__
    if any(words in text for words in _OF_WORKERS):
        return FactoryError(WORKER_DIED)
    return _innermost(text)


def failed_reading_parquet(error: BaseException) -> bool:
    """Whether Spark's JVM failed in the code that reads Parquet; these errors name no file.

    A full disk does not count, nor does an error of the code that writes Parquet: the files that the run
    reads are not to blame.
    """
    text = "\n".join(
        f"{link}\n{getattr(link, '_stackTrace', '')}"
        for link in _chain(error)
        if isinstance(link, (Py4JError, CapturedException))
    )
    return _DISK_FULL not in text and _READING.search(text) is not None


def require_jvm(error: BaseException | None = None) -> None:
    """Raise MachineError if the JVM of this process died; `error` may say something else."""
    if _jvm_died(error):
        raise MachineError(JVM_DIED) from error


def _jvm_died(error: BaseException | None) -> bool:
    lost = error is not None and any(
        isinstance(cause, (Py4JNetworkError, ConnectionError)) for cause in _chain(error)
    )
    return jvm_died(_DYING_S if lost else 0)


def _innermost(text: str) -> FactoryError:
    """Return the error of the last line of a worker's traceback, else one with Spark's innermost cause."""
    checksum = _CHECKSUM.search(text)
    if checksum is not None:
        path, at = checksum.groups()
        return changed(path, f"bytes from {int(at):,} on have another checksum")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [error for line in lines if (error := error_from_text(line)) is not None]
    if errors:
        return errors[-1]
    worker = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception", "Invalid"))]
    if worker:
        return FactoryError(worker[-1])
    calling = text.startswith("An error occurred while calling")
    return FactoryError(innermost_cause(text) if calling else lines[0])


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, each once: `raise error from error` makes a cycle."""
    at: BaseException | None = error
    seen: set[int] = set()
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
