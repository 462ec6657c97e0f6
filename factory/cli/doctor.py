"""What the machine has and lacks, each lack with how to get it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from factory.errors import FactoryError, MachineError
from factory.settings import Settings

GIB = 1 << 30


@dataclass(frozen=True)
class Finding:
    """One thing looked at: what was found, and the remedy where it is not enough."""

    name: str
    found: str
    remedy: str = ""

    @property
    def good(self) -> bool:
        """Whether nothing needs to be done."""
        return not self.remedy


def examine(settings: Settings) -> list[Finding]:
    """Look at everything the embedded line needs."""
    looks: list[Callable[[Settings], Finding]] = [
        _python,
        _java,
        _rust,
        _native,
        _memory,
        _disk,
        _home,
        _jars,
        _lake,
    ]
    return [look(settings) for look in looks]


def report(settings: Settings, console: Console) -> None:
    """Print the findings; raises MachineError when something is missing."""
    findings = examine(settings)
    table = Table("", "what", "found", "how to mend it", box=None)
    for finding in findings:
        table.add_row(
            "[green]ok[/]" if finding.good else "[red]no[/]", finding.name, finding.found, finding.remedy
        )
    console.print(table)
    bad = [finding.name for finding in findings if not finding.good]
    if bad:
        raise MachineError(f"This machine lacks {', '.join(bad)}. The table says how to mend it.")


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
        return Finding(
            "Rust", "none", "Install it from https://rustup.rs (needed only to build the native kernels)."
        )
    said = subprocess.run([cargo, "--version"], capture_output=True, text=True, check=False).stdout
    return Finding("Rust", said.strip() or "no answer")


def _native(_settings: Settings) -> Finding:
    try:
        from factory import _native
    except ImportError as error:
        return Finding("native kernels", str(error), "Build them: make setup.")
    return Finding("native kernels", f"sources {_native.__source_hash__}")


def _memory(_settings: Settings) -> Finding:
    free = psutil.virtual_memory().available / GIB
    return Finding(
        "memory", f"{free:.1f} GiB free", "" if free >= 6 else "Free memory: the line needs 6 GiB."
    )


def _disk(settings: Settings) -> Finding:
    folder = settings.home
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / GIB
    return Finding(
        "disk", f"{free:.1f} GiB free at {folder}", "" if free >= 2 else "Free 2 GiB, or move FACTORY_HOME."
    )


def _home(settings: Settings) -> Finding:
    folder = settings.home
    while not folder.exists():
        folder = folder.parent
    good = os.access(folder, os.W_OK)
    return Finding(
        "FACTORY_HOME", str(settings.home), "" if good else "Set FACTORY_HOME to a folder you can write."
    )


def _jars(settings: Settings) -> Finding:
    from factory.spark import coordinates

    jars = settings.cache / "ivy" / "jars"
    found = len(list(jars.glob("*.jar"))) if jars.exists() else 0
    wanted = len(coordinates(settings))
    return Finding("Spark's jars", f"{found} in {jars}", "" if found >= wanted else "Fetch them: make setup.")


def _lake(settings: Settings) -> Finding:
    from factory.lake.tables import Lake

    if settings.embedded and not settings.catalog_database.exists():
        return Finding("lake", "none yet; the first run creates it")
    try:
        return Finding("lake", f"{len(Lake(settings).names())} tables")
    except FactoryError as error:
        return Finding("lake", "not readable", str(error))
