"""The archive of classes for the JVM of an embedded lake (class data sharing).

    FACTORY_CACHE/classes/<key>.jsa    the classes that Spark and Iceberg load, parsed and verified
    FACTORY_CACHE/classes/<key>.log    the output of a JVM that could not write the archive

A JVM maps an archive instead of reading thousands of classes from jars, which takes a third of the CPU time
of a small run. The key hashes the Java installation and all jars on the class path, because a JVM refuses an
archive of another Java or of other jars; a change of either makes a new archive. An archive only holds
classes of the class path, not of `spark.jars`, so an embedded lake has its jars on the class path, and other
lakes have no archive.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

from factory.atomic_file import write_atomically
from factory.errors import MachineError
from factory.lake.lock import making
from factory.settings import Settings
from factory.spark.home import require_home, spark_jars
from factory.spark.jars import EMBEDDED_JARS, coordinates, copy_unsigned, jar_file, signed_jars, unsigned_copy

log = logging.getLogger(__name__)

_QUIET = "-Xlog:cds*=off"  # no warnings about an archive that does not fit


def on_class_path(settings: Settings) -> bool:
    """Whether the lake's jars are on the driver's class path: an embedded lake without executors."""
    if os.pathsep in str(settings.cache):  # it would end the path
        return False
    return settings.spark_master.startswith("local") and coordinates(settings) == EMBEDDED_JARS


def class_path(settings: Settings) -> str:
    """Return the class path before Spark's own jars: an embedded lake's jars, and copies of Spark's."""
    copies = (unsigned_copy(settings, jar) for jar in signed_jars())
    return os.pathsep.join(map(str, [*_embedded_jars(settings), *(copy for copy in copies if copy.exists())]))


def _embedded_jars(settings: Settings) -> list[Path]:
    """Return the jars with links resolved: the JVM compares the names of files."""
    return [jar_file(settings, name).resolve() for name in EMBEDDED_JARS]


def archive_file(settings: Settings) -> Path:
    """Return the path of the archive that fits this Java and these jars, whether it exists or not."""
    return settings.cache / "classes" / f"{_key(settings)}.jsa"


def archive_options(settings: Settings) -> str:
    """Return the JVM's options that map the archive; empty if there is none."""
    archive = archive_file(settings)
    return f'"-XX:SharedArchiveFile={archive}" {_QUIET}' if archive.exists() else ""


def archiving_options(archive: Path) -> str:
    """Return the options of a JVM that writes its classes to `archive` when it exits."""
    return f'"-XX:ArchiveClassesAtExit={archive}" {_QUIET}'


def require_archive(settings: Settings) -> None:
    """Make the missing archive of an embedded lake in another process; without one, Spark starts more slowly.

    A read-only cache gets none. A JVM that cannot write one is asked once.
    """
    if not _is_missing(settings) or not os.access(settings.cache, os.W_OK):
        return
    archive = archive_file(settings)
    try:
        with making(archive.parent) as folder:
            if not _is_missing(settings):  # another process made it while this one waited
                return
            sys.stdout.write("Archiving Spark's classes (once) ...\n")
            sys.stdout.flush()
            _copy_signed(settings, folder)
            require_home(settings)
            archive = archive_file(settings)  # the copies and the home are part of its key
            written = folder / archive.name
            said = _record(settings, written)
            if written.exists():
                written.replace(archive)
            else:
                write_atomically(_failure(archive), said)
    except (OSError, MachineError) as error:
        log.warning("Spark starts without an archive of its classes (%s).", error)


def _is_missing(settings: Settings) -> bool:
    archive = archive_file(settings)
    return on_class_path(settings) and not archive.exists() and not _failure(archive).exists()


def _copy_signed(settings: Settings, folder: Path) -> None:
    """Put missing copies of Spark's signed jars into the cache, each whole; `folder` is theirs meanwhile."""
    for jar in signed_jars():
        target = unsigned_copy(settings, jar)
        if not target.exists():
            made = folder / jar.name
            copy_unsigned(jar, made)
            target.parent.mkdir(exist_ok=True)
            made.replace(target)


def _failure(archive: Path) -> Path:
    return archive.with_suffix(".log")


def _record(settings: Settings, written: Path) -> str:
    """Run a JVM that writes its classes to `written`, on a small lake next to it; return its output."""
    command = [sys.executable, "-m", "factory.spark.archive", str(written)]
    environment = os.environ | settings.environment()
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout


def _key(settings: Settings) -> str:
    """Return a hash of the files that a JVM compares with an archive before it maps it."""
    jars = [
        *_embedded_jars(settings),
        *(unsigned_copy(settings, jar) for jar in signed_jars()),
        *spark_jars(settings),
    ]
    java = _java()
    release = java.parents[1] / "release"  # names version and build
    parts = [_state(java), release.read_text() if release.exists() else "", *map(_state, jars)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _java() -> Path:
    """Return the `java` that Spark starts, with links resolved."""
    home = os.environ.get("JAVA_HOME")
    return Path(home, "bin", "java").resolve() if home else Path(shutil.which("java") or "java").resolve()


def _state(file: Path) -> str:
    if not file.exists():
        return f"{file} -"
    found = file.stat()  # the JVM, too, compares whole seconds, and images keep no fractions
    return f"{file} {found.st_size} {int(found.st_mtime)}"
