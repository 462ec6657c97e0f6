"""A sentence for a failure of Spark: the JVM died, a worker was killed, or Spark's own message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors.exceptions.captured import CapturedException

from factory.errors import MachineError
from factory.lake.files.checksums import changed
from factory.spark import innermost_cause, jvm_died

JVM_DIED = (
    "Spark's JVM died during the run, usually because memory ran out. "
    "Free memory or raise FACTORY_SPARK_DRIVER_MEMORY, then run again."
)
WORKER_DIED = (
    "A Python worker of Spark was killed or crashed, usually because memory ran out. Free memory, or run "
    "fewer workers at once (two with FACTORY_SPARK_MASTER=local[2]), then run again."
)
_CHECKSUM = re.compile(r"ChecksumException: Checksum error: (?:file:)?(.+?) at (\d+)")  # of Hadoop
_DYING_S = 5  # a JVM whose connections are lost is gone within milliseconds
# Spark's messages when a Python worker, or the daemon that forks the workers, is gone.
_OF_WORKERS = (
    "Python worker exited unexpectedly",
    "Python worker failed to connect back",
    "occurred while reading the port number from",
)


def explained(error: BaseException) -> str | None:
    """Return a sentence for an error that came from Spark, None for any other error."""
    if _jvm_died(error):
        return JVM_DIED
    spark = next((it for it in _chain(error) if isinstance(it, (Py4JError, CapturedException))), None)
    if spark is None:
        return None
    text = str(spark).strip() or type(spark).__name__
    if any(words in text for words in _OF_WORKERS):
        return WORKER_DIED
    return _said(text)


def require_jvm(error: BaseException | None = None) -> None:
    """Raise MachineError if the JVM of this process died, whatever `error` says."""
    if _jvm_died(error):
        raise MachineError(JVM_DIED) from error


def _jvm_died(error: BaseException | None) -> bool:
    lost = error is not None and any(
        isinstance(it, (Py4JNetworkError, ConnectionError)) for it in _chain(error)
    )
    return jvm_died(_DYING_S if lost else 0)


def _said(text: str) -> str:
    """Return the last line of a worker's traceback, else Spark's innermost cause."""
    checksum = _CHECKSUM.search(text)
    if checksum is not None:
        path, at = checksum.groups()
        return str(changed(path, f"bytes from {int(at):,} on have another checksum"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line.partition(": ")[2] for line in lines if line.startswith("factory.errors.")]
    worker = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception", "Invalid"))]
    if ours or worker:
        return (ours or worker)[-1]
    return innermost_cause(text) if text.startswith("An error occurred while calling") else lines[0]


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, each once: `raise error from error` makes a cycle."""
    at: BaseException | None = error
    seen: set[int] = set()
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
