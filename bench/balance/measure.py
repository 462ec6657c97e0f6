"""How even balance makes a corpus of heavy-tailed topics and lengths, how near it comes to its targets.

A million documents are balanced over topics, over lengths and over both, in Spark as a round does it. A
smaller size must keep a subset, and a partition that arrives later must change no decision. Documents before
and after flat lengths are packed, and padded in batches without packing.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from rich.console import Console

from bench.balance.corpus import write_corpus
from bench.balance.padding import packings
from bench.harness import Report, Row, at_most, cells, table
from bench.lakes import own_lake
from factory.clusters.balance import balance_table
from factory.clusters.balance_options import NamedShares, Target, Temperature
from factory.clusters.categories import categories
from factory.clusters.evenness import effective_number, entropy, share_of_largest
from factory.filters.rules.balanced import BalanceRate
from factory.spark.session import build_session

N_DOCUMENTS, N_LATER = 1_000_000, 100_000
SIZE = 0.25
BOTH = ["source", "length"]
STAYS = "balance_rate IS NULL OR balance <= balance_rate"
AIM = 0.02  # relative distance from a target
LEAST_TARGET = 100  # documents, below which one document is more than a hundredth
NAMED: Target = NamedShares({"topic000": 0.1, "topic001": 0.1, "topic150": 0.2, "only_old": 0.01})
CASES: list[tuple[str, Sequence[str], Target]] = [
    ("topics, uniform", ["source"], "uniform"),
    ("topics, temperature .5", ["source"], Temperature(0.5)),
    ("topics, named shares", ["source"], NAMED),
    ("lengths, uniform", ["length"], "uniform"),
    ("both, uniform", BOTH, "uniform"),
]
CAVEATS = [
    "300 topics by Zipf's law with exponent 1.1, one topic more, and lognormal lengths with a mean of each "
    "topic's own; documents have no texts, because balance reads none.",
    f"`farthest`: the largest relative distance from a target of {LEAST_TARGET} documents and more that the "
    "documents can reach. `short`: categories with fewer documents than their target; `missing`: how many.",
    "`s`: wall seconds of the two jobs that set the rates, in two tasks, after a run on the same data.",
]


@dataclass(frozen=True)
class Balanced:
    """The categories of one case: documents before and after, targets, and seconds."""

    name: str
    rows: list[dict[str, object]]
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    targets: npt.NDArray[np.float64]
    stays: npt.NDArray[np.bool_]
    seconds: float

    @property
    def farthest(self) -> float:
        """The largest relative distance from a target that the documents can reach."""
        reachable = (self.targets <= self.before) & (self.targets >= LEAST_TARGET)
        distances = np.abs(self.after - self.targets)[reachable] / self.targets[reachable]
        return float(distances.max(initial=0.0))

    @property
    def n_short(self) -> int:
        return int((self.before < np.ceil(self.targets)).sum())

    @property
    def n_missing(self) -> int:
        return sum(int(str(row["n_missing"])) for row in self.rows)


def measure(progress: Console) -> Report:
    """Balance, and check nesting and later partitions. Raises WrongAnswer if an earlier decision changes."""
    report = Report(CAVEATS, f"{N_DOCUMENTS:,} documents, of which {SIZE:.0%} stay")
    with tempfile.TemporaryDirectory(prefix="bench-balance-") as scratch:
        home = Path(scratch)
        documents = write_corpus(home / "old" / "0.parquet", N_DOCUMENTS)
        write_corpus(home / "later" / "0.parquet", N_LATER, N_DOCUMENTS, "later")
        spark = build_session(own_lake(home / "lake", spark_master="local[2]"))
        try:
            old = spark.read.parquet(str(home / "old"))
            balance_table(categories(old, BOTH, {}), BOTH, "uniform", SIZE).count()
            cases = []
            for name, over, target in CASES:
                progress.print(f"balancing {name}")
                cases.append(_balanced(name, old, over, target))
            progress.print("checking sizes and a later partition")
            _check_nesting(report, old)
            _check_later(report, old, spark.read.parquet(str(home / "later")))
        finally:
            spark.stop()
    _add_distributions(report, cases)
    [flat] = [case for case in cases if case.name == "lengths, uniform"]
    progress.print("packing")
    _add_packing(report, documents["n_bytes"].to_numpy(), flat.stays)
    return report


def _balanced(name: str, documents: DataFrame, over: Sequence[str], target: Target) -> Balanced:
    in_cells = categories(documents, over, {})
    began = time.perf_counter()
    balance = balance_table(in_cells, over, target, SIZE)
    seconds = time.perf_counter() - began
    decisions = _draws(in_cells, balance).selectExpr("doc_id", "category", f"{STAYS} AS stays")
    answers = decisions.toArrow().sort_by("doc_id")
    stays = answers["stays"].to_numpy()
    rows = balance.toArrow().sort_by("category").to_pylist()
    after = Counter(answers.filter(answers["stays"])["category"].to_pylist())
    return Balanced(
        name,
        rows,
        np.array([row["n_documents"] for row in rows]),
        np.array([after[row["category"]] for row in rows]),
        np.array([row["target"] for row in rows]),
        stays,
        seconds,
    )


def _draws(in_categories: DataFrame, balance: DataFrame) -> DataFrame:
    """Return the category of documents, their draw and the rate of the category, as the rule reads them."""
    values = BalanceRate("web").values(in_categories, {"categories": in_categories, "rates": balance})
    return values.select("doc_id", "category", "balance", "balance_rate")


def _staying(documents: DataFrame, balance: DataFrame) -> pa.Array:
    rows = _draws(categories(documents, BOTH, {}), balance)
    return rows.where(STAYS).select("doc_id").toArrow()["doc_id"].combine_chunks()


def _check_nesting(report: Report, documents: DataFrame) -> None:
    in_cells = categories(documents, BOTH, {})
    sizes = (0.1, SIZE - 1e-6, SIZE, 0.5)
    subsets = [_staying(documents, balance_table(in_cells, BOTH, "uniform", size)) for size in sizes]
    is_nested = all(bool(pc.all(pc.is_in(small, large)).as_py()) for small, large in pairwise(subsets))
    sizes_kept = ", ".join(f"{len(subset):,}" for subset in subsets)
    report.check(
        f"the documents of smaller sizes are subsets of those of larger ones: {sizes_kept}", is_nested
    )


def _check_later(report: Report, old: DataFrame, later: DataFrame) -> None:
    balance = balance_table(categories(old, BOTH, {}), BOTH, "uniform", SIZE)
    before = _staying(old, balance)
    together = _staying(old.unionByName(later).repartition(7), balance)
    earlier = together.filter(pc.less(together, f"d{N_DOCUMENTS:08}"))
    same = earlier.sort().equals(before.sort())
    report.check(f"{N_LATER:,} documents of a later partition change none of {len(before):,} decisions", same)
    rows = _draws(categories(later, BOTH, {}), balance)
    n_new = rows.where("balance_rate IS NULL").count()
    report.rows.append(Row("balance.later.of_new_categories", n_new, "documents"))


def _add_distributions(report: Report, cases: Sequence[Balanced]) -> None:
    columns = "over, target | categories | entropy, bits:\nbefore | after | effective:\nbefore | after"
    columns += " | largest 1 %:\nbefore | after | farthest | short | missing | s"
    figures = table(f"{N_DOCUMENTS:,} documents, size {SIZE}", columns)
    for case in cases:
        counts = (case.before, case.after)
        line = f"{case.name} | {len(case.before):,}"
        line += "".join(f" | {entropy(count):.2f}" for count in counts)
        line += "".join(f" | {effective_number(count):,.1f}" for count in counts)
        line += "".join(f" | {share_of_largest(count):.1%}" for count in counts)
        line += f" | {case.farthest:.2%} | {case.n_short:,} | {case.n_missing:,} | {case.seconds:.1f}"
        figures.add_row(*cells(line))
        name = "balance." + case.name.replace(", ", ".").replace(" ", "_")
        report.rows += [
            Row(f"{name}.entropy_before", entropy(case.before), "bits"),
            Row(f"{name}.entropy_after", entropy(case.after), "bits"),
            at_most(f"{name}.farthest", case.farthest, "share", AIM),
            Row(f"{name}.missing", case.n_missing, "documents"),
            Row(f"{name}.seconds", case.seconds, "s"),
        ]
    report.tables.append(figures)


def _add_packing(report: Report, n_bytes: npt.NDArray[np.int64], stays: npt.NDArray[np.bool_]) -> None:
    sample = np.random.default_rng(0).permutation(len(n_bytes))[: int(stays.sum())]
    columns = (
        "lengths | documents | million tokens | fill, plans of 1,000 | fill, in order | padding of 32 | cut"
    )
    figures = table("Rows of 8,192 tokens, a token for 4 bytes", columns)
    for name, lengths in (("before", n_bytes[np.sort(sample)]), ("flat", n_bytes[stays])):
        packing = packings(lengths)
        line = f"{name} | {len(lengths):,} | {packing.n_tokens / 1e6:,.0f} | {packing.fill_planned:.2%}"
        line += f" | {packing.fill_in_order:.2%} | {packing.padding:.1%} | {packing.cut:.1%}"
        figures.add_row(*cells(line))
        report.rows += [
            Row(f"balance.packing.{name}.fill_planned", packing.fill_planned, "share"),
            Row(f"balance.packing.{name}.fill_in_order", packing.fill_in_order, "share"),
            Row(f"balance.packing.{name}.padding", packing.padding, "share"),
            Row(f"balance.packing.{name}.cut", packing.cut, "share"),
        ]
    report.tables.append(figures)
