"""What durable batches cost beside the data: a start, a rank's slice, and commits of many producers.

`start` counts what is read to find the newest state of a log of 10 to 100,000 versions, `slices` compares a
rank's slice with the whole batch, and `commits` lets 1 to 16 producers commit to one namespace. A part runs
alone as `make bench NAME=batches.<part>`.
"""

from __future__ import annotations

from collections.abc import Collection

from rich.console import Console

from bench.batches import commits, slices, start
from bench.harness import Report

PARTS = {"start": start, "slices": slices, "commits": commits}


def measure(progress: Console, parts: Collection[str] = tuple(PARTS)) -> Report:
    """The parts of these names in one report."""
    modules = [PARTS[part] for part in parts]
    caveats = [caveat for module in modules for caveat in module.CAVEATS]
    report = Report(caveats, "; ".join(module.DATA for module in modules))
    for module in modules:
        module.measure(report, progress)
    return report
