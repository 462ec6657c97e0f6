"""Small repositories written as dicts of path to text, taken through depsort without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from factory.lake.schemas import REPOSITORY
from spark_udfs.depsort.extract import FACTS, extract
from spark_udfs.depsort.graph import CONTRIBUTIONS, FILES, edges, places
from spark_udfs.depsort.table import resolve

_DOCUMENT = pa.schema(
    [(name, pa.string()) for name in ("doc_id", *REPOSITORY, "path", "language", "text", "partition")]
)
_CONTRIBUTION = pa.schema(
    [(name, pa.float64() if name == "weight" else pa.string()) for name in CONTRIBUTIONS]
)


class Sorted:
    """The tables of one repository; a document's id is its path."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        rows = [
            {"doc_id": path, "repository": "repository", "path": path, "text": text}
            for path, text in texts.items()
        ]
        documents = pa.Table.from_pylist(rows, schema=_DOCUMENT)
        facts = pa.Table.from_batches(list(extract(iter(documents.to_batches(max_chunksize=100)))), FACTS)
        self.symbols: list[dict[str, Any]] = resolve(facts).to_pylist()
        contributions = [
            dict(
                zip(CONTRIBUTIONS, (row["repository"], None, row["doc_id"], row["kind"], *pair), strict=True)
            )
            for row in self.symbols
            for pair in zip(row["resolved_to"] or (), row["weights"] or (), strict=True)
        ]
        files = documents.select(list(FILES))
        table = edges(files, pa.Table.from_pylist(contributions, schema=_CONTRIBUTION))
        self.edges: list[dict[str, Any]] = table.to_pylist()
        self.places: list[dict[str, Any]] = places(files, table).to_pylist()

    @property
    def order(self) -> list[str]:
        """The paths in dependency order."""
        return [row["doc_id"] for row in sorted(self.places, key=lambda row: row["position"])]

    def weights_of(self, path: str) -> dict[str, float]:
        """What the file `path` depends on, with the weight of its imports alone."""
        found: dict[str, float] = {}
        for row in self.symbols:
            if row["doc_id"] == path and row["kind"] == "import":
                for target, weight in zip(row["resolved_to"] or (), row["weights"] or (), strict=True):
                    found[target] = max(weight, found.get(target, 0.0))
        return found

    def uses_of(self, path: str) -> dict[str, list[str]]:
        """The files each used name of `path` resolves to, names that resolve to none left out."""
        return {
            row["name"]: row["resolved_to"]
            for row in self.symbols
            if row["doc_id"] == path and row["kind"] == "reference" and row["resolved_to"]
        }

    def resolution_of(self, path: str, name: str, kind: str = "reference") -> str:
        """The resolution of one symbol of `path`."""
        (found,) = [
            row["resolution"]
            for row in self.symbols
            if (row["doc_id"], row["name"], row["kind"]) == (path, name, kind)
        ]
        return str(found)

    def satisfied_share(self, order: list[str]) -> float:
        """The share of the weight of all edges that `order` satisfies."""
        place = {path: index for index, path in enumerate(order)}
        total = sum(edge["weight"] for edge in self.edges)
        kept = [edge for edge in self.edges if place[edge["depends_on"]] < place[edge["doc_id"]]]
        return float(sum(edge["weight"] for edge in kept) / total)


def installed(package: str) -> dict[str, str]:
    """The Python files of an installed package by their path in site-packages."""
    root = Path(__import__(package).__file__ or "").parent
    return {
        path.relative_to(root.parent).as_posix(): path.read_text("utf-8", "replace")
        for path in sorted(root.rglob("*.py"))
    }
