"""The tables of dependencies between files, and of files in their order."""

from __future__ import annotations

import pyarrow as pa

from factory.lake.schemas.base import column, list_of, required, table
from factory.lake.schemas.ingest import DOCUMENT

SYMBOLS = table(
    required("doc_id", pa.string(), "the file"),
    required("repository", pa.string(), "repository of the file"),
    required("path", pa.string(), "path of the file"),
    required(
        "kind", pa.string(), "`definition`, `reference`, `import`, or `unread` with the reason as the name"
    ),
    required("name", pa.string(), "the name, dotted for imports"),
    required("count", pa.int64(), "occurrences in the file"),
    required(
        "resolution",
        pa.string(),
        "`definition`, `local`, `internal`, `builtin`, `external`, `unread`, or `ambiguous`: too many files "
        "define it",
    ),
    column("resolved_to", list_of(pa.string()), "ids of the defining files"),
    column("weights", list_of(pa.float64()), "the weight that the row adds to each of them"),
    column("revision", pa.string(), "revision of the repository"),
    key=("doc_id", "kind", "name"),
    chart="depsort.symbols",
)

DEPENDENCIES = table(
    required("repository", pa.string(), "repository of both files"),
    required("doc_id", pa.string(), "the dependent file"),
    required("depends_on", pa.string(), "the file it depends on"),
    required("weight", pa.float64(), "strength of the dependency"),
    required("kind", pa.string(), "`import`, `symbol`, `import+symbol`"),
    required("satisfied", pa.bool_(), "whether `depends_on` precedes `doc_id` in the order"),
    required("in_cycle", pa.bool_(), "whether both files lie in one strongly connected component"),
    column("revision", pa.string(), "revision of the repository"),
    key=("doc_id", "depends_on"),
    chart="depsort.dependencies",
)

SORTED = table(
    *DOCUMENT,
    required("position", pa.int64(), "0 .. n-1 within the revision of the repository"),
    required("cycle", pa.int64(), "number of its strongly connected component, in the repository's order"),
    required("cycle_size", pa.int64(), "files in this component"),
    chart="depsort.sorted",
)
