"""How much of real repositories' order packing keeps, at several sequence lengths, in one plan per dataset.

Lengths, order and dependencies come from the lake's tables. The same documents get three plans: ours,
next-fit in order (a new sequence when the next document does not fit, and for every repository), and
best-fit decreasing over single documents. `bench.packing.metrics` says which dependencies are visible.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.harness import Report, Row, at_least, table
from bench.packing.lengths import SEQUENCE_LENGTHS, full_and_rest
from bench.packing.metrics import visible_dependencies
from bench.packing.next_fit import next_fit_chunk
from factory._native import best_fit_decreasing
from factory.lake import names
from factory.lake.schemas.base import REPOSITORY
from factory.lake.tables import Lake
from factory.packing.pack import PackConfig
from spark_udfs.packing.pack import plan_chunk

LEAST_FILL = 0.999  # share of the best fill of any plan
LEAST_VISIBLE = 1.0  # share of the dependencies that next-fit shows


@dataclass(frozen=True)
class Repositories:
    """The documents of a dataset, by (repository, revision, position), and their dependencies."""

    documents: pa.Table
    dependencies: pa.Table

    def fill_of_best(self, plan: pa.Table, sequence_length: int) -> float:
        """The fewest sequences of any plan as a share of this plan's."""
        least = -(-int(pc.sum(self.documents["n_tokens"]).as_py()) // sequence_length)
        return least / int(pc.max(plan["sequence"]).as_py() + 1)


def add_repositories(report: Report, lake: Lake, dataset: str) -> None:
    """Add the figures of a dataset whose documents are sorted by dependency."""
    repositories = read(lake, dataset)
    rows = []
    n_edges = 0
    for sequence_length in SEQUENCE_LENGTHS:
        plans = {
            "ours": ours(repositories, sequence_length),
            "next_fit": next_fit_chunk(repositories.documents, sequence_length),
            "best_fit": best_fit(repositories, sequence_length),
        }
        fills = {name: repositories.fill_of_best(plan, sequence_length) for name, plan in plans.items()}
        seen = {}
        for name, plan in plans.items():
            n_edges, seen[name] = visible_dependencies(plan, repositories.dependencies)
        shares = (f"{fills[name]:.2%} {seen[name] / max(1, n_edges):6.1%}" for name in plans)
        rows.append([f"{sequence_length:,}", *shares])
        at = f"packing.{dataset}.{sequence_length}"
        report.rows.append(at_least(f"{at}.fill_of_best", fills["ours"], "share", LEAST_FILL))
        report.rows += [Row(f"{at}.visible_{name}", seen[name], "dependencies") for name in plans]
        if seen["next_fit"]:
            against = seen["ours"] / seen["next_fit"]
            report.rows.append(at_least(f"{at}.visible_against_next_fit", against, "ratio", LEAST_VISIBLE))
    counts = f"{repositories.documents.num_rows:,} documents, {n_edges:,} dependencies"
    columns = "sequence length | ours | next-fit | best-fit decreasing"
    report.tables.append(table(f"{dataset}: {counts}; share of the best fill, share visible", columns, rows))


def read(lake: Lake, dataset: str) -> Repositories:
    """The documents of `dataset` and their dependencies, both of the lake's current tables."""
    columns = ["doc_id", *REPOSITORY, "position", "n_tokens"]
    in_order = [(name, "ascending") for name in (*REPOSITORY, "position", "doc_id")]
    documents = lake.read(names.tokenized(dataset), columns).sort_by(in_order)
    edges = lake.read(names.depsort(dataset, "dependencies"), ["doc_id", "depends_on"])
    return Repositories(documents, edges)


def ours(repositories: Repositories, sequence_length: int) -> pa.Table:
    """The plan of `packed` if the whole dataset were one chunk."""
    depends_on: dict[str, list[str]] = defaultdict(list)
    for edge in repositories.dependencies.to_pylist():
        depends_on[edge["doc_id"]].append(edge["depends_on"])
    lists = [depends_on[doc_id] for doc_id in repositories.documents["doc_id"].to_pylist()]
    chunk = repositories.documents.append_column("depends_on", pa.array(lists, pa.list_(pa.string())))
    return plan_chunk(chunk, sequence_length, PackConfig().slack)


def best_fit(repositories: Repositories, sequence_length: int) -> pa.Table:
    """Best-fit decreasing over single documents, a sequence in order of (repository, revision, position)."""
    full, rest = full_and_rest(repositories.documents["n_tokens"].to_numpy(), sequence_length)
    placed = best_fit_decreasing(pa.array(rest), sequence_length).cast(pa.int64()).fill_null(-1).to_numpy()
    remainders = np.flatnonzero(rest)
    document = np.concatenate([remainders, np.repeat(np.arange(len(full)), full)])
    own = placed.max(initial=-1) + 1 + np.arange(full.sum())
    return pa.table(
        {
            "sequence": np.concatenate([placed[remainders], own]),
            "position": document,
            "doc_id": repositories.documents["doc_id"].take(pa.array(document)),
            "length": np.concatenate([rest[remainders], np.full(full.sum(), sequence_length)]),
        }
    )
