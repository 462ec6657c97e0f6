"""The cost of the heuristic filters against datatrove's, and the causes of different verdicts.

Spark measures and decides all rules of Gopher (quality and repetition), C4 and FineWeb on 1 GB of prose
(`bench/filters/corpus.py`). datatrove runs its four filters on a sample: as shipped, dropping a document at
its first failing rule, and each filter on every document. Verdicts are compared on the sample, and every
disagreement is traced by computation to the definitions that cause it (`bench/filters/causes.py`).
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from bench.filters.corpus import corpus, originals
from bench.harness import Report, Row, at_least, at_most, cells, table
from bench.lakes import own_lake
from bench.peers import DATATROVE
from bench.processes import Meter, Span
from factory import _native
from factory.filters.rule import bounds
from factory.filters.sets import RULE_SETS, rules
from factory.filters.stage import decide
from factory.filters.stage import measure as measured
from factory.settings import settings
from factory.spark import build_session

SETS = ("gopher_quality", "gopher_repetition", "c4", "fineweb")
SAMPLE = 4_000  # documents that both judge
TIMES_DATATROVE = 50
FIRST = "first pass"
MB = 1e6
PROGRAM = "bench.filters.peer"
CAVEATS = [
    "The prose is documentation: 40 MB as found, and renamed copies that make up 1 GB.",
    "Ours: the CPU of driver, JVM and workers, including reading Parquet and writing signals and verdicts. "
    "Everything runs twice: the JVM compiles during the first pass, so the second is compared.",
    "The comparison counts measuring and deciding, as datatrove's time includes both; measuring alone has a "
    "row, too.",
    "datatrove: one process, including reading Parquet, writing nothing; loading spaCy is left out.",
]


def measure(progress: Console) -> Report:
    """Measure ours and datatrove, compare verdicts. Raises WrongAnswer if a document is lost."""
    folder = corpus(progress)
    documents = originals(folder).slice(0, SAMPLE)
    n_bytes = _bytes(pq.read_table(folder, columns=["text"]))
    report = Report(
        CAVEATS, f"{n_bytes / MB:,.0f} MB of prose; {SAMPLE:,} documents, {_bytes(documents) / MB:,.1f} MB"
    )
    with tempfile.TemporaryDirectory(prefix="bench-filters-") as scratch:
        progress.print(f"measuring {n_bytes / MB:,.0f} MB through Spark")
        spans = _ours(folder, Path(scratch), report)
        sample = Path(scratch) / "sample.parquet"
        pq.write_table(documents, sample)
        failing = Path(scratch) / "failing.json"
        failing.write_text(json.dumps(failing_rules(documents)))
        progress.print(f"datatrove on {SAMPLE:,} documents, as shipped")
        shipped = DATATROVE.answer(PROGRAM, "shipped", sample, console=progress)
        progress.print("datatrove, every filter on every document, and the causes of disagreements")
        apart = DATATROVE.answer(PROGRAM, "apart", sample, failing, console=progress)
    add_costs(report, spans, n_bytes, {"as shipped": shipped, "run to the end": apart}, _bytes(documents))
    add_disagreements(report, apart)
    return report


def failing_rules(documents: pa.Table) -> dict[str, dict[str, list[str]]]:
    """The failing rules by document and rule set."""
    texts = documents["text"].combine_chunks()
    found: dict[str, dict[str, list[str]]] = {doc_id: {} for doc_id in documents["doc_id"].to_pylist()}
    for name in SETS:
        limits = [(rule.name, *bounds(rule.limit)) for rule in RULE_SETS[name]]
        values = _native.text_signals(texts, [rule.name for rule in RULE_SETS[name]])
        for doc_id, rejections in zip(found, _native.rejections(values, limits).to_pylist(), strict=True):
            found[doc_id][name] = [rejection["rule"] for rejection in rejections]
    return found


def _bytes(documents: pa.Table) -> int:
    return int(pc.sum(pc.binary_length(documents["text"])).as_py())


def _ours(folder: Path, scratch: Path, report: Report) -> dict[str, Span]:
    """The costs of starting, measuring and deciding, in a fresh session."""
    own = own_lake(scratch)
    first, target = scratch / "first", scratch / "second"
    with Meter() as meter:
        spark = build_session(own)
        meter.begin(FIRST)
        _measure(spark, folder, first)
        _decide(spark, first)
        meter.begin("measure")
        _measure(spark, folder, target)
        meter.begin("decide")
        _decide(spark, target)
        meter.begin("check")
        ids = pq.read_table(target / "filtered", columns=["doc_id"])["doc_id"].to_pylist()
        expected = pq.read_table(folder, columns=["doc_id"])["doc_id"].to_pylist()
        report.check(
            f"each of {len(expected):,} documents has one verdict, by {len(rules(SETS))} rules",
            sorted(ids) == sorted(expected),
        )
        meter.begin("stop")
        spark.stop()
    return {span.name: span for span in meter.spans}


def _measure(spark: SparkSession, documents: Path, target: Path) -> None:
    measured(spark.read.parquet(str(documents)), rules(SETS)).write.parquet(str(target / "signals"))


def _decide(spark: SparkSession, target: Path) -> None:
    decide(spark.read.parquet(str(target / "signals")), rules(SETS)).write.parquet(str(target / "filtered"))


def add_costs(
    report: Report,
    spans: Mapping[str, Span],
    n_bytes: int,
    peers: Mapping[str, Mapping[str, Any]],
    sample_bytes: int,
) -> None:
    """Add the costs of both, and our speed over datatrove's."""
    costs = table("Costs", " | MB | wall s | CPU s | driver | JVM | workers | MB/CPU s")
    both = Span("second pass")
    for name in ("measure", "decide"):
        both.add(spans[name])
    sizes = {"start": 0, FIRST: n_bytes, "measure": n_bytes, "decide": 0, both.name: n_bytes}
    for name, size in sizes.items():
        span = {**spans, both.name: both}[name]
        cpu_s = span.cpu_s.total
        speed = f"{size / MB / cpu_s:,.1f}" if size else ""
        costs.add_row(
            span.name, f"{size / MB:,.0f}" if size else "", *(f"{it:,.1f}" for it in span.seconds), speed
        )
        report.rows += [
            Row(f"filters.{span.name.replace(' ', '_')}.wall", round(span.wall_s, 2), "s"),
            Row(f"filters.{span.name.replace(' ', '_')}.cpu", round(cpu_s, 2), "s"),
        ]
    speeds = {
        "": n_bytes / MB / spans["measure"].cpu_s.total,
        ".with_deciding": n_bytes / MB / both.cpu_s.total,
        ".first_pass": n_bytes / MB / spans[FIRST].cpu_s.total,
    }
    report.rows += [
        Row(f"filters.speed{what}", round(speed, 2), "MB/CPU s") for what, speed in speeds.items()
    ]
    for name, found in peers.items():
        seconds = float(found["cpu_s"])
        theirs = sample_bytes / MB / seconds
        line = f"datatrove, {name} | {sample_bytes / MB:,.0f} | | {seconds:,.1f} | | | | {theirs:.2f}"
        costs.add_row(*cells(line))
        report.rows.append(Row(f"filters.datatrove.{name.replace(' ', '_')}", round(theirs, 4), "MB/CPU s"))
        for what, ours in speeds.items():
            times = f"filters.times_datatrove.{name.replace(' ', '_')}{what}"
            aimed = name == "as shipped" and what == ".with_deciding"  # datatrove's time includes deciding
            ratio = round(ours / theirs, 1)
            report.rows.append(
                at_least(times, ratio, "times", TIMES_DATATROVE) if aimed else Row(times, ratio, "times")
            )
    report.tables.append(costs)


def add_disagreements(report: Report, found: Mapping[str, Any]) -> None:
    """Add the causes of all disagreements; write each disagreement to a file."""
    report.check(
        f"on {found['documents']:,} documents each filter written out for the comparison gives our failing "
        "rules without a switch, and datatrove's first failing rule with every switch",
        not found["wrong"],
    )
    disagreements: Sequence[Mapping[str, Any]] = found["disagreements"]
    listed = settings().cache / "bench" / "filters-disagreements.jsonl"
    listed.write_text("".join(json.dumps(it) + "\n" for it in disagreements))
    unexplained = [it for it in disagreements if it["cause"] is None]
    counts: Counter[tuple[str, ...]] = Counter()
    for it in disagreements:
        if it["cause"] is not None:
            who = "datatrove" if it["datatrove"] else "ours"
            counts[it["filter"], it["datatrove"] or it["ours"][0], who, *it["cause"]] += 1
    made = table(f"Disagreements (each in {listed})", "filter | rule | rejected by | documents | cause")
    for (name, rule, who, *causes), number in sorted(counts.items()):
        made.add_row(name, rule, who, f"{number:,}", "; ".join(_short(cause) for cause in causes))
    meanings = table("Causes", "cause | datatrove's definition instead of ours")
    for cause in sorted({cause for _, _, _, *causes in counts for cause in causes}):
        meanings.add_row(_short(cause), cause.partition(": ")[2])
    report.tables += [made, meanings]
    for name in SETS:
        number = sum(it["filter"] == name for it in disagreements)
        report.rows.append(Row(f"filters.disagreements.{name}", number, "documents"))
    report.rows.append(at_most("filters.unexplained", len(unexplained), "verdicts", 0))


def _short(cause: str) -> str:
    return cause.partition(":")[0]
