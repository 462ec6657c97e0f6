"""The cost of the heuristic filters against datatrove's, and the causes of different verdicts.

Spark measures and decides all rules of Gopher (quality and repetition), C4 and FineWeb on 325 MB and on 1 GB
of prose (`bench/filters/corpus.py`), twice each. datatrove runs its four filters on a sample: as shipped,
dropping a document at its first failing rule, and each filter on every document. Verdicts are compared on the
sample, and every disagreement is traced by computation to the definitions that cause it
(`bench/filters/causes.py`). The sets `datatrove_*`, which have datatrove's definitions, judge the same
sample.
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
from rich.console import Console

from bench.filters.corpus import LEAST_BYTES, copies, corpus, originals, text_bytes
from bench.filters.ours import DECIDE, FIRST, MEASURE, SETS, spans_of
from bench.harness import Report, Row, at_least, at_most, cells, table
from bench.peers import DATATROVE, answer
from bench.processes import Span
from factory import _native
from factory.filters.limits import bounds
from factory.filters.sets import RULE_SETS, rules
from factory.settings import settings
from spark_udfs.filters import verdicts

SIZES = {"325mb": 325_000_000, "1gb": LEAST_BYTES}  # least bytes of text
SAMPLE = 4_000  # documents that both judge
TIMES_DATATROVE = 50
EQUAL_VERDICTS = 99.5  # percent of documents, by the sets `datatrove_*`
SHIPPED, SECOND = "as shipped", "second pass"
MB = 1e6
PROGRAM = "bench.filters.peer"
CAVEATS = [
    "The prose is documentation: 40 MB as found, and renamed copies that make up 1 GB.",
    "Ours: the CPU of driver, JVM and workers, including reading Parquet and writing signals and verdicts. "
    "Everything runs twice, in its own process. A single run costs as much as the first pass, in which the "
    "JVM compiles. Both passes are held against the aim.",
    "The comparison counts measuring and deciding, as datatrove's time includes both; measuring alone has a "
    "row, too.",
    "datatrove: one process, including reading Parquet, writing nothing; loading spaCy is left out.",
]


def measure(progress: Console) -> Report:
    """Measure ours and datatrove, compare verdicts. Raises WrongAnswer if a document is lost."""
    folder = corpus(progress)
    documents = originals(folder).slice(0, SAMPLE)
    files = {name: copies(folder, least) for name, least in SIZES.items()}
    n_bytes = {name: sum(map(text_bytes, of)) for name, of in files.items()}
    sizes = " and ".join(f"{size / MB:,.0f} MB" for size in n_bytes.values())
    report = Report(CAVEATS, f"{sizes} of prose; {SAMPLE:,} documents, {_bytes(documents) / MB:,.1f} MB")
    with tempfile.TemporaryDirectory(prefix="bench-filters-") as scratch:
        spans = {name: _ours(Path(scratch) / name, files[name], report, progress) for name in SIZES}
        sample = Path(scratch) / "sample.parquet"
        pq.write_table(documents, sample)
        failing = Path(scratch) / "failing.json"
        failing.write_text(json.dumps(failing_rules(documents)))
        progress.print(f"datatrove on {SAMPLE:,} documents, as shipped")
        shipped = DATATROVE.answer(PROGRAM, "shipped", sample, console=progress)
        progress.print("datatrove, every filter on every document, and the causes of disagreements")
        apart = DATATROVE.answer(PROGRAM, "apart", sample, failing, console=progress)
    add_costs(report, spans, n_bytes, {SHIPPED: shipped, "run to the end": apart}, _bytes(documents))
    add_disagreements(report, apart)
    add_equal_verdicts(report, apart, _bytes(documents))
    return report


def failing_rules(documents: pa.Table) -> dict[str, dict[str, list[str]]]:
    """The failing rules by document and rule set."""
    texts = documents["text"].combine_chunks()
    found: dict[str, dict[str, list[str]]] = {doc_id: {} for doc_id in documents["doc_id"].to_pylist()}
    for name in SETS:
        limits = [verdicts.RuleLimit(rule.name, *bounds(rule.bounds)) for rule in RULE_SETS[name]]
        values = _native.text_signals(texts, [rule.name for rule in RULE_SETS[name]])
        failures, _ = verdicts.judge(values, limits)
        for doc_id, rejections in zip(found, failures.to_pylist(), strict=True):
            found[doc_id][name] = [rejection["rule"] for rejection in rejections]
    return found


def _bytes(documents: pa.Table) -> int:
    return int(pc.sum(pc.binary_length(documents["text"])).as_py())


def _ours(scratch: Path, files: Sequence[Path], report: Report, progress: Console) -> dict[str, Span]:
    """The costs of starting, of both passes and their parts."""
    progress.print(f"measuring {sum(map(text_bytes, files)) / MB:,.0f} MB through Spark")
    printed = answer("bench.filters.ours", scratch, *files)
    report.check(
        f"each of {printed['documents']:,} documents has one verdict, by {len(rules(SETS))} rules",
        printed["complete"],
    )
    return spans_of(printed)


def add_costs(
    report: Report,
    ours: Mapping[str, Mapping[str, Span]],
    n_bytes: Mapping[str, int],
    peers: Mapping[str, Mapping[str, Any]],
    sample_bytes: int,
) -> None:
    """Add the costs and our speed over datatrove's; `ours` and `n_bytes` are by size of the corpus."""
    costs = table("Costs", " | MB | wall s | CPU s | driver | JVM | workers | MB/CPU s")
    speeds: dict[tuple[str, str], float] = {}
    for size, spans in ours.items():
        for name in ("start", FIRST, MEASURE, DECIDE, SECOND):
            span, row = spans[name], f"filters.{size}.{name.replace(' ', '_')}"
            mb = 0 if name in ("start", DECIDE) else n_bytes[size] / MB
            speed = mb / span.cpu_s.total
            costs.add_row(
                f"{size}, {name}",
                f"{mb:,.0f}" if mb else "",
                *(f"{duration:,.1f}" for duration in span.seconds),
                f"{speed:,.1f}" if mb else "",
            )
            report.rows += [
                Row(f"{row}.wall", round(span.wall_s, 2), "s"),
                Row(f"{row}.cpu", round(span.cpu_s.total, 2), "s"),
            ]
            if mb:
                speeds[size, name] = speed
                report.rows.append(Row(f"{row}.speed", round(speed, 2), "MB/CPU s"))
    for name, found in peers.items():
        seconds = float(found["cpu_s"])
        theirs = sample_bytes / MB / seconds
        line = f"datatrove, {name} | {sample_bytes / MB:,.0f} | | {seconds:,.1f} | | | | {theirs:.2f}"
        costs.add_row(*cells(line))
        peer = f"datatrove.{name.replace(' ', '_')}"
        report.rows.append(Row(f"filters.{peer}", round(theirs, 4), "MB/CPU s"))
        for (size, part), speed in speeds.items():
            times = f"filters.times_{peer}.{size}.{part.replace(' ', '_')}"
            aimed = name == SHIPPED and part != MEASURE  # datatrove's time includes deciding
            ratio = round(speed / theirs, 1)
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
    listed.write_text("".join(json.dumps(disagreement) + "\n" for disagreement in disagreements))
    unexplained = [disagreement for disagreement in disagreements if disagreement["cause"] is None]
    counts: Counter[tuple[str, ...]] = Counter()
    for disagreement in disagreements:
        if disagreement["cause"] is not None:
            who = "datatrove" if disagreement["datatrove"] else "ours"
            counts[
                disagreement["filter"],
                disagreement["datatrove"] or disagreement["ours"][0],
                who,
                *disagreement["cause"],
            ] += 1
    made = table(f"Disagreements (each in {listed})", "filter | rule | rejected by | documents | cause")
    for (name, rule, who, *causes), number in sorted(counts.items()):
        made.add_row(name, rule, who, f"{number:,}", "; ".join(_short(cause) for cause in causes))
    meanings = table("Causes", "cause | datatrove's definition instead of ours")
    for cause in sorted({cause for _, _, _, *causes in counts for cause in causes}):
        meanings.add_row(_short(cause), cause.partition(": ")[2])
    report.tables += [made, meanings]
    for name in SETS:
        number = sum(disagreement["filter"] == name for disagreement in disagreements)
        report.rows.append(Row(f"filters.disagreements.{name}", number, "documents"))
    report.rows.append(at_most("filters.unexplained", len(unexplained), "verdicts", 0))


def add_equal_verdicts(report: Report, found: Mapping[str, Any], sample_bytes: int) -> None:
    """Add the share of equal verdicts by our definitions and by datatrove's, and the cost of the latter."""
    documents, compatible = found["documents"], found["compatible"]
    made = table(
        "Verdicts equal to datatrove's, percent of documents", "set | ours | datatrove_<set> | reasons"
    )
    for name in SETS:
        different = sum(it["filter"] == name for it in found["disagreements"])
        ours = 100 * (documents - different) / documents
        theirs, reasons = (100 * compatible[what][name] / documents for what in ("equal", "same_reason"))
        made.add_row(name, f"{ours:.2f}", f"{theirs:.2f}", f"{reasons:.2f}")
        report.rows += [
            Row(f"filters.equal.{name}", round(ours, 2), "%"),
            at_least(f"filters.equal.datatrove_{name}", round(theirs, 2), "%", EQUAL_VERDICTS),
        ]
    report.tables.append(made)
    report.rows += [
        at_most("filters.datatrove_sets.other_words", compatible["other_words"], "documents", 0),
        Row("filters.datatrove_sets.speed", round(sample_bytes / MB / compatible["cpu_s"], 2), "MB/CPU s"),
        Row("filters.datatrove_sets.times", round(found["cpu_s"] / compatible["cpu_s"], 1), "times"),
    ]


def _short(cause: str) -> str:
    return cause.partition(":")[0]
