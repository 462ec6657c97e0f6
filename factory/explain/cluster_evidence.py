"""The verdict on a document's cluster, or the rate of its category, as the evidence of a rejection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.expressions import In

from factory.lake.names import TableName
from factory.lake.tables import Lake

_WORDS = 6  # of a cluster

Snapshots = Mapping[str, tuple[TableName, int]]
"""The tables of clusters that signals were made from, with their snapshots, by the end of their names."""


def cluster_phrases(
    lake: Lake, upstream: Sequence[tuple[TableName, int]], ids: Sequence[str]
) -> dict[str, str]:
    """Return a phrase for each of the documents `ids`, by doc_id; none for signals of other tables."""
    of_clusters = {
        _part(table): (table, snapshot_id) for table, snapshot_id in upstream if table.namespace == "clusters"
    }
    if "verdicts" in of_clusters:
        return _of_verdicts(lake, of_clusters, ids)
    return _of_rates(lake, of_clusters, ids) if "balance" in of_clusters else {}


def _of_verdicts(lake: Lake, tables: Snapshots, ids: Sequence[str]) -> dict[str, str]:
    cluster_of = _values(lake, tables[""], "doc_id", ids, ["cluster"])
    numbers = sorted({row["cluster"] for row in cluster_of.values()})
    columns = ["cell", "terms", "language", "loss", "loss_after", "z_after", "verdict", "by_hand"]
    verdicts = _values(lake, tables["verdicts"], "cluster", numbers, columns)
    return {
        doc_id: _verdict(row["cluster"], verdicts[row["cluster"]])
        for doc_id, row in cluster_of.items()
        if row["cluster"] in verdicts
    }


def _verdict(cluster: int, row: Mapping[str, Any]) -> str:
    words = f" ({', '.join(row['terms'][:_WORDS])})" if row["terms"] else ""
    phrase = f"cluster {cluster} of cell {row['cell']}{words}, verdict {row['verdict']}"
    if row["by_hand"]:
        return f"{phrase} by hand"
    if row["loss_after"] is None:
        return phrase
    return (
        f"{phrase}: {row['loss_after']:.2f} bits per byte once the proxy has read half of it "
        f"({row['loss']:.2f} before), {row['z_after']:+.1f} deviations from the median"
    )


def _of_rates(lake: Lake, tables: Snapshots, ids: Sequence[str]) -> dict[str, str]:
    category_of = _values(lake, tables["categories"], "doc_id", ids, ["category"])
    categories = sorted({row["category"] for row in category_of.values()})
    rates = _values(lake, tables["balance"], "category", categories, ["rate", "n_documents"])
    return {
        doc_id: f"category `{row['category']}` keeps {rates[row['category']]['rate']:.1%} of its documents"
        for doc_id, row in category_of.items()
        if row["category"] in rates
    }


def _values(
    lake: Lake, table: tuple[TableName, int], key: str, keys: Sequence[Any], columns: list[str]
) -> dict[Any, dict[str, Any]]:
    name, snapshot_id = table
    lake.published_at(name, snapshot_id)
    rows = lake.read(name, [key, *columns], In(key, keys), snapshot_id)
    return {row[key]: row for row in rows.to_pylist()}


def _part(table: TableName) -> str:
    part = table.name.rpartition("_")[2]
    return part if part in ("verdicts", "categories", "balance") else ""
