"""The report of a bench: caveats, machine and versions, checks, tables, and one JSON line per number.

A bench is a folder with a `measure.py`: the first sentence of its docstring describes the measurement, and
its function `measure(progress: Console) -> Report` checks the answer before it reports a time. `PARTS` has
such functions by name; a bench without its own runs them all.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.peers import ROOT
from factory.errors import CheckFailed

Value = int | float


class WrongAnswer(CheckFailed):
    """The measured code gave a wrong result, so its time means nothing."""


@dataclass(frozen=True)
class Row:
    """One measured number; `aim` reads like `>= 0.99`, `met` says whether the value reaches it.

    `least` and `most` are those of several runs, of which the value is the median.
    """

    name: str
    value: Value
    unit: str
    aim: str | None = None
    met: bool | None = None
    least: Value | None = None
    most: Value | None = None

    def json(self) -> str:
        """Return the row as one line; raises ValueError unless the value is finite."""
        plain: dict[str, object] = {"name": self.name, "value": self.value, "unit": self.unit}
        if self.aim is not None:
            plain |= {"aim": self.aim, "met": self.met}
        if self.least is not None:
            plain |= {"least": self.least, "most": self.most}
        return json.dumps(plain, allow_nan=False)


def at_least(name: str, value: Value, unit: str, limit: Value) -> Row:
    """Return a row whose aim is to reach `limit`."""
    return Row(name, value, unit, f">= {limit:g}", value >= limit)


def at_most(name: str, value: Value, unit: str, limit: Value) -> Row:
    """Return a row whose aim is to stay within `limit`."""
    return Row(name, value, unit, f"<= {limit:g}", value <= limit)


@dataclass(frozen=True)
class Runs:
    """Several runs of one program, each with figures by name."""

    runs: tuple[Mapping[str, Any], ...]

    def best(self, name: str) -> float:
        """The least of a cost."""
        return min(float(run[name]) for run in self.runs)

    def median(self, name: str) -> float:
        """The median of a figure."""
        return statistics.median(float(run[name]) for run in self.runs)


@dataclass
class Report:
    """The findings of a bench, in the order in which they are printed."""

    caveats: Sequence[str]
    data: str
    answers: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def check(self, sentence: str, holds: bool) -> None:
        """Record that `sentence` was checked; raises WrongAnswer unless it holds."""
        if not holds:
            raise WrongAnswer(f"False: {sentence}. No time is reported; fix the measured code.")
        self.answers.append(sentence)


def join_reports(reports: Sequence[Report]) -> Report:
    """Return the reports of a bench's parts as one."""
    caveats = [caveat for report in reports for caveat in report.caveats]
    joint = Report(caveats, "; ".join(report.data for report in reports))
    for report in reports:
        joint.answers += report.answers
        joint.tables += report.tables
        joint.rows += report.rows
    return joint


def show(name: str, report: Report, console: Console) -> None:
    """Print the report; its JSON lines come last and are never wrapped."""
    console.print(f"[bold]bench {name}[/]")
    for caveat in report.caveats:
        console.print(f"- {caveat}", soft_wrap=True, markup=False)
    facts = Table(box=None, show_header=False)
    for fact, found in [
        *machine(),
        ("data", report.data),
        *(("checked", answer) for answer in report.answers),
    ]:
        facts.add_row(fact, escape(found))
    console.print(facts)
    for table in report.tables:
        console.print()
        console.print(table)
    aims = [row for row in report.rows if row.aim is not None]
    if aims:
        console.print()
        console.print(_aims(aims))
    console.print()
    for row in report.rows:
        console.out(row.json(), highlight=False)  # verbatim: no markup, no wrapping


def table(title: str, columns: str, rows: Iterable[Sequence[str]] = ()) -> Table:
    """Return a table; its first column is for text, the others are for numbers."""
    made = Table(title=title, title_justify="left", box=None, header_style="bold")
    for number, column in enumerate(cells(columns)):
        made.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        made.add_row(*row)
    return made


def cells(line: str) -> list[str]:
    """Split a line of a table, written with ` | ` between its cells."""
    return [cell.strip() for cell in line.split(" |")]


def _aims(rows: Sequence[Row]) -> Table:
    aims = table("Aims", "name | value | unit | aim | met")
    for row in rows:
        aims.add_row(row.name, f"{row.value:,.4g}", row.unit, row.aim, "yes" if row.met else "[red]no[/]")
    return aims


def machine() -> list[tuple[str, str]]:
    """Processor, memory, system and versions of this machine."""
    from factory.spark.jars import ICEBERG

    packages = ("pyspark", "pyiceberg", "dagster", "pyarrow")
    return [
        ("processor", f"{_processor()}, {len(_cores())} cores, load {os.getloadavg()[0]:.1f} at the end"),
        ("memory", f"{psutil.virtual_memory().total / 1e9:.1f} GB"),
        ("system", f"{platform.system()} {platform.release()}"),
        (
            "versions",
            f"Python {platform.python_version()}, Java {_java()}, Iceberg {ICEBERG}, "
            + ", ".join(f"{package} {version(package)}" for package in packages)
            + ", "
            + _said(["rustc", "--version"], r"rustc \S+"),
        ),
        ("revision", _said(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], r"\S+")),
    ]


def _cores() -> Sequence[int]:
    """The cores this process may use."""
    usable: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return sorted(usable(0)) if usable else range(os.cpu_count() or 1)


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        named = re.search(r"^model name\s*: (.+)$", information.read_text(), re.MULTILINE)
        if named:
            return named[1]
    return platform.processor() or platform.machine()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    return _said([java, "-version"], r'(?<=version ")[^"]+')


def _said(command: list[str], pattern: str) -> str:
    """The match of `pattern` in a program's output, or `none` if the program is missing."""
    if shutil.which(command[0]) is None:
        return f"{Path(command[0]).name} none"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(pattern, done.stdout + done.stderr)
    return found[0] if done.returncode == 0 and found else f"{Path(command[0]).name} unknown"
