"""The jars of a lake: pinned versions of Spark, Scala and Iceberg, and their place in the cache."""

from __future__ import annotations

import os
import zipfile
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


def signed_jars() -> list[Path]:
    """Return Spark's own jars that their publisher signed."""
    names = ("commons-compiler", "janino")
    folder = Path(pyspark.__file__).resolve().parent / "jars"
    return sorted(jar for name in names for jar in folder.glob(f"{name}-*.jar"))


def unsigned_copy(settings: Settings, jar: Path) -> Path:
    """Return the path in the cache of the copy of a signed jar, whether it exists or not."""
    return settings.cache.resolve() / "unsigned" / jar.name


def copy_unsigned(jar: Path, target: Path) -> None:
    """Copy a jar without its signature, with the time of the jar.

    The JVM archives no signed class and hashes each one that it loads from a jar: of Spark's compiler of
    generated code that was 900 classes a run.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(jar) as signed, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for entry in signed.infolist():
            if not entry.filename.startswith("META-INF/"):
                copy.writestr(entry, signed.read(entry))
    found = jar.stat()
    os.utime(target, (int(found.st_atime), int(found.st_mtime)))
