"""Connected components of ten million edges in Spark: CPU seconds, memory and rounds of both algorithms.

The graph (`bench/dedup/components/graph.py`) has stars of power-law sizes and long paths. Both algorithms
run on it, in two tasks; every label is compared with the least id of the component that scipy finds.
"""

from __future__ import annotations

import logging
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from bench.dedup.components.graph import batches, graph, names
from bench.harness import Report, Row, cells, table
from bench.lakes import own_lake
from bench.processes import Meter, Span
from factory.dedup.components import alternating, one_task
from factory.spark.session import build_session

EDGES = 10_000_000
SMALL = 100_000  # edges of the warm-up run
SEED = 5
FILES = 8
WAYS: dict[str, Callable[[DataFrame], DataFrame]] = {"one task": one_task, "alternating": alternating}
MB = 1e6
CAVEATS = [
    "From edges in Parquet to labels in Parquet; the CPU of driver, JVM and Python workers. Both algorithms "
    "run first on a hundredth of the edges, while the JVM compiles.",
    "A JVM keeps its heap, so the second algorithm's peak includes the first one's garbage.",
]


def measure(progress: Console) -> Report:
    """Find the components by each algorithm and compare every label. Raises WrongAnswer."""
    progress.print(f"a graph of {EDGES:,} edges")
    n_documents, edges = graph(EDGES, SEED)
    ids = names(np.arange(n_documents))
    began = time.process_time()
    expected = labels(n_documents, edges, ids)
    scipy_s = time.process_time() - began
    sizes = np.array(pc.value_counts(expected["component"]).field("counts"))
    report = Report(
        CAVEATS,
        f"{EDGES:,} edges of {expected.num_rows:,} documents in {len(sizes):,} components, the largest of "
        f"{sizes.max():,}",
    )
    with tempfile.TemporaryDirectory(prefix="bench-components-") as scratch:
        home = Path(scratch)
        _write(home / "whole", edges, ids)
        _write(home / "small", edges[:SMALL], ids)
        own = own_lake(home / "lake", spark_master="local[2]")
        spark = build_session(own)
        try:
            spans, rounds = _found(spark, home, progress)
        finally:
            spark.stop()
        for way in WAYS:
            same = labelled(home / way).equals(expected)
            report.check(f"{way}: the label of every document is the least id of its scipy component", same)
    report.tables.append(_table(spans, rounds, scipy_s))
    report.rows = _rows(spans, rounds, scipy_s)
    return report


def labels(n_documents: int, edges: np.ndarray, ids: pa.Array) -> pa.Table:
    """(doc_id, component) of every document that has an edge, by doc_id, by scipy."""
    ones = np.ones(len(edges), np.float32)
    matrix = coo_matrix((ones, (edges[:, 0], edges[:, 1])), (n_documents, n_documents))
    component = connected_components(matrix, directed=False)[1]
    joined = np.zeros(n_documents, bool)
    joined[edges.ravel()] = True
    by_id = pc.sort_indices(ids).to_numpy()  # so the first of a component has its least id
    first = np.full(component.max() + 1, -1)
    first[component[by_id[::-1]]] = by_id[::-1]
    documents = by_id[joined[by_id]]
    return pa.table(
        {
            "doc_id": ids.take(pa.array(documents)),
            "component": ids.take(pa.array(first[component[documents]])),
        }
    )


def labelled(folder: Path) -> pa.Table:
    """(doc_id, component) as an algorithm wrote them, by doc_id."""
    found = pq.read_table(folder).sort_by("doc_id").combine_chunks()
    return found.cast(pa.schema([("doc_id", pa.string()), ("component", pa.string())]))


def _write(folder: Path, edges: np.ndarray, ids: pa.Array) -> None:
    folder.mkdir()
    for number, part in enumerate(np.array_split(edges, FILES)):
        with pq.ParquetWriter(folder / f"{number}.parquet", _SCHEMA, compression="zstd") as writer:
            for batch in batches(part, ids):
                writer.write_batch(batch)


_SCHEMA = pa.schema([("left", pa.string()), ("right", pa.string())])


def _found(spark: SparkSession, home: Path, progress: Console) -> tuple[dict[str, Span], dict[str, int]]:
    """The cost of each algorithm, and its rounds."""
    rounds = {}
    with Meter() as meter:
        for way, find in WAYS.items():
            find(spark.read.parquet(str(home / "small"))).write.parquet(str(home / f"{way} of few"))
        for way, find in WAYS.items():
            progress.print(way)
            meter.begin(way)
            with counted_rounds() as seen:
                find(spark.read.parquet(str(home / "whole"))).write.parquet(str(home / way))
            rounds[way] = len(seen)
        meter.begin("stop")
    return {span.name: span for span in meter.spans if span.name in WAYS}, rounds


@contextmanager
def counted_rounds() -> Iterator[list[int]]:
    """The edges that each round of `alternating` leaves, from its log."""
    seen: list[int] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said = re.search(r"round \d+ leaves (\d+) edges", record.getMessage())
            if said:
                seen.append(int(said[1]))

    log = logging.getLogger("factory.dedup.components")
    listener, before = Listener(), log.level
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    try:
        yield seen
    finally:
        log.setLevel(before)
        log.removeHandler(listener)


def _table(spans: dict[str, Span], rounds: dict[str, int], scipy_s: float) -> Table:
    columns = " | wall s | CPU s | driver | JVM | workers | peak MB | rounds | edges/CPU s"
    made = table("Components", columns)
    for way, span in spans.items():
        speed = EDGES / span.cpu_s.total
        rest = f"{span.peak.total / MB:,.0f} | {rounds[way] or ''} | {speed:,.0f}"
        made.add_row(way, *(f"{duration:,.1f}" for duration in span.seconds), *cells(rest))
    made.add_row(*cells(f"scipy, on numbers | | {scipy_s:,.1f} | | | | | | {EDGES / scipy_s:,.0f}"))
    return made


def _rows(spans: dict[str, Span], rounds: dict[str, int], scipy_s: float) -> list[Row]:
    found = []
    for way, span in spans.items():
        name = f"components.{way.replace(' ', '_')}"
        found += [
            Row(f"{name}.cpu", round(span.cpu_s.total, 2), "s"),
            Row(f"{name}.peak_memory", round(span.peak.total / MB), "MB"),
            Row(f"{name}.speed", round(EDGES / span.cpu_s.total), "edges/CPU s"),
        ]
    found.append(Row("components.alternating.rounds", rounds["alternating"], "rounds"))
    found.append(Row("components.scipy.cpu", round(scipy_s, 2), "s"))
    return found
