"""Charts and figures of clusters, of their verdicts, and of categories that are balanced."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from factory.counted import counted
from factory.orchestration.table import drawing
from factory.orchestration.table.charts.counting import Chart, quantiles, sizes, whole
from factory.orchestration.table.charts.totals import NOTE, Figures, evenness
from factory.orchestration.table.drawing import Drawing
from factory.orchestration.table.rows import Rows

_CELLS_SHOWN, _WORDS_SHOWN = 20, 3
_VERDICTS = ("keep", "downsample", "discard", "too_small")
_STAGES = {"n_before": "before", "n_after": "after", "n_deduplicated": "deduplicated"}


def largest_cells(rows: Rows) -> Drawing:
    """Documents of the largest cells, each with its first words."""
    cells = whole(rows, ["cell", "terms", "n_documents"]).sort_by([("n_documents", "descending")])
    largest = cells.slice(0, _CELLS_SHOWN).to_pylist()
    labels = [
        f"{row['cell']}: {', '.join(row['terms'][:_WORDS_SHOWN]) or 'no known token'}" for row in largest
    ]
    title = f"documents of the {len(largest):,} largest of {counted(len(cells), 'cell')}"
    return drawing.bars(labels, [row["n_documents"] for row in largest], title)


def cells(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float | str]:
    """How evenly the documents are spread over the cells."""
    counts = whole(rows, ["n_documents"])["n_documents"].to_numpy()
    return {"cells": int((counts > 0).sum()), **evenness(counts)}


def distance_since_cut(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float | str]:
    """The share of the documents that would have to change cells to restore the distribution of the cut."""
    shares = whole(rows, ["share", "share_when_cut"])
    distance = float(np.abs(np.subtract(*(column.to_numpy() for column in shares.columns))).sum() / 2)
    return {
        "distance": distance,
        NOTE: f"the distribution has moved by {distance:.1%} since the cells were cut",
    }


def documents_by_verdict(rows: Rows) -> Drawing:
    """Documents by the verdict on their cluster."""
    counts = _documents_by_verdict(rows)
    return drawing.bars(list(counts), list(counts.values()), "documents by verdict", ["keep"])


def verdicts(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float | str]:
    """Documents by verdict, and the share that the rates remove."""
    table = whole(rows, ["n_documents", "rate"])
    n_documents = table["n_documents"].to_numpy()
    share = float((n_documents * (1 - table["rate"].to_numpy())).sum() / max(1, n_documents.sum()))
    return {**_documents_by_verdict(rows), "share removed": share, NOTE: f"{share:.1%} to be removed"}


def largest_categories(rows: Rows) -> Drawing:
    """Documents of the largest categories, before and after."""
    table = whole(rows, ["category", "n_documents", "rate"]).sort_by([("n_documents", "descending")])
    bars: dict[str, int] = {}
    for row in table.slice(0, _CELLS_SHOWN).to_pylist():
        bars[row["category"]] = row["n_documents"]
        bars[f"{row['category']}, balanced"] = round(row["n_documents"] * row["rate"])
    after = [label for label in bars if label.endswith(", balanced")]
    return drawing.bars(list(bars), list(bars.values()), "documents by category", after)


def balance(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float | str]:
    """How evenly the documents are spread before and after, and the documents that categories lack."""
    table = whole(rows, ["n_documents", "rate", "n_missing"])
    n_documents, rate, n_missing = (column.to_numpy() for column in table.columns)
    short = int((n_missing > 0).sum())
    figures: dict[str, int | float | str] = {
        "categories": len(table),
        **{f"{name} before": number for name, number in evenness(n_documents).items()},
        **{f"{name} after": number for name, number in evenness(n_documents * rate).items()},
        "categories short of their target": short,
        "missing documents": int(n_missing.sum()),
    }
    if short:
        categories = "category is" if short == 1 else "categories are"
        n_documents_missing = counted(int(n_missing.sum()), "document")
        figures[NOTE] = f"{short:,} {categories} short of the target, by {n_documents_missing}"
    return figures


def spread(rows: Rows) -> Drawing:
    """Documents of each category in ascending order, a panel for each stage of each kind of category."""
    table = whole(rows, ["over", *_STAGES]).to_pandas()
    panels = {
        f"{over} {stage}": sorted(map(float, categories[column]))
        for over, categories in table.groupby("over", sort=True)
        for column, stage in _STAGES.items()
    }
    return drawing.curves(panels, "documents of a category, by share of the categories")


def distribution(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float | str]:
    """Evenness before and after balancing, and after deduplication, by kind of category."""
    table = whole(rows, ["over", *_STAGES])
    figures: dict[str, int | float | str] = {}
    for over in sorted(set(table["over"].to_pylist())):
        of_kind = table.filter(pa.compute.equal(table["over"], over))
        for column, stage in _STAGES.items():
            counts = of_kind[column].to_numpy()
            figures |= {f"{over}: {name} {stage}": number for name, number in evenness(counts).items()}
    return figures


def _documents_by_verdict(rows: Rows) -> dict[str, int]:
    table = whole(rows, ["verdict", "n_documents"])
    sums = {
        row["verdict"]: row["n_documents_sum"]
        for row in table.group_by("verdict").aggregate([("n_documents", "sum")]).to_pylist()
    }
    return {verdict: sums.get(verdict, 0) for verdict in _VERDICTS}


CHARTS: dict[str, Chart] = {
    "cells": largest_cells,
    "by_cell": sizes("cell", "cells by number of clusters"),
    "sizes": sizes("cluster", "clusters by number of documents"),
    "losses": quantiles("loss", "loss_after"),
    "verdicts": documents_by_verdict,
    "categories": sizes("category", "categories by number of documents"),
    "balance": largest_categories,
    "distribution": spread,
}
FIGURES: dict[str, Figures] = {
    "cells": cells,
    "moved": distance_since_cut,
    "verdicts": verdicts,
    "balance": balance,
    "distribution": distribution,
}
