"""The Spark home of a local run: Spark's scripts and jars, without the parts of Spark that no lake uses.

    FACTORY_CACHE/spark/<key>/bin     a link to Spark's scripts
    FACTORY_CACHE/spark/<key>/jars    a link to each jar that a run can use

A JVM looks for a class in one jar of its class path after the other. The compiler of generated code asks for
thousands of names in a run that no jar has, so every jar costs time, and a third of Spark's jars are for
Kubernetes, YARN, Hive and MLlib. MLlib also registers functions with every session. Without these jars a
small run takes a CPU second less, of some 30. No class of the others refers to theirs.

A SPARK_HOME of the user's is left alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pyspark

from factory.errors import MachineError
from factory.lake.lock import making
from factory.settings import Settings

log = logging.getLogger(__name__)

UNUSED = {
    "MLlib": (
        "spark-mllib spark-graphx breeze spire algebra_ cats-kernel arpack blas- lapack- "
        "JTransforms JLargeArrays"
    ),
    "Hive": (
        "spark-hive hive-beeline hive-cli hive-common hive-exec hive-jdbc hive-metastore hive-serde "
        "hive-service-rpc hive-shims datanucleus- derby jdo-api javax.jdo jta- HikariCP libthrift libfb303 "
        "jpam opencsv super-csv ST4 antlr-runtime- commons-dbcp javolution transaction-api"
    ),
    "Kubernetes": "spark-kubernetes kubernetes- vertx- zjsonpatch snakeyaml-engine",
    "YARN": "spark-yarn",
    "shells and servers": "spark-connect spark-repl spark-pipelines",
}
"""How the names of jars begin that belong to a part of Spark, for the parts that no lake uses."""

_UNUSED_NAMES = tuple(name for names in UNUSED.values() for name in names.split())

_OF_USER = "SPARK_HOME"


def spark_jars(settings: Settings) -> list[Path]:
    """Return the jars that Spark starts from on the lake of `settings`, sorted."""
    home = _home(settings) if is_own(settings) else _installed()
    return sorted((home / "jars").glob("*.jar"))


def is_own(settings: Settings) -> bool:
    """Whether Spark starts from a home in the cache."""
    return _wants_own(settings) and _home(settings).exists()


def require_home(settings: Settings) -> None:
    """Make the missing home of a local run; a read-only cache gets none, and Spark starts with all jars."""
    home = _home(settings)
    if not _wants_own(settings) or home.exists() or not os.access(settings.cache, os.W_OK):
        return
    try:
        with making(home.parent) as folder:
            if home.exists():  # another process made it while this one waited
                return
            (folder / "jars").mkdir(parents=True)
            (folder / "bin").symlink_to(_installed() / "bin")
            for jar in _used_jars():
                (folder / "jars" / jar.name).symlink_to(jar)
            folder.rename(home)
    except (OSError, MachineError) as error:  # a file system without links, too
        log.warning("Spark starts with all of its jars (%s).", error)


@contextlib.contextmanager
def started_from_home(settings: Settings) -> Iterator[None]:
    """Start a JVM within the context from the home in the cache, if there is one."""
    if not is_own(settings):
        yield
        return
    os.environ[_OF_USER] = str(_home(settings))
    try:
        yield
    finally:
        del os.environ[_OF_USER]


def is_unused(jar: Path) -> bool:
    """Whether a jar of Spark belongs to a part that no lake uses."""
    return jar.name.startswith(_UNUSED_NAMES)


def _wants_own(settings: Settings) -> bool:
    return (
        settings.spark_master.startswith("local")
        and os.pathsep not in str(settings.cache)  # it would end the class path
        and _OF_USER not in os.environ
    )


def _home(settings: Settings) -> Path:
    jars = "\n".join(map(str, _used_jars()))
    return settings.cache.resolve() / "spark" / hashlib.sha256(jars.encode()).hexdigest()[:16]


def _used_jars() -> list[Path]:
    return sorted(jar for jar in (_installed() / "jars").glob("*.jar") if not is_unused(jar))


def _installed() -> Path:
    return Path(pyspark.__file__).resolve().parent
