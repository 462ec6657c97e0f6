"""`python -m bench.depsort.order FOLDER ...`: the dependency order of each folder and its cost, as JSON.

The whole of depsort without Spark: symbols of every file, their resolution, edges, positions. Prints one line
of JSON: per folder `order` (paths), `edges`, `n_files` that were parsed, and `cpu_s`, from text to order.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from factory.lake.schemas.base import REPOSITORY
from spark_udfs.depsort.extract import FACTS, MANIFEST, extract, reader
from spark_udfs.depsort.graph import FILES, edges, positions
from spark_udfs.depsort.registry import language_of, languages, manifest_names
from spark_udfs.depsort.table import resolve

DOCUMENTS = pa.schema(
    [(name, pa.string()) for name in ("doc_id", *REPOSITORY, "path", "language", "text", "partition")]
)
_ROWS = 500  # a batch, as in Spark


def read(folder: Path) -> pa.Table:
    """DOCUMENTS of a folder's files in known languages, and of its manifests; the doc_id is the path."""
    rows = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and (path.name in manifest_names() or language_of(None, name)):
            text = path.read_text("utf-8", "replace")
            rows.append({"doc_id": name, "repository": folder.name, "path": name, "text": text})
    return pa.Table.from_pylist(rows, schema=DOCUMENTS)


class Tables(NamedTuple):
    """The tables of one repository, as Spark computes them."""

    facts: pa.Table
    symbols: pa.Table
    edges: pa.Table
    positions: pa.Table


def tables(documents: pa.Table) -> Tables:
    """The tables of one repository's DOCUMENTS."""
    facts = pa.Table.from_batches(list(extract(iter(documents.to_batches(max_chunksize=_ROWS)))), FACTS)
    symbols, files = resolve(facts), documents.select(list(FILES))
    dependencies = edges(files, _contributions(symbols))
    return Tables(facts, symbols, dependencies, positions(files, dependencies))


def order(documents: pa.Table) -> dict[str, Any]:
    """The order of one repository's DOCUMENTS, its edges, and the CPU seconds."""
    started = _cpu_s()
    made = tables(documents)
    cpu_s = _cpu_s() - started
    ends = zip(made.edges["doc_id"].to_pylist(), made.edges["depends_on"].to_pylist(), strict=True)
    return {
        "order": made.positions.sort_by("position")["doc_id"].to_pylist(),
        "edges": sorted(ends),
        "n_files": sum(language != MANIFEST for language in made.facts["language"].to_pylist()),
        "cpu_s": cpu_s,
    }


def _cpu_s() -> float:
    """CPU seconds of this process and of the file reader's process, which is closed."""
    reader().close()
    return sum(os.times()[:4])


def _contributions(symbols: pa.Table) -> pa.Table:
    """CONTRIBUTIONS of SYMBOLS: Spark explodes two columns for them, Arrow does it here."""
    chosen = symbols.filter(pc.is_valid(symbols["resolved_to"]))
    row = pc.list_parent_indices(chosen["resolved_to"])
    return pa.table(
        {
            **{name: chosen[name].take(row) for name in (*REPOSITORY, "doc_id", "kind")},
            "depends_on": pc.list_flatten(chosen["resolved_to"]),
            "weight": pc.list_flatten(chosen["weights"]),
        }
    )


if __name__ == "__main__":
    for language in languages().values():  # a worker loads grammars once, not per repository
        language.extract(b"\n", f"x{language.suffixes[0]}")
    print(json.dumps([order(read(Path(folder))) for folder in sys.argv[1:]]))
