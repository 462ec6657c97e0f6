"""The rows of `depsort.<dataset>_symbols` of one repository, one family of languages after another."""

from __future__ import annotations

import pyarrow as pa

from factory.lake.schemas.base import REPOSITORY
from factory.lake.schemas.depsort import SYMBOLS
from spark_udfs.depsort.extract import MANIFEST
from spark_udfs.depsort.gc_pause import gc_paused
from spark_udfs.depsort.model import FileSymbols
from spark_udfs.depsort.names import Family
from spark_udfs.depsort.references import Symbol
from spark_udfs.depsort.registry import languages
from spark_udfs.depsort.resolution import Repository


def resolve(facts: pa.Table) -> pa.Table:
    """SYMBOLS of one repository from its FACTS in any order."""
    with gc_paused():
        return _resolved(facts)


def _resolved(facts: pa.Table) -> pa.Table:
    rows = sorted(facts.to_pylist(), key=lambda row: (row["path"], row["language"], row["doc_id"]))
    manifests = {row["path"]: row["facts"] for row in rows if row["language"] == MANIFEST}
    families: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        if row["language"] != MANIFEST:
            families.setdefault(languages()[row["language"]].family, []).append(i)
    documents: list[int] = []
    symbols: list[Symbol] = []
    targets: list[list[str] | None] = []
    weights: list[list[float] | None] = []
    for _, chosen in sorted(families.items()):
        family = Family(
            [languages()[rows[i]["language"]] for i in chosen],
            [rows[i]["path"] for i in chosen],
            [FileSymbols.from_json(rows[i]["facts"]) for i in chosen],
            manifests,
        )
        repository = Repository(family)
        doc_ids = [rows[i]["doc_id"] for i in chosen]
        for position, row_index in enumerate(chosen):
            before = len(symbols)
            symbols += repository.symbols(position)
            documents += [row_index] * (len(symbols) - before)
            for symbol in symbols[before:]:
                files = sorted(symbol.weights) if symbol.weights else ()
                targets.append([doc_ids[f] for f in files] if files else None)
                weights.append([symbol.weights[f] for f in files] if files else None)
    for row_index, row in enumerate(rows):
        if row["unread"] is not None:
            documents.append(row_index)
            symbols.append(Symbol("unread", row["unread"], 1, "unread"))
            targets.append(None)
            weights.append(None)
    indices = pa.array(documents, pa.int32())
    columns = {
        column: pa.array([row[column] for row in rows], pa.string()).take(indices)
        for column in ("doc_id", *REPOSITORY, "path", "partition")
    } | {
        "kind": [symbol.kind for symbol in symbols],
        "name": [symbol.name for symbol in symbols],
        "count": [symbol.count for symbol in symbols],
        "resolution": [symbol.resolution for symbol in symbols],
        "resolved_to": targets,
        "weights": weights,
    }
    schema = SYMBOLS.columns
    return pa.table(
        [
            pa.array(columns[f.name], f.type) if isinstance(columns[f.name], list) else columns[f.name]
            for f in schema
        ],
        schema=schema,
    )
