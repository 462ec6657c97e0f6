"""`factory doctor`: check the machine and the servers; name a remedy for each missing part."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from factory.errors import ConfigurationError, FactoryError, MachineError
from factory.lake.servers import (
    CATALOG_URI,
    DAGSTER_URI,
    probe_conditional_put,
    probe_postgres,
    probe_store,
)
from factory.settings import Settings, size_bytes, unknown_variables

GIB = 1 << 30
_REINSTALL = "Install the package again; in a clone, run make setup."


@dataclass(frozen=True)
class Finding:
    """The result of one check, with a remedy if it failed."""

    name: str
    found: str
    remedy: str = ""

    @property
    def good(self) -> bool:
        """Whether the check passed."""
        return not self.remedy


def examine(settings: Settings) -> list[Finding]:
    """Check everything that the pipeline needs, and each server of the settings."""
    looks: list[Callable[[Settings], Finding]] = [
        _python,
        _java,
        _rust,
        _native,
        _names,
        _datasets,
        _memory,
        _driver_memory,
        _disk,
        _home,
        _jars,
        *_servers(settings),
        _lake,
    ]
    return [look(settings) for look in looks]


def report(settings: Settings, console: Console, *, as_json: bool = False) -> None:
    """Print the findings; raise MachineError if something is missing."""
    findings = examine(settings)
    if as_json:
        console.print_json(json.dumps([asdict(finding) | {"good": finding.good} for finding in findings]))
        _require_order(findings)
        return
    table = Table("", "check", "found", box=None)
    for finding in findings:
        verdict = "[green]ok[/]" if finding.good else "[red]no[/]"
        table.add_row(verdict, finding.name, escape(finding.found))
    console.print(table)
    for finding in findings:
        if finding.remedy:
            console.print(f"{finding.name}: {finding.remedy}", markup=False)
    _require_order(findings)


def _require_order(findings: Sequence[Finding]) -> None:
    bad = [finding.name for finding in findings if not finding.good]
    if bad:
        raise MachineError(f"Not in order: {', '.join(bad)}. The remedies are listed under the checks.")


def _python(_settings: Settings) -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("Python", version, "" if sys.version_info >= (3, 11) else "Install Python 3.11 or newer.")


def _java(_settings: Settings) -> Finding:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = "Install a JVM of version 17 or newer (Debian: openjdk-17-jre-headless), or set JAVA_HOME."
    if not java or not Path(java).exists():
        return Finding("Java", "none", remedy)
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(\d+)([^"]*)"', said)
    if match is None:
        return Finding("Java", said.strip().splitlines()[0] if said else "no answer", remedy)
    return Finding("Java", match[1] + match[2], "" if int(match[1]) >= 17 else remedy)


def _rust(_settings: Settings) -> Finding:
    cargo = shutil.which("cargo")
    if cargo is None:
        return Finding("Rust", "none, which only a change of the native kernels needs")
    said = subprocess.run([cargo, "--version"], capture_output=True, text=True, check=False).stdout
    return Finding("Rust", said.strip() or "no answer")


def _native(_settings: Settings) -> Finding:
    try:
        from factory import _native
    except ImportError as error:
        return Finding("native kernels", str(error), _REINSTALL)
    return Finding("native kernels", f"{len(_native.__source_hashes__)} functions and classes")


def _memory(_settings: Settings) -> Finding:
    free = psutil.virtual_memory().available / GIB
    return Finding(
        "memory", f"{free:.1f} GiB free", "" if free >= 6 else "Free memory: the pipeline needs 6 GiB."
    )


def _names(_settings: Settings) -> Finding:
    unknown = [name for name, _ in unknown_variables()]
    remedy = "Unset unknown settings; docs/operation.md of the repository lists all." if unknown else ""
    return Finding("settings", f"unknown: {', '.join(unknown)}" if unknown else "all known", remedy)


def _datasets(settings: Settings) -> Finding:
    try:
        from assets.corpus import corpus

        return Finding("datasets", corpus(settings).title)
    except ImportError as error:
        return Finding("datasets", f"not read: {error}", _REINSTALL)
    except ConfigurationError as error:
        return Finding("datasets", f"{settings.datasets} is wrong", str(error))


def _driver_memory(settings: Settings) -> Finding:
    heap, total = size_bytes(settings.spark_driver_memory), psutil.virtual_memory().total
    # If executors are threads of the driver, their Python workers need the same memory again.
    share = 2 if settings.spark_master.startswith("local") else 1
    remedy = (
        f"Set FACTORY_SPARK_DRIVER_MEMORY to at most {total // share // GIB}g."
        if heap * share > total
        else ""
    )
    return Finding("driver's memory", f"{heap / GIB:.1f} of {total / GIB:.1f} GiB", remedy)


def _existing(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    return next(it for it in (folder, *folder.parents) if it.exists())


def _disk(settings: Settings) -> Finding:
    folder = _existing(settings.home)
    free = shutil.disk_usage(folder).free / GIB
    return Finding(
        "disk", f"{free:.1f} GiB free at {folder}", "" if free >= 2 else "Free 2 GiB, or move FACTORY_HOME."
    )


def _home(settings: Settings) -> Finding:
    remedy = (
        "" if os.access(_existing(settings.home), os.W_OK) else "Set FACTORY_HOME to a folder you can write."
    )
    return Finding("FACTORY_HOME", str(settings.home), remedy)


def _jars(settings: Settings) -> Finding:
    from factory.spark.jars import coordinates, missing_jars

    wanted = coordinates(settings)
    missing = missing_jars(settings, wanted)
    found = f"{len(wanted) - len(missing)} of {len(wanted)} in {settings.cache}"
    return Finding("Spark's jars", found, f"Fetch them: {sys.executable} -m factory.spark" if missing else "")


def _servers(settings: Settings) -> Iterator[Callable[[Settings], Finding]]:
    """Yield a check of each server of the settings."""
    if settings.catalog == "postgres":
        uri = str(settings.catalog_uri)
        yield _asked("Iceberg catalog", lambda _: probe_postgres(uri, CATALOG_URI))
    if settings.catalog == "rest":
        yield _asked("Iceberg catalog", _rest)
    if settings.on_s3:
        yield _asked("object store", probe_store)
        yield _asked("conditional puts", probe_conditional_put)
    if settings.dagster_uri:
        records = settings.dagster_uri
        yield _asked("Dagster's records", lambda _: probe_postgres(records, DAGSTER_URI))
    if settings.spark_master.startswith("spark://"):
        yield _asked("Spark cluster", _cluster)


def _asked(name: str, probe: Callable[[Settings], str]) -> Callable[[Settings], Finding]:
    """Return a check that reports the result of `probe`, or the two sentences of its error."""

    def look(settings: Settings) -> Finding:
        try:
            return Finding(name, probe(settings))
        except FactoryError as error:
            fact, _, remedy = str(error).rpartition(". ")
            return Finding(name, fact, remedy)

    return look


def _rest(settings: Settings) -> str:
    from factory.lake.catalog import open_catalog, shown_address

    open_catalog(settings)
    return shown_address(settings)


def _cluster(settings: Settings) -> str:
    from factory.spark.session import require_master

    require_master(settings)
    return f"{settings.spark_master}, executors of {settings.spark_executor_memory}"


def _lake(settings: Settings) -> Finding:
    try:
        from factory.lake.files.data_file_check import check_data_files
        from factory.lake.place import require_place
        from factory.lake.tables import Lake
    except ImportError as error:
        return Finding("lake", f"not read: {error}", _REINSTALL)
    try:
        require_place(settings)
        if settings.embedded and not settings.files.catalog_database.exists():
            return Finding("lake", "none yet; the first run creates it")
        tables, unreadable = Lake(settings).readable()
        check = check_data_files(tables.values())
        damaged = [*unreadable, *check.errors]
        summary = f"{len(tables)} tables, {check.summary}"
        summary += f", and {len(damaged)} that are damaged" if damaged else ""
        return Finding("lake", summary, "\n".join(map(str, damaged)))
    except FactoryError as error:
        return Finding("lake", "not readable", str(error))
