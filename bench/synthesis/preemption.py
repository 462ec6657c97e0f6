"""A more pressing run and a job on one machine: the wait for the cores, and the CPU time of its work.

The job has a worker for each core, and each item hashes for seconds. The pressing work claims the cores as a
run does, and hashes a fixed number of bytes; the same work alone is measured before and after.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from rich.console import Console

from bench.harness import Report, at_most, table
from bench.lakes import own_lake
from bench.synthesis.replicas import KINDS, digest_of, publish_items
from factory.lake.claims import claim
from factory.settings import Settings
from factory.synthesis.job import Job
from factory.synthesis.queue import Queue
from factory.synthesis.replicas import ReplicaPool, usable_cores

CLAIMS = int(os.environ.get("CLAIMS", "5"))
ITEM_MIB = 2048  # hashed at an item, two to three seconds
PRESSING_MIB = 1024
MOST_S, MOST_TIMES = 2.0, 1.1
_MOST_STOLEN_S = 0.05
_DEADLINE_S = 120.0
CAVEATS = [
    "`preemption`: a run asks when its claim is made, and has all cores when every worker is stopped.",
]


def measure(progress: Console) -> Report:
    """Claim the cores several times while a job is under way, and work."""
    n_cores = usable_cores()
    n_items = 2 * n_cores * (CLAIMS + 1)
    report = Report(CAVEATS, f"`preemption`: {n_cores} workers, {CLAIMS} claims")
    with tempfile.TemporaryDirectory(prefix="bench-preemption-") as name:
        folder = Path(name)
        (folder / "kinds.py").write_text(KINDS)
        settings = own_lake(folder / "lake")
        snapshot, content = publish_items(settings, n_items)
        calm, rough = (_queue(settings, n_items, snapshot, content, dataset) for dataset in ("calm", "rough"))
        alone = [_pressing_cpu_s() for _ in range(CLAIMS)]
        progress.print("the job alone")
        ReplicaPool(settings, calm, n_cores, folder=folder).run()
        pool = ReplicaPool(settings, rough, n_cores, folder=folder)
        thread = threading.Thread(target=pool.run)
        thread.start()
        waits, under_way, worker_seconds = [], [], []
        for number in range(CLAIMS):
            progress.print(f"claim {number + 1} of {CLAIMS}")
            workers = _workers_at_items(rough, n_cores)
            start_s = time.monotonic()
            with claim(0, "the bench"):
                _wait_until_still(workers)
                waits.append(time.monotonic() - start_s)
                before_s = _cpu_s(workers)
                under_way.append(_pressing_cpu_s())
                worker_seconds.append(_cpu_s(workers) - before_s)
        thread.join()
        alone += [_pressing_cpu_s() for _ in range(CLAIMS)]
        report.check("the rows of the job are the same with claims", digest_of(calm) == digest_of(rough))
        report.check("stopped workers use no CPU time", max(worker_seconds) < _MOST_STOLEN_S)
    lines = table("A more pressing run", "claim | seconds until it has all cores | CPU s of its work")
    for number, (wait_s, cpu_s) in enumerate(zip(waits, under_way, strict=True), 1):
        lines.add_row(f"{number}", f"{wait_s:.2f}", f"{cpu_s:.3f}")
    lines.add_row("alone", "", f"{statistics.median(alone):.3f}")
    report.tables.append(lines)
    times = statistics.median(under_way) / statistics.median(alone)
    report.rows.append(at_most("seconds until a claim has all cores, the most", max(waits), "s", MOST_S))
    report.rows.append(at_most("CPU time of the pressing work over alone", times, "times", MOST_TIMES))
    return report


def _queue(settings: Settings, n_items: int, snapshot: int, content: str, dataset: str) -> Queue:
    job = Job(
        dataset=dataset,
        source="raw.items",
        snapshot=snapshot,
        content=content,
        kind="kinds.py:Work",
        version="1",
        size=n_items,
        options={"mib": ITEM_MIB},
        priority=-10,
        slice_items=1,
    )
    return Queue.create(settings, job)


def _pressing_cpu_s() -> float:
    """Do the pressing work; return its CPU seconds."""
    start_s, digest = time.thread_time(), hashlib.blake2b()
    for _ in range(PRESSING_MIB):
        digest.update(bytes(1 << 20))
    return time.thread_time() - start_s


def _workers_at_items(queue: Queue, n: int) -> Sequence[psutil.Process]:
    """Wait until all workers have a slice and run; return their processes."""
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        workers = [child for child in psutil.Process().children() if "factory.synthesis" in child.cmdline()]
        is_running = [worker.status() != psutil.STATUS_STOPPED for worker in workers]
        if queue.status().leased == n and is_running == [True] * n:
            return workers
        time.sleep(0.1)
    raise RuntimeError("The workers of the bench are not at work. Look at their errors with `factory work`.")


def _wait_until_still(workers: Sequence[psutil.Process]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while any(worker.status() != psutil.STATUS_STOPPED for worker in workers):
        if time.monotonic() > deadline:
            raise RuntimeError("The workers of the bench do not give way.")
        time.sleep(0.01)


def _cpu_s(workers: Sequence[psutil.Process]) -> float:
    times = [worker.cpu_times() for worker in workers]
    return sum(seconds.user + seconds.system for seconds in times)
