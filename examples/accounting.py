"""Where every input of a lake went, by its tables alone.

    FACTORY_HOME=... python examples/accounting.py

A document of `raw` was removed by a rule (`filtered`) or as a copy (`dedup`), has no token, or is packed. An
input that became no document is in `raw.<dataset>_rejected`. The script prints the numbers of each
dataset and variant, and ends with exit code 1 if a document is in none of these places, or in several.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

from factory.api import Lake, TableName, settings


def main() -> int:
    lake = Lake(settings())
    tables = lake.names()
    groups = [table for table in tables if table.namespace == "dedup" and table.name.endswith("_decisions")]
    decisions = [row for group in groups for row in rows(lake, group, "doc_id", "dataset", "kept")]
    lost = 0
    of_raw = (table for table in tables if table.namespace == "raw" and not table.name.endswith("_rejected"))
    of_variants = (table for table in tables if table.namespace == "tokenized" and "__" in table.name)
    for dataset in sorted(table.name for table in (*of_raw, *of_variants)):
        base = dataset.partition("__")[0]  # a variant shares the documents of its dataset
        raw = ids(rows(lake, TableName("raw", base), "doc_id"))
        rejected = rows(lake, TableName("raw", f"{base}_rejected"), "n_records")
        verdicts = TableName("filtered", dataset if TableName("filtered", dataset) in tables else base)
        tokenized = rows(lake, TableName("tokenized", dataset), "doc_id", "n_tokens")
        parts = (TableName("packed", f"{part}_placements") for part in (dataset, f"{dataset}_validation"))
        placements = (rows(lake, part, "doc_id") for part in parts if part in tables)
        places = {
            "filtered": ids(row for row in rows(lake, verdicts, "doc_id", "kept") if not row["kept"]),
            "duplicate": ids(row for row in decisions if row["dataset"] == dataset and not row["kept"]),
            "without tokens": ids(row for row in tokenized if row["n_tokens"] == 0),
            "packed": {doc_id for part in placements for doc_id in ids(part)},
        }
        n_places = Counter(doc_id for place in places.values() for doc_id in place)
        astray = {doc_id for doc_id in raw | n_places.keys() if doc_id not in raw or n_places[doc_id] != 1}
        numbers = {"rejected": sum(row["n_records"] or 1 for row in rejected)}
        numbers |= {place: len(members) for place, members in places.items()}
        print(f"{dataset}:", ", ".join(f"{number:,} {place}" for place, number in numbers.items()))
        for doc_id in sorted(astray):
            held_by = [place for place, members in places.items() if doc_id in members]
            print(f"  {doc_id} is {'in ' + ' and '.join(held_by) if held_by else 'nowhere'}")
        lost += len(astray)
    if not tables:
        print("The lake has no table. FACTORY_HOME names its folder.")
    return 1 if lost or not tables else 0


def rows(lake: Lake, table: TableName, *columns: str) -> list[dict[str, Any]]:
    """The rows of a table, none of one that no run has made yet."""
    return lake.read(table, list(columns)).to_pylist() if lake.exists(table) else []


def ids(of: Iterable[dict[str, Any]]) -> set[str]:
    return {row["doc_id"] for row in of}


if __name__ == "__main__":
    sys.exit(main())
