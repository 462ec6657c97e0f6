"""The cost of reading one large file, JSON lines and Parquet, from a folder and from SeaweedFS, by task.

Ours reads to the persisted rows of documents and rejected records, datatrove to documents that it drops. The
same file becomes a published table with ours, and files of Parquet with datatrove. A last table has the bytes
that the store sends for a byte of text, by format. `make bench NAME=ingest.small` takes a fifth of the size.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import obstore
from rich.console import Console
from rich.table import Table

from bench.batches.stores import KEY, SECRET, Place, seaweed
from bench.harness import Report, Row, at_least, table
from bench.ingest.corpus import MORE_FORMATS, Corpus, Texts, corpus
from bench.ingest.counter import Counter
from bench.ingest.ours import REWRITTEN
from bench.peers import DATATROVE_READERS, answer
from factory.lake.store import bucket_store

N_BYTES = 1_000_000_000
SMALLER, SAMPLE = 5, 10  # parts of it: for a first try, and to count bytes
TASKS = (1, 2)
LEAST_GAIN = 1.8  # of two tasks
MB = 1e6
OURS, PEER = "bench.ingest.ours", "bench.ingest.peer"
FORMATS = ("jsonl", "parquet")
CAVEATS = [
    "MB are of text in UTF-8, for every format. Files are in the page cache.",
    "The cost of a reader is of the whole tree of its processes, the store's left out: it runs on the same "
    "cores, so that two tasks have less than two of them.",
    "A reader on one core has one for all of its processes and threads. Our one task on two cores shows how "
    "far its JVM and its worker overlap: two tasks can gain no more than the other core has left.",
    "Start is what a file of one record costs in a new process: ours starts Spark, compiles and forks; "
    "datatrove imports. The other seconds are beyond it.",
    "Ours checks, bounds and normalizes each record and keeps the rows in memory as Spark stores them; "
    "datatrove makes a Python object of each, and drops it.",
    "Tables: ours resolves keys, makes fingerprints, checks and charts, and starts Dagster and Spark; "
    "registered Parquet stays where it is. datatrove's ParquetWriter writes documents, also with zstd.",
]


class Cost(NamedTuple):
    """Wall and CPU seconds, and bytes of memory."""

    wall_s: float
    cpu_s: float
    peak: float


class Reading(NamedTuple):
    """The costs of a start and of reading a file, and the number of tasks that made rows."""

    start: Cost
    rest: Cost
    n_tasks: int


def measure(progress: Console) -> Report:
    """Measure on a gigabyte."""
    return report_on(N_BYTES, progress)


PARTS = {"small": lambda progress: report_on(N_BYTES // SMALLER, progress)}


def report_on(n_bytes: int, progress: Console) -> Report:
    """Read a file of so many bytes of text with every reader. Raises WrongAnswer if one reads other texts."""
    whole, sample = corpus(n_bytes, progress), corpus(n_bytes // SAMPLE, progress, in_more_formats=True)
    texts = whole.texts
    sizes = ", ".join(
        f"{(whole.folder / f'all.{form}').stat().st_size / MB:,.0f} MB of {form}" for form in FORMATS
    )
    report = Report(
        CAVEATS, f"one file of {texts.n_records:,} records, {texts.n_bytes / MB:,.0f} MB of text: {sizes}"
    )
    with seaweed() as store, patch.dict(os.environ, keys(store)):
        folders = {"folder": f"{whole.folder}", store.name: _uploaded(store, whole)}
        for form in FORMATS:
            facts = peer(form, folders["folder"], 0, progress)
            report.check(f"datatrove reads every text of {form}", Texts(**facts) == texts)
            for name, folder in folders.items():
                _add_readers(report, form, name, folder, texts, progress)
        _add_tables(report, whole, progress)
        _add_bytes(report, sample, store, _uploaded(store, sample), progress)
    return report


def keys(store: Place) -> dict[str, str]:
    """The variables by which readers reach a store."""
    return {
        "AWS_ENDPOINT_URL": f"{store.settings.s3_endpoint}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }


def _uploaded(store: Place, files: Corpus) -> str:
    objects = bucket_store(store.settings, store.address.removeprefix("s3://"))
    for path in files.folder.glob("*.*"):
        obstore.put(objects, f"{files.folder.name}/{path.name}", path)
    return f"{store.address}/{files.folder.name}"


def ours(
    target: str, form: str, n_tasks: int, folder: str, texts: Texts, report: Report, n_cores: int = 0
) -> dict[str, Any]:
    """Run our reader with so many tasks, on as many cores or `n_cores`; check that it reads every text."""
    facts: dict[str, Any] = answer(OURS, target, form, n_tasks, n_cores or n_tasks, folder, texts.n_bytes)
    same = all(facts.get(name, total) == total for name, total in asdict(texts).items())
    sentence = f"ours reads every text of {form}, in every run"
    if not same or sentence not in report.answers:
        report.check(sentence, same)
    return facts


def peer(form: str, folder: str, n_tasks: int, progress: Console, name: str = "all") -> Any:
    """Run datatrove's reader in so many tasks; the texts without any, else the cost."""
    arguments = (form, folder, f"{name}.{form}", n_tasks, "none")
    if not n_tasks:
        return DATATROVE_READERS.answer(PEER, *arguments, console=progress)
    return _cost(progress, n_tasks, *arguments)


def _cost(progress: Console, n_cores: int, *arguments: object) -> Cost:
    command = (DATATROVE_READERS.python(progress), "-m", PEER, *arguments)
    return Cost(*answer("bench.ingest.cost", n_cores, *command))


def _add_readers(report: Report, form: str, place: str, folder: str, texts: Texts, progress: Console) -> None:
    """Add the costs of a format from a place, with one task and two."""
    columns = "reader, cores | start wall s | its CPU s | wall s | CPU s | MB/CPU s | MB/s | peak MB | tasks"
    costs = table(f"{form} from {place}", columns)
    readers: dict[str, dict[int, Reading]] = {"ours": {}, "datatrove": {}}
    for n_tasks in TASKS:
        progress.print(f"{form} from {place}, {n_tasks} cores")
        readers["ours"][n_tasks] = _reading(ours("rows", form, n_tasks, folder, texts, report))
        start, rest = (peer(form, folder, n_tasks, progress, name) for name in ("one", "all"))
        rest = Cost(rest.wall_s - start.wall_s, rest.cpu_s - start.cpu_s, rest.peak)
        readers["datatrove"][n_tasks] = Reading(start, rest, 1)
    for reader, by_tasks in readers.items():
        label = f"ingest.{form}.{place}.{reader}"
        for n_tasks, reading in by_tasks.items():
            _add_reading(report, costs, f"{label}.{n_tasks}", reading, texts.n_bytes)
        gain = round(by_tasks[1].rest.wall_s / by_tasks[2].rest.wall_s, 2)
        aim = at_least(f"{label}.gain", gain, "times", LEAST_GAIN)
        report.rows.append(aim if reader == "ours" else Row(aim.name, gain, aim.unit))
    label = f"ingest.{form}.{place}.ours.one_task_two_cores"
    alone = _reading(ours("rows", form, 1, folder, texts, report, n_cores=TASKS[-1]))
    _add_reading(report, costs, label, alone, texts.n_bytes)
    gain = round(alone.rest.wall_s / readers["ours"][TASKS[-1]].rest.wall_s, 2)
    report.rows.append(Row(f"{label}.gain", gain, "times"))
    report.tables.append(costs)


def _reading(facts: dict[str, Any]) -> Reading:
    spans = {name: Cost(*numbers) for name, numbers in facts["spans"].items()}
    start, first = spans["start"], spans["one"]
    start = Cost(start.wall_s + first.wall_s, start.cpu_s + first.cpu_s, first.peak)
    return Reading(start, spans["read"], facts["n_tasks"])


def _add_reading(report: Report, costs: Table, label: str, reading: Reading, n_bytes: int) -> None:
    start, rest, n_tasks = reading
    speeds = (n_bytes / MB / rest.cpu_s, n_bytes / MB / rest.wall_s)
    numbers = (start.wall_s, start.cpu_s, rest.wall_s, rest.cpu_s, *speeds)
    reader = " ".join(label.split(".")[-2:])
    costs.add_row(reader, *(f"{number:,.1f}" for number in numbers), f"{rest.peak / MB:,.0f}", f"{n_tasks}")
    report.rows += [
        Row(f"{label}.wall", round(rest.wall_s, 2), "s"),
        Row(f"{label}.speed", round(speeds[0], 1), "MB/CPU s"),
        Row(f"{label}.start", round(start.cpu_s, 2), "CPU s"),
        Row(f"{label}.peak_memory", round(rest.peak / MB), "MB"),
        Row(f"{label}.tasks", n_tasks, "tasks"),
    ]


def _add_tables(report: Report, whole: Corpus, progress: Console) -> None:
    """Add the costs of a published table and of datatrove's files, from the folder."""
    lines = table("From the folder to a table, 2 cores", "table | wall s | CPU s | MB/CPU s | peak MB")
    folder, n_tasks, costs = f"{whole.folder}", TASKS[-1], {}
    for name, form in {"jsonl": "jsonl", "registered": "parquet", REWRITTEN: REWRITTEN}.items():
        progress.print(f"a table of {form}")
        spans = ours("table", form, n_tasks, folder, whole.texts, report)["spans"].values()
        walls, seconds, peaks = zip(*spans, strict=True)
        costs[f"ours.{name}"] = Cost(sum(walls), sum(seconds), max(peaks))
    for form in FORMATS:
        with TemporaryDirectory(prefix="bench-ingest-") as target:
            costs[f"datatrove.{form}"] = _cost(
                progress, n_tasks, form, folder, f"all.{form}", n_tasks, target
            )
    for name, (wall_s, cpu_s, peak) in costs.items():
        speed = whole.texts.n_bytes / MB / cpu_s
        numbers = (f"{number:,.1f}" for number in (wall_s, cpu_s, speed))
        lines.add_row(name.replace(".", ", "), *numbers, f"{peak / MB:,.0f}")
        report.rows += [
            Row(f"ingest.table.{name}.wall", round(wall_s, 2), "s"),
            Row(f"ingest.table.{name}.speed", round(speed, 1), "MB/CPU s"),
        ]
    report.tables.append(lines)


@contextmanager
def _counted(store: Place) -> Iterator[Counter]:
    """Count what the store sends to the programs that the block starts."""
    with (
        closing(Counter(f"{store.settings.s3_endpoint}")) as counter,
        patch.dict(os.environ, {"AWS_ENDPOINT_URL": counter.endpoint}),
    ):
        yield counter


def _add_bytes(report: Report, sample: Corpus, store: Place, folder: str, progress: Console) -> None:
    """Add the bytes that the store sends to each reader."""
    texts = sample.texts
    lines = table(
        f"Sent by {store.name} for {texts.n_bytes / MB:,.0f} MB of text",
        "format | reader | requests | MB | bytes/byte of file | bytes/byte of text",
    )

    def add(form: str, reader: str, counter: Counter) -> None:
        n_bytes = (sample.folder / f"all.{form}").stat().st_size
        of_file, of_text = counter.n_bytes / n_bytes, counter.n_bytes / texts.n_bytes
        numbers = (f"{counter.n_bytes / MB:,.1f}", f"{of_file:.3f}", f"{of_text:.3f}")
        lines.add_row(form, reader, f"{counter.n_requests:,}", *numbers)
        label = f"ingest.sent.{form}.{reader.replace(', ', '.').replace(' ', '_')}"
        report.rows += [
            Row(f"{label}.bytes_a_byte_of_text", round(of_text, 3), "bytes"),
            Row(f"{label}.requests", counter.n_requests, "requests"),
        ]

    for form in (*FORMATS, *MORE_FORMATS):
        for target, reader in {"rows": "ours", "texts": "ours, text alone"}.items():
            if target == "rows" or form == "parquet":
                progress.print(f"bytes of {form}, {reader}")
                with _counted(store) as counter:
                    ours(target, form, TASKS[-1], folder, texts, report)
                add(form, reader, counter)
        if form in FORMATS:
            with _counted(store) as counter:
                peer(form, folder, 1, progress)
            add(form, "datatrove", counter)
    report.tables.append(lines)
