"""A million vectors through Spark: cells, clusters and the cluster of every document, in core seconds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from bench.cache import cached
from bench.harness import Report, Row, table
from bench.lakes import own_lake
from bench.processes import Meter, Span
from factory.clusters.assignment import assigned
from factory.clusters.coarse import coarse_table
from factory.clusters.fine import fine_table
from factory.spark.session import build_session
from spark_udfs.clusters.vectors import binary

N_VECTORS, DIMENSIONS, TOPICS = 1_000_000, 128, 2_000
FEW = 5_000  # vectors of the warm-up
ROWS_A_FILE = 125_000
STEPS = ("coarse", "fine", "assigned")
CAVEATS = [
    "Random unit vectors around 2,000 centers of sizes by Zipf, from Parquet to Parquet in `local[2]`; the "
    "CPU of driver, JVM and Python workers. Texts are a few words, so terms cost little. Five thousand "
    "vectors run first, in one partition and in eight, while the JVM compiles.",
    "Embedding the texts is left out.",
]


def measure(progress: Console) -> Report:
    """Cut and assign. Raises WrongAnswer if documents are lost."""

    def make(folder: Path) -> None:
        progress.print(f"drawing vectors in {folder} (once)")
        _draw(folder / "few", FEW)
        _draw(folder / "all", N_VECTORS)

    folder = cached(f"clusters-{N_VECTORS}-{DIMENSIONS}", make)
    with tempfile.TemporaryDirectory(prefix="bench-clusters-") as home:
        spark = build_session(own_lake(Path(home), spark_master="local[2]"))
        try:
            spans = _spans(spark, folder, Path(home), progress)
            same = all(_rows(home, "few", step).equals(_rows(home, "few in 8", step)) for step in STEPS)
            sizes = {step: spark.read.parquet(f"{home}/all/{step}").count() for step in STEPS}
        finally:
            spark.stop()
    counts = f"{sizes['coarse'] - 1:,} cells, {sizes['fine'] - 1:,} clusters"
    report = Report(CAVEATS, f"{N_VECTORS:,} vectors of {DIMENSIONS} numbers; {counts}")
    report.check(f"{FEW:,} vectors in one partition and in eight have the same tables", same)
    report.check("every document has a cluster", sizes["assigned"] == N_VECTORS)
    costs = table("Steps", " | wall s | core s | driver | JVM | workers | peak GB")
    for step in STEPS:
        cpu, peak = spans[step].cpu_s, spans[step].peak.total / 1e9
        seconds = (cpu.total, cpu.driver, cpu.jvm, cpu.workers)
        costs.add_row(step, f"{spans[step].wall_s:.1f}", *(f"{s:.1f}" for s in seconds), f"{peak:.1f}")
        report.rows.append(Row(f"clusters.scale.{step}", round(cpu.total, 1), "core s"))
    report.tables.append(costs)
    total = sum(spans[step].cpu_s.total for step in STEPS)
    report.rows.append(Row("clusters.scale.total", round(total, 1), "core s"))
    return report


def _spans(spark: SparkSession, folder: Path, home: Path, progress: Console) -> dict[str, Span]:
    with Meter() as meter:
        for part in ("few", "few in 8", "all"):
            rows = spark.read.parquet(str(folder / part.split()[0]))
            rows = rows.repartition(8) if part == "few in 8" else rows
            vectors, documents = rows.select("doc_id", "vector", "partition"), rows.select("doc_id", "text")
            tables = home / part

            def begin(step: str, part: str = part) -> None:
                progress.print(f"{part}: {step}")
                meter.begin(step if part == "all" else f"{step} of {part}")

            begin("coarse")
            coarse_table(vectors, documents).write.parquet(str(tables / "coarse"))
            coarse = spark.read.parquet(str(tables / "coarse"))
            begin("fine")
            fine_table(vectors, coarse).write.parquet(str(tables / "fine"))
            fine = spark.read.parquet(str(tables / "fine"))
            begin("assigned")
            assigned(vectors, coarse, fine).write.parquet(str(tables / "assigned"))
        meter.begin("stop")
    return {span.name: span for span in meter.spans}


def _rows(home: str, part: str, step: str) -> pa.Table:
    """A table that Spark wrote, in the order of its first column."""
    rows = pq.read_table(Path(home) / part / step)
    return rows.sort_by(rows.column_names[0]).combine_chunks()


def _draw(folder: Path, n: int) -> None:
    chance = np.random.default_rng(7)
    folder.mkdir(parents=True)
    centers = chance.standard_normal((TOPICS, DIMENSIONS)) / np.sqrt(DIMENSIONS)
    shares = 1 / np.arange(1, TOPICS + 1)
    for begin in range(0, n, ROWS_A_FILE):
        ids = np.arange(begin, min(begin + ROWS_A_FILE, n))
        topics = chance.choice(TOPICS, len(ids), p=shares / shares.sum())
        rows = centers[topics] + chance.standard_normal((len(ids), DIMENSIONS)) / np.sqrt(DIMENSIONS)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        columns = {
            "doc_id": pa.array([f"{number:032x}" for number in ids]),
            "vector": binary(rows.astype(np.float32)),
            "text": pa.array([f"a text on topic{topic}, one of topic{topic // 10}" for topic in topics]),
            "partition": pa.nulls(len(ids), pa.string()),
        }
        pq.write_table(pa.table(columns), folder / f"{begin:08}.parquet")
