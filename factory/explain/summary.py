"""The figures of a pipeline, computed from its published tables alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas import REPOSITORY, SEQUENCE_LENGTH
from factory.lake.tables import Lake


@dataclass(frozen=True)
class StageRows:
    """The rows of a table, and of the table they were selected or made from."""

    stage: str
    table: str
    rows_in: int | None
    rows_out: int
    megabytes: float


@dataclass(frozen=True)
class Cycle:
    """Files of a repository that all depend on each other."""

    repository: str
    paths: list[str]


@dataclass(frozen=True)
class Order:
    """Dependencies of a code dataset, and how many the order satisfies."""

    edges: int
    satisfied: int
    satisfied_weight: float
    in_cycles: int
    external: int
    cycles: list[Cycle]  # largest first


@dataclass(frozen=True)
class Fill:
    """The packed sequences of a dataset: `fill` is tokens over the room in all sequences."""

    sequences: int
    tokens: int
    fill: float
    split_documents_that_fit: int


@dataclass
class PipelineSummary:
    """The figures of every stage; the demo adds what it fetched and traced."""

    stages: list[StageRows] = field(default_factory=list)
    bad_records: dict[str, dict[str, int]] = field(default_factory=dict)
    rejections: dict[str, dict[str, int]] = field(default_factory=dict)
    duplicates: dict[str, dict[str, int]] = field(default_factory=dict)
    order: dict[str, Order] = field(default_factory=dict)
    packing: dict[str, Fill] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


def summarize(lake: Lake, datasets: Sequence[str], groups: Sequence[str]) -> PipelineSummary:
    """The figures of packed `datasets` and of dedup `groups`."""
    tables = lake.names()
    found = PipelineSummary()
    for dataset in datasets:
        found.stages += rows_by_stage(lake, set(tables), dataset)
        if dataset == names.base(dataset):
            found.bad_records[dataset] = _count_by(lake.read(names.rejected(dataset), ["reason"]), "reason")
        found.rejections[dataset] = _by_rule(lake, names.verdicts(tables, dataset))
        if names.depsort(dataset, "dependencies") in tables:
            found.order[dataset] = _order(lake, dataset)
        found.packing[dataset] = _fill(lake, dataset)
    for group in groups:
        found.duplicates[group] = _count_by(lake.read(names.dedup(group, "decisions"), ["reason"]), "reason")
    return found


def rows_by_stage(lake: Lake, tables: set[TableName], dataset: str) -> list[StageRows]:
    """Return the rows into and out of each table of a dataset from `raw` on; it must be deduplicated."""

    def rows(name: TableName) -> int:
        return lake.published(name).rows

    verdicts = names.verdicts(tables, dataset)
    kept = lake.read(verdicts, ["kept"])["kept"]
    n_kept = int(pc.sum(kept).as_py() or 0)
    read = rows(names.raw(dataset))
    steps: list[tuple[TableName, int | None, int]] = [
        (names.raw(dataset), read + rows(names.rejected(dataset)), read),
        (verdicts, read, n_kept),
        (names.deduplicated(dataset), n_kept, rows(names.deduplicated(dataset))),
    ]
    before = names.deduplicated(dataset)
    for name in (names.sorted_table(dataset), names.tokenized(dataset), names.packed(dataset)):
        if name in tables:
            steps.append((name, rows(before), rows(name)))
            before = name
    # Tables that a variant shares with its dataset are listed with the dataset.
    own = [step for step in steps if step[0].name == dataset]
    return [
        StageRows(name.stage, str(name), rows_in, rows_out, lake.published(name).size_bytes / 1e6)
        for name, rows_in, rows_out in own
    ]


def _by_rule(lake: Lake, verdicts: TableName) -> dict[str, int]:
    rejections = lake.read(verdicts, ["rejections"])["rejections"].combine_chunks()
    rules = pc.struct_field(pc.list_flatten(rejections), "rule")
    return _count_by(pa.table({"rule": rules}), "rule")


def _order(lake: Lake, dataset: str) -> Order:
    edges = lake.read(names.depsort(dataset, "dependencies"), ["satisfied", "weight", "in_cycle"])
    symbols = lake.read(names.depsort(dataset, "symbols"), ["resolution"])
    weight = pc.sum(edges["weight"]).as_py() or 0.0
    satisfied_weight = pc.sum(edges.filter(edges["satisfied"])["weight"]).as_py() or 0.0
    return Order(
        edges=edges.num_rows,
        satisfied=int(pc.sum(edges["satisfied"]).as_py() or 0),
        satisfied_weight=satisfied_weight / weight if weight else 1.0,
        in_cycles=int(pc.sum(edges["in_cycle"]).as_py() or 0),
        external=_count_by(symbols, "resolution").get("external", 0),
        cycles=_cycles(lake, dataset),
    )


def _cycles(lake: Lake, dataset: str) -> list[Cycle]:
    members: dict[tuple[str, str | None, int], list[str]] = defaultdict(list)
    files = lake.read(
        names.sorted_table(dataset), [*REPOSITORY, "path", "cycle", "cycle_size"], "cycle_size > 1"
    )
    for row in files.to_pylist():
        members[row["repository"], row["revision"], row["cycle"]].append(row["path"])
    found = [Cycle(repository, sorted(paths)) for (repository, _, _), paths in members.items()]
    return sorted(found, key=lambda it: (-len(it.paths), it.repository, it.paths[0]))


def _fill(lake: Lake, dataset: str) -> Fill:
    rows = lake.read(names.packed(dataset), ["n_tokens"])["n_tokens"]
    length = int(lake.table(names.packed(dataset)).properties[SEQUENCE_LENGTH])
    tokens = int(pc.sum(rows).as_py() or 0)
    pieces: Counter[str] = Counter(lake.read(names.placements(dataset), ["doc_id"])["doc_id"].to_pylist())
    sizes = lake.read(names.tokenized(dataset), ["doc_id", "n_tokens"]).to_pylist()
    return Fill(
        sequences=len(rows),
        tokens=tokens,
        fill=tokens / (len(rows) * length) if len(rows) else 1.0,
        split_documents_that_fit=sum(
            1 for row in sizes if row["n_tokens"] <= length and pieces[row["doc_id"]] > 1
        ),
    )


def _count_by(rows: pa.Table, column: str) -> dict[str, int]:
    """How many rows have each value of `column`, most first."""
    counted = pc.value_counts(rows[column].combine_chunks()).to_pylist()
    return {
        str(it["values"]): it["counts"]
        for it in sorted(counted, key=lambda it: (-it["counts"], str(it["values"])))
    }
