"""The view of the dependency sort: the position of a file in its repository, and the order's quality."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from factory.explain.stages.document_trace import DocumentTrace
from factory.explain.stages.removals import Read
from factory.explain.stages.stage import Figure, Section, StageView, SummaryScope, count_by
from factory.lake import names
from factory.lake.names import DEPSORT, TableName
from factory.lake.schemas.base import REPOSITORY
from factory.lake.schemas.depsort import SORTED
from factory.lake.tables import Lake


@dataclass(frozen=True)
class Cycle:
    """Files of a repository that all depend on each other."""

    repository: str
    paths: list[str]


@dataclass(frozen=True)
class OrderFigures:
    """Dependencies of a code dataset, and how many the order satisfies."""

    edges: int
    satisfied: int
    satisfied_weight: float
    in_cycles: int
    external: int
    cycles: list[Cycle]  # largest first


class DepsortView(StageView):
    """The documents in dependency order."""

    stage = DEPSORT
    sections = (Section("order", "Order and packing", "dataset"),)

    def follow(self, read: Read, traces: Mapping[str, DocumentTrace]) -> Collection[str]:
        assert read.dataset is not None
        table = names.sorted_table(read.dataset)
        for batch in read.batches(table, SORTED, ("doc_id", "position"), pa.array(traces, pa.string())):
            for row in batch.to_pylist():
                traces[row["doc_id"]].position = row["position"]
                traces[row["doc_id"]].note(table, read.snapshot(table))
        return ()

    def line(self, trace: DocumentTrace) -> str:
        return f"position {trace.position} of its repository"

    def tables(self, scope: SummaryScope, dataset: str) -> Sequence[TableName]:
        return (names.sorted_table(dataset),)

    def figures(self, scope: SummaryScope) -> Iterator[Figure]:
        for dataset in scope.datasets:
            if names.depsort(dataset, "dependencies") in scope.tables:
                order = _order(scope.lake, dataset)
                yield Figure("order", dataset, asdict(order), list(_lines(order)))


VIEW = DepsortView()


def _lines(order: OrderFigures) -> Iterator[str]:
    yield (
        f"{order.satisfied:,} of {order.edges:,} dependencies satisfied "
        f"({order.satisfied_weight:.1%} of their weight), "
        f"{order.in_cycles:,} inside cycles, {order.external:,} names resolve outside their repository"
    )
    if order.cycles:
        largest = order.cycles[0]
        yield (
            f"{len(order.cycles):,} cycles, the largest of {len(largest.paths):,} files in "
            f"{largest.repository}: {', '.join(largest.paths[:3])} ..."
        )


def _order(lake: Lake, dataset: str) -> OrderFigures:
    edges = lake.read(names.depsort(dataset, "dependencies"), ["satisfied", "weight", "in_cycle"])
    symbols = lake.read(names.depsort(dataset, "symbols"), ["resolution"])
    weight = pc.sum(edges["weight"]).as_py() or 0.0
    satisfied_weight = pc.sum(edges.filter(edges["satisfied"])["weight"]).as_py() or 0.0
    return OrderFigures(
        edges=edges.num_rows,
        satisfied=int(pc.sum(edges["satisfied"]).as_py() or 0),
        satisfied_weight=satisfied_weight / weight if weight else 1.0,
        in_cycles=int(pc.sum(edges["in_cycle"]).as_py() or 0),
        external=count_by(symbols, "resolution").get("external", 0),
        cycles=_cycles(lake, dataset),
    )


def _cycles(lake: Lake, dataset: str) -> list[Cycle]:
    members: dict[tuple[str, str | None, int], list[str]] = defaultdict(list)
    files = lake.read(
        names.sorted_table(dataset), [*REPOSITORY, "path", "cycle", "cycle_size"], "cycle_size > 1"
    )
    for row in files.to_pylist():
        members[row["repository"], row["revision"], row["cycle"]].append(row["path"])
    cycles = [Cycle(repository, sorted(paths)) for (repository, _, _), paths in members.items()]
    return sorted(cycles, key=lambda cycle: (-len(cycle.paths), cycle.repository, cycle.paths[0]))
