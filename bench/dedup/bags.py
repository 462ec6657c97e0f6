"""The size on disk of a group's bags and of its documents."""

from __future__ import annotations

from bench.dedup.chain import Chain
from bench.harness import Report, Row

MB = 1e6


def add_bags(report: Report, chain: Chain, part: str) -> None:
    """Add the bytes of the data files of the bags of `part`, and of its raw table."""
    report.rows += [
        Row("dedup.bags.stored", round(chain.stored(part, "bags") / MB, 1), "MB"),
        Row("dedup.bags.documents", round(chain.stored(part) / MB, 1), "MB"),
    ]
