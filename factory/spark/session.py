"""Build the SparkSession of a lake; fetch its jars and make the archive of its classes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from factory.atomic_file import write_atomically
from factory.errors import MachineError
from factory.lake.catalog import open_catalog, spark_properties, spark_secrets
from factory.lake.lock import making
from factory.settings import Settings
from factory.spark.classes import archive_options, class_path, on_class_path, require_archive
from factory.spark.home import require_home, started_from_home
from factory.spark.jars import coordinates, jar_file, missing_jars
from factory.spark.java_options import compiler_options, is_quick_only, optimizes
from factory.spark.scratch import LOCAL_DIR, own_scratch

ROWS_PER_ARROW_BATCH = 500  # the defaults (10,000; of Parquet 4,096) are too much for documents of a megabyte
IMAGE_ROWS_PER_BATCH = 8  # rows with pictures, of up to 128 MiB each
NARROW_ROWS_PER_ARROW_BATCH = 4_000  # rows without texts: every batch has a fixed cost

_UNWEIGHED = str(
    2**31 - 1
)  # bytes of a batch to Python; below 2 GiB Spark estimates its size at every row, half its cost
_CODEGEN_CACHED = 2000  # cached generated classes; a dedup group needs hundreds, the default is 100

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_ROWS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_MASTER = re.compile(r"spark://(.+)")
_CONNECT_S = 5
_EXIT_S = 300  # a JVM that archives its classes takes seconds to exit; on a busy machine, minutes
_EXECUTOR_WAIT_S = 180  # a cluster that starts machines on demand needs minutes

_LOG4J = """rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
logger.gateway.name = org.apache.spark.api.python
logger.gateway.level = error
"""


def spark_conf(settings: Settings, java_options: str = "", *, optimizing: bool = True) -> dict[str, str]:
    """Return the Spark configuration for `settings`, without the part that is set after Spark has started.

    A JVM that is not `optimizing` has the quick compiler alone.
    """
    scratch, own = settings.files.spark, own_scratch(settings)
    return {
        "spark.master": settings.spark_master,
        "spark.app.name": "model-factory",
        **_jars(settings),
        "spark.driver.memory": settings.spark_driver_memory,
        **_addresses(settings),
        "spark.executor.memory": settings.spark_executor_memory,
        _JAVA_OPTIONS: (
            f"-Dlog4j2.configurationFile={_log_configuration(scratch).as_uri()} "
            f'"-Djava.io.tmpdir={own}" {compiler_options(optimizing=optimizing)} '  # the path may hold blanks
            f"{java_options or archive_options(settings)}"
        ),
        LOCAL_DIR: str(own),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(settings.spark_shuffle_partitions),
        _ROWS_PER_BATCH: str(ROWS_PER_ARROW_BATCH),
        "spark.sql.execution.arrow.maxBytesPerBatch": _UNWEIGHED,
        "spark.sql.parquet.columnarReaderBatchSize": str(ROWS_PER_ARROW_BATCH),
        # Else Spark hashes every persisted text twice in search of repetitions; LZ4 compresses them anyway.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.sql.codegen.cache.maxEntries": str(_CODEGEN_CACHED),
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        # Else every call that makes a column also sends the JVM the line of Python that called it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "factory.spark.daemon",
        # Threads inside a worker would compete with the other workers of the machine.
        "spark.executorEnv.TOKENIZERS_PARALLELISM": "false",
        # Parquet's own reader skips the checksums of pages by default, and served a flipped bit.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **spark_properties(settings),
    }


def _jars(settings: Settings) -> dict[str, str]:
    """Return where the driver finds the lake's jars, and where executors of a cluster fetch them."""
    if on_class_path(settings):
        return {"spark.driver.extraClassPath": class_path(settings)}
    return {"spark.jars": ",".join(str(jar_file(settings, name)) for name in coordinates(settings))}


def build_session(
    settings: Settings, java_options: str = "", *, input_bytes: int | None = None
) -> SparkSession:
    """Start Spark on the lake of `settings`, or return the existing session of this process.

    `java_options` take the place of the archive of classes. `input_bytes`, which the session will read,
    choose the compilers of its JVM (`factory.spark.java_options`); a JVM that an earlier run of this process
    started for less is replaced. Raises MachineError if no JVM is found, or no master or executor of a
    cluster.
    """
    require_java()
    require_master(settings)
    # Workers run `python3` by default: the system's, unless the environment is activated.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    open_catalog(settings)
    _require_jars(settings)
    require_home(settings)
    if not java_options:
        require_archive(settings)
    optimizing = optimizes(settings, input_bytes)
    if optimizing and settings.java_compiler == "auto":
        _end_quick_jvm()
    builder = SparkSession.builder
    for key, value in spark_conf(settings, java_options, optimizing=optimizing).items():
        builder = builder.config(key, value)
    with _started(settings.files.spark_log), started_from_home(settings):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    _remember_classes(session.sparkContext)
    for key, value in spark_secrets(settings).items():
        session.conf.set(key, value)
    if not _local(settings):
        _await_executor(session, settings)
    return session


def _remember_classes(context: SparkContext) -> None:
    """Look up the classes that make columns once; else each column asks the JVM, which searches all jars."""
    for name in ("functions", "PythonUtils", "org.apache.spark.sql.functions"):
        setattr(context._jvm, name, getattr(context._jvm, name))


@contextlib.contextmanager
def batches_of(session: SparkSession, rows: int) -> Iterator[None]:
    """Send batches of `rows` rows to Python in jobs within the context."""
    before = session.conf.get(_ROWS_PER_BATCH)
    session.conf.set(_ROWS_PER_BATCH, str(rows))
    try:
        yield
    finally:
        # A dead JVM has no configuration, and its error must not hide the first one.
        with contextlib.suppress(Py4JError, ConnectionError):
            session.conf.set(_ROWS_PER_BATCH, before)


def end_jvm() -> None:
    """End the JVM of this process in order, if any; the next session starts another."""
    running, gateway = SparkSession._instantiatedSession, SparkContext._gateway
    if running is not None:
        running.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_EXIT_S)
        SparkContext._gateway = SparkContext._jvm = None


def _end_quick_jvm() -> None:
    """End the JVM of this process if it has the quick compiler alone."""
    running = SparkSession._instantiatedSession  # of any thread; the active session is of one
    if running is not None and is_quick_only(running.sparkContext.getConf().get(_JAVA_OPTIONS) or ""):
        end_jvm()


def kill_jvm() -> None:
    """Kill the JVM of this process, if any; when this returns, nothing writes any more."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()


def jvm_died(within_s: float = 0) -> bool:
    """Whether the JVM of this process is gone, or ends `within_s`."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(within_s)
    return process.poll() is not None


def _local(settings: Settings) -> bool:
    return settings.spark_master.startswith("local")


def _addresses(settings: Settings) -> dict[str, str]:
    """Return the driver's bind address: loopback if the executors are its threads."""
    if _local(settings):
        return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if settings.spark_driver_host:
        return {"spark.driver.host": settings.spark_driver_host, "spark.driver.bindAddress": "0.0.0.0"}
    return {}


def require_master(settings: Settings) -> None:
    """Raise MachineError unless a standalone master answers; Spark itself retries for over a minute."""
    found = _MASTER.fullmatch(settings.spark_master)
    if found is None:
        return
    said = ""
    for address in found[1].split(","):  # several masters: one leads, the others stand by
        host, _, port = address.rpartition(":")
        if not port.isdigit():
            said = f"`{address}` has no port"
            continue
        try:
            socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
            return
        except OSError as error:
            said = (error.strerror or str(error)).lower()
    raise MachineError(
        f"The Spark master {settings.spark_master} does not answer ({said}). "
        "Start it, or correct FACTORY_SPARK_MASTER."
    )


def _await_executor(session: SparkSession, settings: Settings) -> None:
    """Wait for the cluster's first executor; without one, the first query would wait forever."""
    status = session.sparkContext._jsc.sc().statusTracker()
    deadline = time.monotonic() + _EXECUTOR_WAIT_S
    while len(status.getExecutorInfos()) < 2:  # the driver is one of them
        if time.monotonic() > deadline:
            session.stop()
            raise MachineError(
                f"The cluster {settings.spark_master} gave no executor of {settings.spark_executor_memory} "
                f"within {_EXECUTOR_WAIT_S} s. Start a worker with as much memory and a core free, end what "
                "keeps them busy, or lower FACTORY_SPARK_EXECUTOR_MEMORY."
            )
        time.sleep(0.1)


@contextlib.contextmanager
def _started(log: Path) -> Iterator[None]:
    """Redirect the output of a starting Spark to `log`; raise MachineError if it does not start."""
    try:
        with _stderr_to(log):
            yield
    except (PySparkRuntimeError, Py4JError) as error:
        raise MachineError(
            f"Spark did not start: {innermost_cause(str(error)) or type(error).__name__}. "
            f"Its output is in {log}; the usual causes are a JVM older than 17, too little "
            "memory, a full disk and jars that could not be fetched."
        ) from error


def innermost_cause(trace: str) -> str:
    """Return the innermost cause in a Java stack trace, else its last line."""
    lines = trace.strip().splitlines() or [""]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    exceptions = [line.strip() for line in lines if line.startswith((": ", "java.", "org."))]
    return (causes or exceptions or lines)[-1].removeprefix(": ").rstrip(".")


def require_java() -> None:
    """Raise MachineError unless a JVM is installed where Spark looks for it."""
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise MachineError(
            f"JAVA_HOME is {home}, which has no bin/java, and Spark needs a JVM of version 17 or newer. "
            "Correct JAVA_HOME or unset it."
        )
    if not home and not shutil.which("java"):
        raise MachineError(
            "No Java was found, and Spark needs a JVM of version 17 or newer. "
            "Install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
        )


@contextlib.contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect the stderr of processes started within the context to `log`: the JVM prints warnings."""
    sys.stderr.flush()
    terminal = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def _log_configuration(scratch: Path) -> Path:
    """Write the log4j2 file below `scratch` and return it: errors only, on stderr."""
    target = scratch / "log4j2.properties"
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        write_atomically(target, _LOG4J)
    except OSError as error:
        raise MachineError(
            f"The folder {scratch} cannot be written ({error.strerror}). "
            "Set FACTORY_HOME to a folder you can write."
        ) from error
    return target


def fetch_jars(settings: Settings, wanted: Sequence[str]) -> None:
    """Fetch missing jars into the cache, by starting Spark once without a lake; each is whole or absent.

    Raises MachineError if they cannot be fetched.
    """
    if not missing_jars(settings, wanted):
        return
    with making(settings.cache) as folder:
        missing = missing_jars(settings, wanted)
        if not missing:  # another process fetched them while this one waited
            return
        sys.stdout.write("Fetching Spark's jars (once) ...\n")
        sys.stdout.flush()
        require_java()
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.jars.packages", ",".join(missing))
        builder = builder.config("spark.jars.ivy", str(folder))  # Ivy ignores $HOME
        with _started(settings.cache / "fetching.log"):
            builder.getOrCreate().stop()
        for name in missing:
            target = jar_file(settings, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            (folder / "jars" / target.name).replace(target)


def _require_jars(settings: Settings) -> None:
    """Fetch the missing jars of a lake in another process, because a JVM keeps its initial class path."""
    if missing_jars(settings, coordinates(settings)):
        command = [sys.executable, "-m", "factory.spark"]
        environment = os.environ | settings.environment()
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            again = f"Fetch them: {' '.join(command)}"
            killed = f"Spark's jars were not fetched (exit code {done.returncode}). {again}"
            raise MachineError((done.stderr.strip().splitlines() or [killed])[-1])
