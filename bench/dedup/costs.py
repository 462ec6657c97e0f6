"""What the parts of the corpus took, table by table, how that grows, and how fast it is beside the peers."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Table

from bench.dedup.chain import TABLES, exponent, total
from bench.dedup.peers import Kept
from bench.harness import Report, Row, at_least, at_most, table
from bench.processes import Span

TIMES = {"datatrove": 50, "rensa": 2.5}
MB = 1e6


def add_costs(
    report: Report,
    spans: Mapping[str, Mapping[str, Span]],
    sizes: Mapping[str, pa.ChunkedArray],
    peers: Mapping[str, Kept],
    judged_mb: float,
) -> None:
    """Add what each part took, how the cost grows, and the speeds beside each other."""
    costs = table("Costs", "", "documents", "MB", "CPU s", "driver", "JVM", "workers", "peak MB", "MB/CPU s")
    totals = {name: total(of) for name, of in spans.items()}
    for name, span in totals.items():
        cpu, size = span.cpu_s, megabytes(sizes[name])
        costs.add_row(
            f"ours, {name}", f"{len(sizes[name]):,}", f"{size:,.0f}",
            *(f"{it:,.1f}" for it in (cpu.total, cpu.driver, cpu.jvm, cpu.workers)),
            f"{span.peak.total / MB:,.0f}", f"{size / cpu.total:,.2f}",
        )  # fmt: skip
        report.rows += [
            Row(f"dedup.{name}.documents", len(sizes[name]), "documents"),
            Row(f"dedup.{name}.cpu", round(cpu.total, 2), "s"),
            Row(f"dedup.{name}.speed", round(size / cpu.total, 2), "MB/CPU s"),
            Row(f"dedup.{name}.peak_memory", round(span.peak.total / MB), "MB"),
        ]
    for name, kept in peers.items():
        speed = judged_mb / kept.cpu_s
        costs.add_row(
            name,
            "",
            f"{judged_mb:,.0f}",
            f"{kept.cpu_s:,.1f}",
            "",
            "",
            "",
            f"{kept.peak / MB:,.0f}",
            f"{speed:.2f}",
        )
        report.rows += [
            Row(f"dedup.{name}.speed", round(speed, 3), "MB/CPU s"),
            Row(f"dedup.{name}.peak_memory", round(kept.peak / MB), "MB"),
        ]
    report.tables += [costs, _by_table(spans)]
    grown = exponent([len(sizes[it]) for it in totals], [of.cpu_s.total for of in totals.values()])
    report.rows.append(at_most("dedup.exponent", round(grown, 3), "power of documents", 1.05))
    ours = megabytes(sizes["whole"]) / totals["whole"].cpu_s.total
    for name, kept in peers.items():
        times = ours * kept.cpu_s / judged_mb
        report.rows.append(at_least(f"dedup.times_{name}", round(times, 2), "times", TIMES[name]))


def _by_table(spans: Mapping[str, Mapping[str, Span]]) -> Table:
    made = table("CPU s by table", "table", *spans, "JVM, whole", "workers, whole")
    for name in TABLES:
        whole = spans["whole"][name].cpu_s
        made.add_row(
            name,
            *(f"{of[name].cpu_s.total:,.1f}" for of in spans.values()),
            f"{whole.jvm:,.1f}",
            f"{whole.workers:,.1f}",
        )
    return made


def megabytes(sizes: pa.ChunkedArray) -> float:
    return float(pc.sum(sizes).as_py()) / MB
