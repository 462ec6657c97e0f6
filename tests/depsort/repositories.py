"""Small repositories written as dicts of path to text, taken through depsort without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.depsort.order import DOCUMENTS, tables


class Sorted:
    """The tables of one repository; a document's id is its path."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        rows = [
            {"doc_id": path, "repository": "repository", "path": path, "text": text}
            for path, text in texts.items()
        ]
        found = tables(pa.Table.from_pylist(rows, schema=DOCUMENTS))
        self.symbols: list[dict[str, Any]] = found.symbols.to_pylist()
        self.edges: list[dict[str, Any]] = found.edges.to_pylist()
        self.positions: list[dict[str, Any]] = found.positions.to_pylist()

    @property
    def order(self) -> list[str]:
        """The paths in dependency order."""
        return [row["doc_id"] for row in sorted(self.positions, key=lambda row: row["position"])]

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """Every (dependent, dependency)."""
        return {(edge["doc_id"], edge["depends_on"]) for edge in self.edges}

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
        position = {path: index for index, path in enumerate(order)}
        total = sum(edge["weight"] for edge in self.edges)
        kept = [edge for edge in self.edges if position[edge["depends_on"]] < position[edge["doc_id"]]]
        return float(sum(edge["weight"] for edge in kept) / total)


def pairs(texts: Mapping[str, str]) -> set[tuple[str, str]]:
    """Every (dependent, dependency) of a repository."""
    return Sorted(texts).pairs


def dependencies(texts: Mapping[str, str], path: str) -> set[str]:
    """The files that the file `path` of a repository depends on."""
    return {dependency for dependent, dependency in pairs(texts) if dependent == path}


def installed(package: str) -> dict[str, str]:
    """The Python files of an installed package by their path in site-packages."""
    root = Path(__import__(package).__file__ or "").parent
    return {
        path.relative_to(root.parent).as_posix(): path.read_text("utf-8", "replace")
        for path in sorted(root.rglob("*.py"))
    }
