"""One report of several runs of a bench: the medians, and how far the runs lie apart."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bench.harness import Report, Row, table
from factory.errors import CheckFailed


def reports_of_runs(name: str, n_runs: int, progress: Console) -> list[Report]:
    """Run a bench several times, each in a process of its own: Spark and caches of one do not serve the next.

    Raises CheckFailed, with the exit code of the run, if one fails.
    """
    with tempfile.TemporaryDirectory(prefix="bench-runs-") as folder:
        report_file = Path(folder) / "report"
        reports = []
        for number in range(1, n_runs + 1):
            progress.print(f"run {number} of {n_runs} of {name}")
            command = [sys.executable, "-m", "bench", name, "--report-file", str(report_file)]
            code = subprocess.run(command, check=False).returncode
            if code:
                failure = CheckFailed(
                    f"Run {number} of {n_runs} of `{name}` ended with exit code {code}; its reason is above."
                )
                failure.exit_code = code
                raise failure
            reports.append(pickle.loads(report_file.read_bytes()))
        return reports


def over_runs(reports: Sequence[Report]) -> Report:
    """The last of `reports`, with the median, least and most of each number over all of them.

    An even number of runs has two medians; the lower one is taken, which is a number that was measured.
    """
    if len(reports) == 1:
        return reports[0]
    last = reports[-1]
    by_name: dict[str, list[Row]] = {}
    for report in reports:
        for row in report.rows:
            by_name.setdefault(row.name, []).append(row)
    rows = [_median(same) for same in by_name.values()]
    title = f"Medians of {len(reports)} runs; the tables above are of the last one"
    lines = ((row.name, *(f"{number:,.4g}" for number in (row.least, row.value, row.most))) for row in rows)
    tables = [*last.tables, table(title, "name | least | median | most", lines)]
    return replace(last, rows=rows, tables=tables)


def _median(rows: Sequence[Row]) -> Row:
    ascending = sorted(rows, key=lambda row: row.value)
    middle = ascending[(len(ascending) - 1) // 2]
    return replace(middle, least=ascending[0].value, most=ascending[-1].value)
