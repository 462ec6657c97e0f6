"""What a loading plan costs, and what it is worth at each barrier where ranks wait for each other.

`plan` times a plan over 306 tables, at the sizes of MegaScale-Data's Table 2. `balance` computes the time of
steps of real files, and of pipelines, as given and as planned. `laws` computes how uneven images and
sequences of drawn lengths are. `loss` trains a tiny model with and without plans. `sharing` starts a
constructor and the ranks of a bucket, and counts what they read, send, hold and wait for. `fetch` times how
long a trainer waits for a step. `memory` counts the memory of ranks that open 306 sources. A part runs alone
as `make bench NAME=loading.<part>`.
"""

from __future__ import annotations

from collections.abc import Collection

from rich.console import Console

from bench.harness import Report
from bench.loading import balance, fetch, laws, loss, memory, plan, sharing

PARTS = {
    "plan": plan,
    "balance": balance,
    "laws": laws,
    "loss": loss,
    "sharing": sharing,
    "fetch": fetch,
    "memory": memory,
}


def measure(progress: Console, parts: Collection[str] = tuple(PARTS)) -> Report:
    """The parts of these names in one report."""
    modules = [PARTS[part] for part in parts]
    caveats = [caveat for module in modules for caveat in module.CAVEATS]
    report = Report(caveats, "; ".join(module.DATA for module in modules))
    for module in modules:
        module.measure(report, progress)
    return report
