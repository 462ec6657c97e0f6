"""The cost of the parts of the corpus by table, its growth, and the speed against the peers."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Table

from bench.dedup.chain import exponent, fixed_cost, total
from bench.dedup.peers import Kept
from bench.harness import Report, Row, at_least, at_most, cells, table
from bench.processes import Span

TIMES = {"datatrove": 50, "rensa": 2.5}
MB = 1e6


def add_costs(
    report: Report,
    spans: Mapping[str, Mapping[str, Span]],
    sizes: Mapping[str, pa.ChunkedArray],
    peers: Mapping[str, Kept],
    compared: str,
) -> None:
    """Add the costs of the parts, smallest first, their growth, and the speed of each tool on `compared`."""
    costs = table("Costs", " | documents | MB | CPU s | driver | JVM | workers | peak MB | MB/CPU s")
    totals = {name: total(of) for name, of in spans.items()}
    for name, span in totals.items():
        cpu_s, size = span.cpu_s.total, megabytes(sizes[name])
        costs.add_row(
            *cells(f"ours, {name} | {len(sizes[name]):,} | {size:,.0f}"),
            *(f"{it:,.1f}" for it in span.seconds[1:]),
            *cells(f"{span.peak.total / MB:,.0f} | {size / cpu_s:,.2f}"),
        )
        report.rows += [
            Row(f"dedup.{name}.documents", len(sizes[name]), "documents"),
            Row(f"dedup.{name}.cpu", round(cpu_s, 2), "s"),
            Row(f"dedup.{name}.speed", round(size / cpu_s, 2), "MB/CPU s"),
            Row(f"dedup.{name}.peak_memory", round(span.peak.total / MB), "MB"),
        ]
    size = megabytes(sizes[compared])
    for name, kept in peers.items():
        speed = size / kept.cpu_s
        line = f"{name}, {compared} | {len(sizes[compared]):,} | {size:,.0f} | {kept.cpu_s:,.1f} | | |"
        line += f" | {kept.peak / MB:,.0f} | {speed:.2f}"
        costs.add_row(*cells(line))
        report.rows += [
            Row(f"dedup.{name}.speed", round(speed, 3), "MB/CPU s"),
            Row(f"dedup.{name}.peak_memory", round(kept.peak / MB), "MB"),
        ]
    report.tables += [costs, _by_table(spans)]
    documents = [len(sizes[total]) for total in totals]
    seconds = [of.cpu_s.total for of in totals.values()]
    marginal, fixed = exponent(documents[-2:], seconds[-2:]), fixed_cost(documents, seconds)
    between = " to ".join([*totals][-2:])
    growth = table("Growth", f"parts | marginal exponent, {between} | fixed cost, CPU s")
    growth.add_row(", ".join(totals), f"{marginal:.3f}", f"{fixed:,.1f}")
    report.tables.append(growth)
    report.rows += [
        at_most("dedup.marginal_exponent", round(marginal, 3), "power of documents", 1.05),
        Row("dedup.fixed_cost", round(fixed, 2), "CPU s"),
    ]
    for name, kept in peers.items():
        times = kept.cpu_s / totals[compared].cpu_s.total
        report.rows.append(at_least(f"dedup.times_{name}", round(times, 2), "times", TIMES[name]))


def _by_table(spans: Mapping[str, Mapping[str, Span]]) -> Table:
    *_, largest = spans
    made = table("CPU s by table", f"table | {' | '.join(spans)} | JVM, {largest} | workers, {largest}")
    for name in spans[largest]:
        whole = spans[largest][name].cpu_s
        totals = (span[name].cpu_s.total for span in spans.values())
        made.add_row(name, *(f"{total:,.1f}" for total in (*totals, whole.jvm, whole.workers)))
    return made


def megabytes(sizes: pa.ChunkedArray) -> float:
    return float(pc.sum(sizes).as_py()) / MB
