"""Bags made again from the texts beside bags stored in a table: what either costs exact verification."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from bench.harness import Report, Row, table
from factory import _native
from factory.dedup.config import MAX_DISTINCT

MB = 1e6


def add_bags(report: Report, texts: pa.Array, kind: str, scratch: Path) -> None:
    """Add what it costs, in this process, to read texts and make their bags, and to write and read bags."""
    made: list[pa.RecordBatch] = []
    of_texts, of_bags = scratch / "texts.parquet", scratch / "bags.parquet"
    pq.write_table(pa.table({"text": texts}), of_texts, compression="zstd")
    seconds = {
        "read texts": _cpu(lambda: _read(of_texts)),
        "make bags": _cpu(lambda: made.append(_native.bags(texts, kind, MAX_DISTINCT))),
    }
    bags = pa.Table.from_batches(made)
    seconds["write bags"] = _cpu(
        lambda: pq.write_table(bags, of_bags, compression="zstd", use_dictionary=False)
    )
    seconds["read bags"] = _cpu(lambda: _read(of_bags))
    report.tables.append(_table(seconds, of_texts.stat().st_size, of_bags.stat().st_size))
    again = seconds["read texts"] + seconds["make bags"]
    report.rows += [
        Row("dedup.bags.again", round(again, 2), "s"),
        Row("dedup.bags.stored", round(seconds["write bags"] + seconds["read bags"], 2), "s"),
        Row("dedup.bags.stored_size", round(of_bags.stat().st_size / MB, 1), "MB"),
        Row("dedup.bags.text_size", round(of_texts.stat().st_size / MB, 1), "MB"),
    ]


def _read(file: Path) -> None:
    """Read a file as workers do: a whole table at once would mostly measure how the system gives memory."""
    for _ in pq.ParquetFile(file, pre_buffer=False).iter_batches(1024, use_threads=False):
        pass


def _cpu(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _table(seconds: dict[str, float], text_bytes: int, bag_bytes: int) -> Table:
    made = table("Bags for verification", "", "CPU s", "MB in Parquet")
    sizes = {"read texts": text_bytes, "read bags": bag_bytes}
    for step, took in seconds.items():
        made.add_row(step, f"{took:,.2f}", f"{sizes[step] / MB:,.1f}" if step in sizes else "")
    return made
