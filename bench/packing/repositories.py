"""How much of real repositories' order packing keeps, at several sequence lengths, in one plan per dataset.

Lengths, order and dependencies come from the lake's tables. The same documents get three plans: ours,
next-fit in order (a new sequence when the next document does not fit, and for every repository), and
best-fit decreasing over single documents. A dependency is visible if it stands whole in a sequence that
holds its dependent, before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.harness import Report, Row, at_least, table
from bench.packing.lengths import SEQUENCE_LENGTHS
from factory._native import best_fit_decreasing
from factory.lake import names
from factory.lake.schemas import REPOSITORY
from factory.lake.tables import Lake
from factory.packing.pack import PackConfig
from spark_udfs.packing.pack import next_fit_chunk, plan_chunk

LEAST_FILL = 0.99  # of the room of the sequences
LEAST_VISIBLE = 0.95  # of the dependencies that next-fit shows


@dataclass(frozen=True)
class Plan:
    """The sequence and position of the last piece of each document, and how many sequences there are."""

    sequence: np.ndarray
    position: np.ndarray
    n_sequences: int


@dataclass(frozen=True)
class Repositories:
    """The documents of a dataset, by (repository, revision, position), and their dependencies, by number."""

    documents: pa.Table
    lengths: np.ndarray
    dependents: np.ndarray
    dependencies: np.ndarray

    def visible(self, plan: Plan, sequence_length: int) -> int:
        """The number of visible dependencies of a plan."""
        a, b = self.dependents, self.dependencies
        seen = (plan.sequence[a] == plan.sequence[b]) & (plan.position[b] < plan.position[a])
        whole = (self.lengths[b] <= sequence_length) & (self.lengths[b] > 0) & (self.lengths[a] > 0)
        return int((seen & whole).sum())

    def fill(self, plan: Plan, sequence_length: int) -> float:
        """Share of the sequences' room that holds tokens."""
        return float(self.lengths.sum() / (plan.n_sequences * sequence_length))


def add_repositories(report: Report, lake: Lake, dataset: str) -> None:
    """Add the figures of a dataset whose documents are sorted by dependency."""
    repositories = read(lake, dataset)
    n_edges = len(repositories.dependents)
    shown = table(
        f"{dataset}: {len(repositories.lengths):,} documents, {n_edges:,} dependencies; fill and visible",
        "sequence length | ours | next-fit | best-fit decreasing",
    )
    for sequence_length in SEQUENCE_LENGTHS:
        plans = {
            "ours": ours(repositories, sequence_length),
            "next_fit": next_fit(repositories, sequence_length),
            "best_fit": best_fit(repositories, sequence_length),
        }
        fills = {name: repositories.fill(plan, sequence_length) for name, plan in plans.items()}
        seen = {name: repositories.visible(plan, sequence_length) for name, plan in plans.items()}
        shown.add_row(
            f"{sequence_length:,}",
            *(f"{fills[name]:.2%} {seen[name] / max(1, n_edges):6.1%}" for name in plans),
        )
        at = f"packing.{dataset}.{sequence_length}"
        report.rows.append(at_least(f"{at}.fill", fills["ours"], "share", LEAST_FILL))
        report.rows += [Row(f"{at}.visible_{name}", seen[name], "dependencies") for name in plans]
        if seen["next_fit"]:
            against = seen["ours"] / seen["next_fit"]
            report.rows.append(at_least(f"{at}.visible_against_next_fit", against, "ratio", LEAST_VISIBLE))
    report.tables.append(shown)


def read(lake: Lake, dataset: str) -> Repositories:
    """The documents of `dataset` and their dependencies, both of the lake's current tables."""
    columns = ["doc_id", *REPOSITORY, "position", "n_tokens"]
    in_order = [(name, "ascending") for name in (*REPOSITORY, "position", "doc_id")]
    documents = lake.read(names.tokenized(dataset), columns).sort_by(in_order)
    edges = lake.read(names.depsort(dataset, "dependencies"), ["doc_id", "depends_on"])
    doc_ids = documents["doc_id"].combine_chunks()
    ends = [pc.index_in(edges[name].combine_chunks(), doc_ids) for name in ("doc_id", "depends_on")]
    inside = pc.and_(*(pc.is_valid(end) for end in ends))
    dependents, dependencies = (end.filter(inside).to_numpy() for end in ends)
    return Repositories(documents, documents["n_tokens"].to_numpy(), dependents, dependencies)


def ours(repositories: Repositories, sequence_length: int) -> Plan:
    """The plan of `packed` if the whole dataset were one chunk."""
    by_dependent: list[list[str]] = [[] for _ in repositories.lengths]
    doc_ids = repositories.documents["doc_id"].to_pylist()
    pairs = zip(repositories.dependents.tolist(), repositories.dependencies.tolist(), strict=True)
    for dependent, dependency in pairs:
        by_dependent[dependent].append(doc_ids[dependency])
    chunk = repositories.documents.append_column("depends_on", pa.array(by_dependent, pa.list_(pa.string())))
    slack = PackConfig().slack
    return _plan(repositories, plan_chunk(chunk, sequence_length, slack))


def next_fit(repositories: Repositories, sequence_length: int) -> Plan:
    """A new sequence when the next document does not fit, and for every repository."""
    return _plan(repositories, next_fit_chunk(repositories.documents, sequence_length))


def best_fit(repositories: Repositories, sequence_length: int) -> Plan:
    """Best-fit decreasing over single documents, a sequence in order of (repository, revision, position)."""
    lengths = repositories.lengths
    full = np.where(lengths > sequence_length, lengths // sequence_length, 0)
    placed = best_fit_decreasing(pa.array(lengths - full * sequence_length), sequence_length)
    sequence = placed.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return Plan(sequence, np.arange(len(lengths)), int(sequence.max()) + 1 + int(full.sum()))


def _plan(repositories: Repositories, pieces: pa.Table) -> Plan:
    """The place of every document's last piece; -1 for a document without tokens."""
    document = pc.index_in(
        pieces["doc_id"].combine_chunks(), repositories.documents["doc_id"].combine_chunks()
    ).to_numpy()
    ends = pieces["doc_offset"].to_numpy() + pieces["length"].to_numpy()
    last = ends == repositories.lengths[document]
    sequence, position = (np.full(len(repositories.lengths), -1) for _ in range(2))
    sequence[document[last]] = pieces["sequence"].to_numpy()[last]
    position[document[last]] = pieces["position"].to_numpy()[last]
    return Plan(sequence, position, int(pc.max(pieces["sequence"]).as_py()) + 1)
