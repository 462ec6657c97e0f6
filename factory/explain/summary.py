"""The figures of a pipeline, computed from its published tables alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from factory.errors import DamagedFile, TableNotFound
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.rejected import count_rejected
from factory.lake.schemas.base import REPOSITORY
from factory.lake.schemas.packing import SEQUENCE_LENGTH
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
    bad_records = {
        dataset: count_rejected(lake, names.rejected(dataset))
        for dataset in datasets
        if dataset == names.base(dataset)
    }
    n_rejected = {dataset: sum(reasons.values()) for dataset, reasons in bad_records.items()}
    found = PipelineSummary(stage_rows(lake, datasets, n_rejected), bad_records)
    for dataset in datasets:
        found.rejections[dataset] = _by_rule(lake, names.verdicts(tables, dataset))
        if names.depsort(dataset, "dependencies") in tables:
            found.order[dataset] = _order(lake, dataset)
        found.packing[dataset] = _fill(lake, dataset)
    for group in groups:
        found.duplicates[group] = _count_by(lake.read(names.dedup(group, "decisions"), ["reason"]), "reason")
    return found


def stage_rows(
    lake: Lake, datasets: Sequence[str], n_rejected: Mapping[str, int] | None = None
) -> list[StageRows]:
    """The rows in and out of the tables of `datasets`, from raw documents to packed sequences.

    Tables that are damaged or not published are left out. Tables that a variant shares with its dataset are
    listed with the dataset. `n_rejected` has the rejected records of datasets that are counted already; those
    of the others are counted here.
    """
    tables = set(lake.names())
    counts = n_rejected or {}
    return [it for of in datasets for it in _stages(lake, tables, of, counts) if it.table.endswith(f".{of}")]


def _stages(
    lake: Lake, tables: set[TableName], dataset: str, n_rejected: Mapping[str, int]
) -> Iterator[StageRows]:
    verdicts = names.verdicts(tables, dataset)
    before: int | None = None
    for name in (
        names.raw(dataset),
        verdicts,
        names.deduplicated(dataset),
        names.sorted_table(dataset),
        names.tokenized(dataset),
        names.packed(dataset),
    ):
        try:
            at = lake.published(name)
            rows = at.rows
            if name == names.raw(dataset):
                n_bad = n_rejected.get(names.base(dataset))
                before = rows + (_n_rejected(lake, names.rejected(dataset)) if n_bad is None else n_bad)
            if name == verdicts:
                rows = int(pc.sum(lake.read(verdicts, ["kept"])["kept"]).as_py() or 0)
        except TableNotFound:
            continue
        except DamagedFile:
            before = None
            continue
        yield StageRows(name.stage, str(name), before, rows, at.size_bytes / 1e6)
        before = rows


def _n_rejected(lake: Lake, name: TableName) -> int:
    try:
        return sum(count_rejected(lake, name).values())
    except TableNotFound:  # an asset of one's own may write no rejected records
        return 0


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
