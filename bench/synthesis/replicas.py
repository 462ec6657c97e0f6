"""Worker processes of one machine on one queue: their speed against one process.

A kind of work hashes, which takes the same CPU time for each item; a kind that waits sleeps, as a worker does
that asks a server. The time is of the whole pool, from the start of its processes to the last result.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from bench.harness import Report, at_least, table
from bench.lakes import own_lake
from factory.lake import names
from factory.lake.fingerprint import fingerprint
from factory.lake.lineage import Lineage
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.settings import Settings
from factory.synthesis.collect import results_of
from factory.synthesis.job import Job
from factory.synthesis.queue import Queue
from factory.synthesis.replicas import ReplicaPool
from factory.synthesis.results import MEASURED, result_batches

ITEMS = int(os.environ.get("ITEMS", "200"))
SLICE_ITEMS = 4
WAIT_S = 0.2
HASHED_MIB = 128  # of an item, about 0.15 s of a core
KINDS = f"""
import hashlib, time
import pyarrow as pa
from factory.synthesis.kind import NewRecord

class Work:
    version = "1"
    schema = pa.schema([])

    def __init__(self, options):
        self.mib = options.get("mib", {HASHED_MIB})

    def __call__(self, item):
        digest = hashlib.blake2b(item.text.encode())
        for _ in range(self.mib):
            digest.update(bytes(1 << 20))
        yield NewRecord("digest", digest.hexdigest())

class Wait(Work):
    def __call__(self, item):
        time.sleep({WAIT_S})
        yield NewRecord("text", item.text)
"""
CAVEATS = [
    "`replicas`: the start of the processes counts, about two seconds. Hashing needs a core and hardly any "
    "memory; other work may be slowed by the memory that cores share.",
]


@dataclass(frozen=True)
class Comparison:
    """A kind, the replicas that are compared with one, and the speed to reach."""

    kind: str
    label: str
    replicas: int
    aim: float


COMPARISONS = (Comparison("Work", "hashes", 2, 1.85), Comparison("Wait", "waits 200 ms", 4, 3.5))


def measure(progress: Console) -> Report:
    """Run each kind by one process and by several, and compare times and rows."""
    report = Report(CAVEATS, f"`replicas`: {ITEMS:,} items in slices of {SLICE_ITEMS}")
    lines = table("Replicas", "kind | replicas | seconds | items/s | times one")
    with tempfile.TemporaryDirectory(prefix="bench-replicas-") as name:
        folder = Path(name)
        (folder / "kinds.py").write_text(KINDS)
        settings = own_lake(folder / "lake")
        snapshot, content = publish_items(settings, ITEMS)
        for comparison in COMPARISONS:
            seconds, digests = {}, {}
            for n in (1, comparison.replicas):
                progress.print(f"{comparison.label}, {n} replicas")
                queue = Queue.create(
                    settings,
                    Job(
                        dataset=f"{comparison.kind.lower()}_{n}",
                        source="raw.items",
                        snapshot=snapshot,
                        content=content,
                        kind=f"kinds.py:{comparison.kind}",
                        version="1",
                        size=ITEMS,
                        slice_items=SLICE_ITEMS,
                    ),
                )
                start_s = time.monotonic()
                ReplicaPool(settings, queue, n, folder=folder).run(every_s=0.2)
                seconds[n] = time.monotonic() - start_s
                digests[n] = digest_of(queue)
                times = seconds[1] / seconds[n]
                cells = (
                    f"{comparison.label} | {n} | {seconds[n]:.1f} | {ITEMS / seconds[n]:.1f} | {times:.2f}"
                )
                lines.add_row(*cells.split(" | "))
            n = comparison.replicas
            report.check(f"{comparison.label}: {n} replicas make the rows of one", digests[1] == digests[n])
            row = f"{comparison.kind.lower()}: speed of {n} replicas over one"
            report.rows.append(at_least(row, seconds[1] / seconds[n], "times", comparison.aim))
    report.tables.append(lines)
    return report


def publish_items(settings: Settings, n: int) -> tuple[int, str]:
    """Publish the documents that workers take; return the snapshot and the fingerprint of its content."""
    rows = [
        {
            "doc_id": f"{number:032x}",
            "source": "items",
            "key": f"item {number}",
            "text": f"text {number}",
            "content_hash": f"{number:032x}",
            "n_bytes": 10,
            "media_type": "text/plain",
        }
        for number in range(n)
    ]
    documents = pa.Table.from_pylist(rows, schema=RAW.columns)
    content = str(fingerprint(documents.to_batches(), RAW.fingerprinted))
    lineage = Lineage("raw.items", run_id="bench", code_version="1", upstream={}, content=content)
    lake, name = Lake(settings), names.raw("items")
    lake.create(name, RAW).append(documents, snapshot_properties=lineage.to_properties())
    return lake.published(name).snapshot_id, content


def digest_of(queue: Queue) -> str:
    """A hash of all rows, but not of the measured values."""
    digest = hashlib.blake2b()
    for file in results_of(queue).files:
        for batch in result_batches(file, {}):
            digest.update(repr(batch.drop_columns(list(MEASURED)).to_pylist()).encode())
    return digest.hexdigest()
