"""The dependency edges of a repository and the order of its files: one computation for two tables.

`edges` and `positions` both call `_ordered`, which sees only documents by (path, doc_id) and the weights of
edges. So an edge that `depsort.<dataset>_dependencies` calls satisfied is satisfied in `sorted.<dataset>`.
The weight of an edge is its heaviest import plus the exact sum of its references, which no order of rows
changes.

The measure of an order is its share of edges, not of uses. So where a cycle must break, an edge counts by its
certainty, weight / (weight + DOUBTFUL): two thirds for a single import, below one for any number of uses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import pyarrow as pa

from factory.lake.schemas.base import REPOSITORY
from factory.lake.schemas.depsort import DEPENDENCIES
from spark_udfs.depsort.gc_pause import gc_paused
from spark_udfs.depsort.order import FileOrder, order_repository, strongly_connected

FAINT = 0.1  # lighter edges may not create a cycle
DOUBTFUL = 0.5  # the weight at which an edge is half certain

FILES = (*REPOSITORY, "doc_id", "path", "partition")  # the columns of a document that decide its position
_CONTRIBUTION = ("doc_id", "kind", "depends_on", "weight")
CONTRIBUTIONS = (*REPOSITORY, *_CONTRIBUTION)  # the share of one symbol in an edge
_EDGE = ("doc_id", "depends_on", "weight")
WEIGHTED = (*REPOSITORY, *_EDGE)

POSITIONS = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("cycle", pa.int64(), nullable=False),
        pa.field("cycle_size", pa.int64(), nullable=False),
    ]
)


def edges(files: pa.Table, contributions: pa.Table) -> pa.Table:
    """DEPENDENCIES of one repository from its FILES and CONTRIBUTIONS in any order."""
    with gc_paused():
        return _edges(files, contributions)


def _edges(files: pa.Table, contributions: pa.Table) -> pa.Table:
    imports: dict[tuple[str, str], float] = {}
    references: dict[tuple[str, str], list[float]] = {}
    for source, kind, target, weight in zip(
        *(contributions.column(name).to_pylist() for name in _CONTRIBUTION), strict=True
    ):
        if kind == "import":
            imports[source, target] = max(weight, imports.get((source, target), 0.0))
        else:
            references.setdefault((source, target), []).append(weight)
    weights = {
        key: imports.get(key, 0.0) + math.fsum(references.get(key, ()))
        for key in sorted(imports.keys() | references.keys())
    }
    weights = _without_faint_cycles(weights)
    documents, order = _ordered(files, ((*key, weight) for key, weight in weights.items()))
    number = {document["doc_id"]: index for index, document in enumerate(documents)}
    position = {file: position for position, file in enumerate(order.files)}
    rows = [
        {
            **{name: documents[number[source]][name] for name in REPOSITORY},
            "doc_id": source,
            "depends_on": target,
            "weight": weight,
            "kind": "+".join(
                kind
                for kind, pairs in (("import", imports), ("symbol", references))
                if (source, target) in pairs
            ),
            "satisfied": position[number[target]] < position[number[source]],
            "in_cycle": order.cycle[number[source]] == order.cycle[number[target]],
            "partition": documents[number[source]]["partition"],
        }
        for (source, target), weight in weights.items()
        if source in number and target in number
    ]
    return pa.Table.from_pylist(rows, schema=DEPENDENCIES.columns)


def positions(files: pa.Table, weighted: pa.Table) -> pa.Table:
    """POSITIONS of one repository's FILES under its WEIGHTED edges in any order."""
    with gc_paused():
        documents, order = _ordered(
            files, zip(*(weighted.column(name).to_pylist() for name in _EDGE), strict=True)
        )
    rows = [
        {
            "doc_id": documents[file]["doc_id"],
            "position": position,
            "cycle": order.cycle[file],
            "cycle_size": order.cycle_size[file],
        }
        for position, file in enumerate(order.files)
    ]
    return pa.Table.from_pylist(rows, schema=POSITIONS)


def _without_faint_cycles(weights: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """The edges without the ones lighter than FAINT that join components which heavier edges keep apart.

    The edge to a package around the importer is one: with all of these, every package would be one cycle.
    """
    doc_ids = sorted({doc_id for edge in weights for doc_id in edge})
    number = {doc_id: index for index, doc_id in enumerate(doc_ids)}

    def components(least: float) -> list[int]:
        graph: list[dict[int, float]] = [{} for _ in doc_ids]
        for (source, target), weight in weights.items():
            if weight >= least:
                graph[number[source]][number[target]] = weight
        component_of = [0] * len(doc_ids)
        for component, members in enumerate(strongly_connected(graph)):
            for member in members:
                component_of[member] = component
        return component_of

    if all(weight >= FAINT for weight in weights.values()):
        return weights
    together, really = components(0.0), components(FAINT)
    return {
        (source, target): weight
        for (source, target), weight in weights.items()
        if weight >= FAINT
        or together[number[source]] != together[number[target]]
        or really[number[source]] == really[number[target]]
    }


def _ordered(
    files: pa.Table, weighted: Iterable[tuple[str, str, float]]
) -> tuple[list[dict[str, str]], FileOrder]:
    """The documents by (path, doc_id), and the order of their numbers; ignores edges of absent documents."""
    documents = sorted(files.to_pylist(), key=lambda row: (row["path"], row["doc_id"]))
    number = {document["doc_id"]: index for index, document in enumerate(documents)}
    dependencies: list[dict[int, float]] = [{} for _ in documents]
    for source, target, weight in weighted:
        if source in number and target in number:
            dependencies[number[source]][number[target]] = weight / (weight + DOUBTFUL)
    return documents, order_repository([document["path"] for document in documents], dependencies)
