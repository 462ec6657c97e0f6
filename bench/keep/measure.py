"""The outcome of each keep rule, and the cost of large families of near copies.

`rules` applies the rules to files and their copies; `families` compares cliques, stars, chains and drifting
families of up to 100,000 members.
"""

from __future__ import annotations

from collections.abc import Collection

from rich.console import Console

from bench.harness import Report
from bench.keep import families, rules

PARTS = {"rules": rules, "families": families}


def measure(progress: Console, parts: Collection[str] = tuple(PARTS)) -> Report:
    """The parts of these names in one report."""
    modules = [PARTS[part] for part in parts]
    caveats = [caveat for module in modules for caveat in module.CAVEATS]
    report = Report(caveats, "; ".join(module.DATA for module in modules))
    for module in modules:
        module.measure(report, progress)
    return report
