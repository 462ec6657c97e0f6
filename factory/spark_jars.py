"""The jars of a lake: pinned versions of Spark, Scala and Iceberg, and their place in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyspark

from factory.settings import Settings

ICEBERG = "1.11.0"
SCALA = "2.13"
_SPARK_MINOR = ".".join(pyspark.__version__.split(".")[:2])

ICEBERG_RUNTIME = f"org.apache.iceberg:iceberg-spark-runtime-{_SPARK_MINOR}_{SCALA}:{ICEBERG}"
ICEBERG_AWS = f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}"
SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.49.1.0"  # the JDBC drivers are not in the Iceberg jar
POSTGRES_DRIVER = "org.postgresql:postgresql:42.7.7"

EMBEDDED_JARS = [ICEBERG_RUNTIME, SQLITE_DRIVER]
ALL_JARS = [*EMBEDDED_JARS, POSTGRES_DRIVER, ICEBERG_AWS]


def coordinates(settings: Settings) -> list[str]:
    """Return the Maven coordinates of the lake's jars."""
    jars = [ICEBERG_RUNTIME]
    if settings.catalog == "sqlite":
        jars.append(SQLITE_DRIVER)
    if settings.catalog == "postgres":
        jars.append(POSTGRES_DRIVER)
    if settings.on_s3:
        jars.append(ICEBERG_AWS)
    return jars


def jar_file(settings: Settings, coordinate: str) -> Path:
    """Return the path of a fetched jar."""
    return settings.cache / "ivy" / "jars" / "{}_{}-{}.jar".format(*coordinate.split(":"))


def missing_jars(settings: Settings, wanted: Sequence[str]) -> list[str]:
    """Return the `wanted` jars that the cache lacks."""
    return [name for name in wanted if not jar_file(settings, name).exists()]
