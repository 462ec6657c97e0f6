"""A run of higher priority while workers work: the time until it has all cores, and its CPU time.

A job burns all cores in items of several seconds. While its workers are in the middle of items, a second run
on the same lake makes the tables of a corpus of prose. The same run on a machine without the job says how
much CPU time it needs, and runs with a lake to themselves give the tables.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console

from bench.harness import Report, at_most
from factory.lake.claims import most_pressing
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.settings import Settings
from factory.synthesis.replicas import usable_cores

FACTORY = [sys.executable, "-c", "from factory.cli.entry import main; main()"]
JOB_TABLES, RUN_TABLES = ("raw.burnt",), ("raw.prose", "filtered.prose", "deduplicated.prose")
N_ITEMS, N_DOCUMENTS = 24, 4000
ALL_CORES_WITHIN_S, MORE_CPU = 2.0, 0.10
CAVEATS = [
    f"Items of 3 s of pure Python, {N_ITEMS} of them, a worker a core; {N_DOCUMENTS:,} documents of prose in "
    "the run. All times are of this machine, with the run's JVM and its Python workers.",
]
_DEADLINE_S = 900.0

KINDS = '''
import time
import pyarrow as pa
from factory.synthesis.kind import NewRecord

class Burn:
    """A record of each document, after three seconds of CPU time."""

    version = "1"
    schema = pa.schema([("n_turns", pa.int64(), False)])

    def __init__(self, options): ...

    def __call__(self, item):
        end_s, n_turns = time.process_time() + 3.0, 100
        while time.process_time() < end_s:
            sum(range(n_turns))
        yield NewRecord("burnt", f"{item.text} It is burnt.", {"n_turns": n_turns})
'''
DATASETS = """\
datasets:
  - {{name: notes, kind: prose, format: jsonl, paths: notes.jsonl, key: id}}
  - {{name: prose, kind: prose, format: jsonl, paths: prose.jsonl, key: id, rules: [gopher_quality]}}
  - name: burnt
    kind: prose
    format: synthesis
    from: notes
    worker: kinds.py:Burn
    slice: 2
    replicas: {replicas}
    rules: [word_count]
"""


@dataclass(frozen=True)
class Ended:
    """A finished run: its CPU seconds, with its children's."""

    cpu_s: float


def measure(progress: Console) -> Report:
    """Run both alone, then both at once. Raises WrongAnswer if a table differs."""
    report = Report(CAVEATS, f"{N_DOCUMENTS:,} documents of prose, {N_ITEMS} items")
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        progress.print("alone: sources, job, run")
        alone = Settings(home=Path(folder) / "alone")
        for selection in ("raw.notes", "*raw.burnt"):
            _end(_start(alone, selection))
        run_alone = _end(_start(alone, "*deduplicated.prose"))
        progress.print("at once: the run begins while workers work")
        common = Settings(home=Path(folder) / "common")
        _end(_start(common, "raw.notes"))
        job = _start(common, "*raw.burnt")
        _wait_for(lambda: len(_workers()) == usable_cores() and all(map(_has_burnt, _workers())))
        run = _start(common, "*deduplicated.prose")
        _wait_for(lambda: most_pressing(above=-10) is not None)
        start_s = time.monotonic()
        _wait_for(lambda: all(worker.status() == psutil.STATUS_STOPPED for worker in _workers()))
        all_cores_s = time.monotonic() - start_s
        run_at_once = _end(run)
        _end(job)
        for names in (JOB_TABLES, RUN_TABLES):
            report.check(f"{names[-1]} is as if alone", _contents(alone, names) == _contents(common, names))
    report.rows = [
        at_most("all_cores", all_cores_s, "s", ALL_CORES_WITHIN_S),
        at_most("more_cpu", run_at_once.cpu_s / run_alone.cpu_s - 1, "share", MORE_CPU),
    ]
    return report


def write_inputs(folder: Path) -> None:
    """Write the datasets file, the kind, and documents of the installation's own help texts."""
    from pydoc_data.topics import topics

    (folder / "kinds.py").write_text(KINDS)
    (folder / "datasets.yaml").write_text(DATASETS.format(replicas=usable_cores()))
    notes = [f'{{"id": "n{number}", "text": "Note {number} of a job."}}\n' for number in range(N_ITEMS)]
    (folder / "notes.jsonl").write_text("".join(notes))
    words = " ".join(" ".join(topics[name].split()) for name in sorted(topics)).split()
    with (folder / "prose.jsonl").open("w") as prose:
        for number in range(N_DOCUMENTS):
            begin = number * 37 % (len(words) - 300)
            text = " ".join(words[begin : begin + 150 + number % 150]).replace("\\", "").replace('"', "'")
            prose.write(f'{{"id": "p{number}", "text": "{text}"}}\n')


def _start(settings: Settings, selection: str) -> subprocess.Popen[bytes]:
    folder = settings.home.parent
    with (folder / f"{settings.home.name}.log").open("ab") as log:
        return subprocess.Popen(
            [*FACTORY, "materialize", selection, "--changed", "-f", "datasets.yaml"],
            cwd=folder,
            env=os.environ | settings.environment(),
            stdout=log,
            stderr=log,
        )


def _end(run: subprocess.Popen[bytes]) -> Ended:
    """Wait for a run; raises the end of its log if it fails."""
    _, status, usage = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise RuntimeError(f"A run ended with {run.returncode}; its log is beside its lake.")
    return Ended(usage.ru_utime + usage.ru_stime)


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"The workers or the run did not come as far within {_DEADLINE_S:.0f} s.")
        time.sleep(0.01)


def _workers() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if child.is_running() and child.cmdline()[2:4] == ["factory.synthesis", "burnt"]
    ]


def _has_burnt(worker: psutil.Process) -> bool:
    """Whether a worker has loaded its program and is at an item."""
    return worker.cpu_times().user > 4.0


def _contents(settings: Settings, names: tuple[str, ...]) -> list[str]:
    lake = Lake(settings)
    return [str(lake.published(TableName.parse(name)).lineage.content) for name in names]
