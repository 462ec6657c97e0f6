"""The bytes that a namespace holds while a run trains on it, with deletion and without.

A producer writes as fast as `max_lag` lets it, a run reads every step and marks a checkpoint every tenth, and
a reclaimer runs after each mark. After every step the bytes of the batches in the folder are counted.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.harness import Report, Row, at_least, table
from blender.global_batches.namespace import create_namespace
from blender.global_batches.reader import BatchReader
from blender.global_batches.reclamation import reclaim_batches
from blender.global_batches.training_run import TrainingRun
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange

STEPS, EVERY = 1_010, 10
BATCH_BYTES, STEP_S = 32 * 100 << 10, 0.02
PAPER_SAVED, MOST_ERROR = 0.72, 0.1
SETTINGS = ((2, 80), (20, 280))
"""Live checkpoints and `max_lag`: the default, and as the paper's peak suggests."""
DATA = f"`retention`: {STEPS:,} batches of 32 x 100 KiB, a checkpoint every {EVERY} steps"
CAVEATS = (
    "`retention`: the peak is predicted from `max_lag` alone, and one batch in flight. Between a mark and "
    f"the end of the reclaimer the producer may write up to {EVERY} more; the bytes are counted then, too.",
    f"`retention`: a step of training takes {1e3 * STEP_S:.0f} ms, so that the producer waits.",
    "`retention`: the paper saves 72.0 % with `max_lag` 80 and does not say how many checkpoints are live. "
    "Its peak of 9.76 GiB is 283 of its batches, which 20 live checkpoints explain.",
)


@dataclass
class HeldBytes:
    """The bytes of the batches after each step of a run."""

    n_bytes: list[int] = field(default_factory=list)
    before_reclaim: int = 0
    """The most bytes between a mark and the reclaimer."""
    n_deleted: int = 0
    seconds: float = 0.0
    is_whole: bool = True
    """Whether every step had the bytes of its batch."""

    @property
    def peak(self) -> int:
        """The most bytes."""
        return max(*self.n_bytes, self.before_reclaim)


def measure(progress: Console) -> Report:
    """Train without deletion once, and with it for each setting."""
    report = Report(CAVEATS, DATA)
    with tempfile.TemporaryDirectory() as folder:
        progress.print("training without deletion")
        whole = train(Path(folder, "whole"), STEPS, BATCH_BYTES, keep=1, max_lag=None, step_s=STEP_S)
    report.check("without deletion every batch stays", whole.n_bytes[-1] >= STEPS * BATCH_BYTES)
    columns = "live checkpoints, max lag | quarter | half | end | peak MB | predicted | error | saved | s"
    chart = table(f"MB held; {_mb(whole.peak)} without deletion ({whole.seconds:.0f} s)", columns)
    for keep, max_lag in SETTINGS:
        progress.print(f"training with {keep} live checkpoints and max lag {max_lag}")
        with tempfile.TemporaryDirectory() as folder:
            usage = train(Path(folder, "run"), STEPS, BATCH_BYTES, keep, max_lag, STEP_S)
        label = f"{keep}, {max_lag}"
        report.check(f"{label}: every step had its bytes", usage.is_whole and whole.is_whole)
        _add(report, chart, label, usage, whole, max_lag)
    report.tables.append(chart)
    return report


def train(
    folder: Path, steps: int, batch_bytes: int, keep: int, max_lag: int | None, step_s: float = 0.0
) -> HeldBytes:
    """Write and read the steps; without a `max_lag` nothing is reclaimed."""
    uri = str(folder)
    create_namespace(uri, Mesh(), lanes=1)
    usage = HeldBytes()
    start_s = time.monotonic()
    run = TrainingRun(uri, "bench", every=None if max_lag is None else EVERY)
    with _producing(uri, steps, batch_bytes, max_lag):
        for step in BatchReader(uri).read(StepRange(0, steps), 0):
            number = step.offset + 1
            usage.is_whole &= bool((step.arrays["tokens"] == step.offset % 60_000).all())
            usage.n_bytes.append(_bytes_below(folder / "batches"))
            if number % EVERY == 0:
                run.checkpoint(f"step-{number}", number, keep)
                usage.before_reclaim = max(usage.before_reclaim, _bytes_below(folder / "batches"))
                if max_lag is not None:
                    usage.n_deleted += reclaim_batches(uri).batches
            time.sleep(step_s)
    usage.seconds = time.monotonic() - start_s
    return usage


@contextmanager
def _producing(uri: str, steps: int, batch_bytes: int, max_lag: int | None) -> Iterator[None]:
    """Write the steps in a thread, and raise its error at the end."""
    errors: list[BaseException] = []

    def produce() -> None:
        try:
            with BatchWriter(uri, max_lag=max_lag) as writer:
                for number in range(steps):
                    tokens = np.full(batch_bytes // 2, number % 60_000, dtype=np.uint16)
                    writer.put([{"tokens": tokens}], number + 1)
                writer.finish()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    yield
    thread.join()
    if errors:
        raise errors[0]


def _bytes_below(folder: Path) -> int:
    """The bytes of the files below a folder, without those that are deleted meanwhile."""
    n_bytes = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                n_bytes += Path(parent, name).stat().st_size
            except FileNotFoundError:
                continue
    return n_bytes


def _add(report: Report, chart: Table, label: str, usage: HeldBytes, whole: HeldBytes, max_lag: int) -> None:
    batch_bytes = whole.n_bytes[-1] / STEPS
    forecast = (max_lag + 1) * batch_bytes
    deviation = usage.peak / forecast - 1
    share = 1 - usage.peak / whole.peak
    places = (STEPS // 4, STEPS // 2, STEPS - 1)
    chart.add_row(
        label,
        *(_mb(usage.n_bytes[place]) for place in places),
        _mb(usage.peak),
        _mb(forecast),
        f"{deviation:+.1%}",
        f"{share:.1%}",
        f"{usage.seconds:.0f}",
    )
    report.rows += [
        Row(f"retention {label}: peak", usage.peak / 1e6, "MB"),
        at_least(f"retention {label}: share saved", round(share, 4), "", PAPER_SAVED),
        Row(
            f"retention {label}: deviation of the peak from the prediction",
            round(deviation, 4),
            "",
            f"within {MOST_ERROR:g}",
            abs(deviation) <= MOST_ERROR,
        ),
    ]


def _mb(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:,.0f}"
