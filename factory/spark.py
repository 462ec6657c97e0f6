"""The one place that builds a SparkSession and knows which Spark, Scala and Iceberg run."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from factory.errors import MachineError
from factory.lake.catalog import open_catalog, spark_properties
from factory.settings import Settings

ICEBERG = "1.11.0"
SCALA = "2.13"
_SPARK_MINOR = ".".join(pyspark.__version__.split(".")[:2])

ICEBERG_RUNTIME = f"org.apache.iceberg:iceberg-spark-runtime-{_SPARK_MINOR}_{SCALA}:{ICEBERG}"
ICEBERG_AWS = f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}"
SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.49.1.0"  # the JDBC drivers are not in the Iceberg jar
POSTGRES_DRIVER = "org.postgresql:postgresql:42.7.7"

ROWS_PER_ARROW_BATCH = 500  # the default of 10,000 is too much for documents of a megabyte

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


def coordinates(settings: Settings) -> list[str]:
    """The Maven coordinates of the jars this lake needs."""
    jars = [ICEBERG_RUNTIME]
    if settings.catalog == "sqlite":
        jars.append(SQLITE_DRIVER)
    if settings.catalog == "postgres":
        jars.append(POSTGRES_DRIVER)
    if settings.warehouse_uri.startswith("s3://"):
        jars.append(ICEBERG_AWS)
    return jars


def spark_conf(settings: Settings) -> dict[str, str]:
    """The whole Spark configuration for `settings`."""
    scratch = settings.home / "spark"
    return {
        "spark.master": settings.spark_master,
        "spark.app.name": "model-factory",
        **_jars(settings),
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_log_configuration(scratch)}",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(settings.spark_shuffle_partitions),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_PER_ARROW_BATCH),
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        "spark.python.worker.reuse": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **spark_properties(settings),
    }


def build_session(settings: Settings) -> SparkSession:
    """Start Spark on the lake of `settings`, or give the session this process already has.

    Raises MachineError when no JVM is found.
    """
    require_java()
    # The workers' Python is `python3` by default, which without activation is the system's own.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Threads inside a worker would compete with the other workers of the machine.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    open_catalog(settings)
    settings.cache.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder
    for key, value in spark_conf(settings).items():
        builder = builder.config(key, value)
    log = settings.home / "spark" / "spark.log"
    try:
        with _stderr_to(log):
            session = builder.getOrCreate()
    except (PySparkRuntimeError, Py4JError) as error:
        raise MachineError(
            f"Spark did not start: {_cause(error)}. Its own words are in {log}; "
            "the usual causes are a JVM older than 17, a full disk and jars that could not be fetched."
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def _cause(error: Exception) -> str:
    """The innermost cause in a Java trace, else the first line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    exceptions = [line.strip() for line in lines if line.startswith((": ", "java.", "org."))]
    return (causes or exceptions or lines)[-1].removeprefix(": ").rstrip(".")


def require_java() -> None:
    """Raise MachineError unless a JVM is at hand."""
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java") and not (home and (Path(home) / "bin" / "java").exists()):
        raise MachineError(
            "No Java was found, and Spark needs a JVM of version 17 or newer. "
            "Install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
        )


def _jars(settings: Settings) -> dict[str, str]:
    """Local jar files where an earlier start fetched them, else the coordinates to fetch."""
    ivy = settings.cache / "ivy"
    names = coordinates(settings)
    files = [ivy / "jars" / "{}_{}-{}.jar".format(*name.split(":")) for name in names]
    if all(file.exists() for file in files):
        return {"spark.jars": ",".join(str(file) for file in files)}
    return {"spark.jars.packages": ",".join(names), "spark.jars.ivy": str(ivy)}  # Ivy ignores $HOME


@contextlib.contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Let the processes started inside write their stderr to `log`: the JVM greets with warnings."""
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
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=scratch, prefix="log4j2", suffix=".properties", delete=False
        ) as file:
            file.write(_LOG4J)
        target = scratch / "log4j2.properties"
        Path(file.name).replace(target)
    except OSError as error:
        raise MachineError(
            f"The folder {scratch} cannot be written ({error.strerror}). "
            "Set FACTORY_HOME to a folder you can write."
        ) from error
    return target


def _fetch_jars() -> None:
    """Let Spark fetch the jars of the embedded lake into the cache, in a lake that is thrown away."""
    configured = Settings()
    with tempfile.TemporaryDirectory() as folder:
        throwaway = configured.model_copy(update={"home": Path(folder)})
        if "spark.jars" in _jars(throwaway):
            return
        sys.stdout.write("Fetching Spark's jars (once) ...\n")
        build_session(throwaway).stop()


if __name__ == "__main__":
    _fetch_jars()
