"""`python -m bench.depsort_order FOLDER ...`: the dependency order of each folder and what it cost, as JSON.

The whole of depsort without Spark: symbols of every file, their resolution, edges, places. One line of JSON:
for every folder `order` (paths), `edges`, `n_files` that were parsed, and `cpu_s`, from text to order.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_udfs.dependencies import CONTRIBUTIONS, FILES, edges, places
from spark_udfs.symbol_resolution import resolve
from spark_udfs.symbols import FACTS, MANIFEST, extract, language_of, languages, manifests

DOCUMENTS = pa.schema(
    [(name, pa.string()) for name in ("doc_id", "repository", "path", "language", "text", "partition")]
)
_CONTRIBUTION = pa.schema(
    [(name, pa.float64() if name == "weight" else pa.string()) for name in CONTRIBUTIONS]
)
_ROWS = 500  # a batch, as in Spark


def read(folder: Path) -> pa.Table:
    """DOCUMENTS of the files of a folder in a known language, and its manifests; a document is its path."""
    rows = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and (path.name in manifests() or language_of(None, name)):
            text = path.read_text("utf-8", "replace")
            rows.append({"doc_id": name, "repository": folder.name, "path": name, "text": text})
    return pa.Table.from_pylist(rows, schema=DOCUMENTS)


def order(documents: pa.Table) -> dict[str, Any]:
    """The order of one repository's DOCUMENTS, its edges, and the CPU seconds it took."""
    started = time.process_time()
    facts = pa.Table.from_batches(list(extract(iter(documents.to_batches(max_chunksize=_ROWS)))), FACTS)
    table = edges(documents.select(list(FILES)), _contributions(resolve(facts)))
    placed = places(documents.select(list(FILES)), table)
    cpu_s = time.process_time() - started
    ends = zip(table["doc_id"].to_pylist(), table["depends_on"].to_pylist(), strict=True)
    return {
        "order": placed.sort_by("place")["doc_id"].to_pylist(),
        "edges": sorted(ends),
        "n_files": sum(language != MANIFEST for language in facts["language"].to_pylist()),
        "cpu_s": cpu_s,
    }


def _contributions(symbols: pa.Table) -> pa.Table:
    columns = ("repository", "doc_id", "kind", "resolved_to", "weights")
    rows = [
        (repository, doc_id, kind, *pair)
        for repository, doc_id, kind, files, weights in zip(
            *(symbols[name].to_pylist() for name in columns), strict=True
        )
        for pair in zip(files or (), weights or (), strict=True)
    ]
    return pa.Table.from_pylist(
        [dict(zip(CONTRIBUTIONS, row, strict=True)) for row in rows], schema=_CONTRIBUTION
    )


if __name__ == "__main__":
    for language in languages().values():  # grammars are loaded once a worker, not once a repository
        language.extract(b"\n", f"x{language.suffixes[0]}")
    print(json.dumps([order(read(Path(folder))) for folder in sys.argv[1:]]))
