"""`python -m bench.filters.ours SCRATCH FILE ...`: the cost of our filters on Parquet files, twice in a row.

A process of its own, so that the JVM is new and compiles during the first pass. Prints one line of JSON: the
number of verdicts, whether each document has one, and by span (`start`, `first pass`, `measure`, `decide`)
the wall seconds and the CPU seconds of driver, JVM and workers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.lakes import own_lake
from bench.processes import ByKind, Meter, Span
from factory.filters.sets import rules
from factory.filters.stage import decide
from factory.filters.stage import measure as measured
from factory.spark.session import build_session

SETS = ("gopher_quality", "gopher_repetition", "c4", "fineweb")
FIRST, MEASURE, DECIDE = "first pass", "measure", "decide"


def run(scratch: Path, files: Sequence[str]) -> dict[str, Any]:
    """Measure and decide all rules on the documents of `files`, twice, in a new session."""
    scratch.mkdir(parents=True, exist_ok=True)
    with Meter() as meter:
        spark = build_session(own_lake(scratch / "lake"))
        counts = passes(spark, meter, scratch, files)
        spark.stop()
    return counts | {"spans": {span.name: [span.wall_s, *astuple(span.cpu_s)] for span in meter.spans}}


def passes(spark: SparkSession, meter: Meter, scratch: Path, files: Sequence[str]) -> dict[str, Any]:
    """Measure and decide twice, each part in a span of its own; return the counts of documents."""
    first, second = scratch / "first", scratch / "second"
    meter.begin(FIRST)
    _measure(spark, files, first)
    _decide(spark, first)
    meter.begin(MEASURE)
    _measure(spark, files, second)
    meter.begin(DECIDE)
    _decide(spark, second)
    meter.begin("check")
    expected = sorted(doc_id for file in files for doc_id in _ids(Path(file)))
    verdicts = [sorted(_ids(target / "filtered")) for target in (first, second)]
    return {"documents": len(expected), "complete": verdicts == [expected, expected]}


def spans_of(printed: dict[str, Any]) -> dict[str, Span]:
    """The spans that this program printed, and `second pass`, the sum of `measure` and `decide`."""
    spans = {name: Span(name, wall_s, ByKind(*cpu_s)) for name, (wall_s, *cpu_s) in printed["spans"].items()}
    second = Span("second pass")
    for name in (MEASURE, DECIDE):
        second.add(spans[name])
    return {**spans, second.name: second}


def _measure(spark: SparkSession, files: Sequence[str], target: Path) -> None:
    measured(spark.read.parquet(*files), rules(SETS)).write.parquet(str(target / "signals"))


def _decide(spark: SparkSession, target: Path) -> None:
    decide(spark.read.parquet(str(target / "signals")), rules(SETS)).write.parquet(str(target / "filtered"))


def _ids(documents: Path) -> list[str]:
    found: list[str] = pq.read_table(documents, columns=["doc_id"])["doc_id"].to_pylist()
    return found


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), sys.argv[2:])))
