"""Charts and figures of a dedup group's tables."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.compute as pc

from factory.orchestration.table import drawing
from factory.orchestration.table.charts.counting import (
    KEPT,
    Chart,
    by_count,
    by_share,
    counted,
    powers_of_two,
    sizes,
    sizes_of_values,
    tally,
    whole,
)
from factory.orchestration.table.charts.totals import Figures, count_by
from factory.orchestration.table.drawing import Drawing
from factory.orchestration.table.rows import Rows

# The band is part of a bucket's hash, so buckets of two bands never share a value.
bucket_sizes = sizes_of_values(
    "buckets", "explode(buckets)", lambda batch: batch["buckets"].flatten(), "buckets by size"
)


def similarities(rows: Rows) -> Drawing:
    """Edges by exact similarity, in steps of .02."""
    return by_share(rows, ["similarity"], "edges by similarity")


def shares(rows: Rows) -> Drawing:
    """Pairs of repositories by the larger of their two shares."""
    return by_share(rows, ["left_share", "right_share"], "pairs of repositories by share")


def decided(rows: Rows) -> Drawing:
    """Documents by dataset and reason, most first within a dataset, with their share of it."""
    numbers, title = counted(
        rows,
        ["dataset", "reason"],
        lambda batch: pc.binary_join_element_wise(batch["dataset"], batch["reason"], ": "),
        "documents by dataset and reason",
    )
    by_dataset: dict[str, dict[str, int]] = {}
    for label, n_documents in numbers.items():
        dataset, _, reason = label.partition(": ")
        by_dataset.setdefault(dataset, {})[reason] = n_documents
    bars, colored = dict[str, int](), list[str]()
    for dataset, reasons in by_dataset.items():
        for reason, n_documents in by_count(reasons):
            label = f"{dataset}: {reason} {n_documents / sum(reasons.values()):.1%}"
            bars[label] = n_documents
            colored += [label] if reason == KEPT else []
    return drawing.bars(list(bars), list(bars.values()), title, colored)


def repositories(rows: Rows) -> Drawing:
    """Repositories in the largest component, before and after topics, and by reason."""
    table = whole(rows, ["component", "component_in_topic", "reason"])
    n_rows = len(table)
    bars = {"all": n_rows}
    for label, column in (("largest component", "component"), ("largest in a topic", "component_in_topic")):
        largest = max(tally(table[column].chunks).values(), default=0)
        bars[f"{label} {largest / max(1, n_rows):.1%}"] = largest
    reasons = by_count(tally(table["reason"].chunks))
    bars |= {f"{reason} {number / n_rows:.1%}": number for reason, number in reasons}
    colored = [f"{reason} {number / n_rows:.1%}" for reason, number in reasons if reason == KEPT]
    return drawing.bars(list(bars), list(bars.values()), "repositories", colored)


def largest_buckets(rows: Rows) -> Drawing:
    """The largest buckets, by the beginning of their best document."""
    table = whole(rows, ["members", "doc_id", "dataset", "text"])
    buckets = table.sort_by([("members", "descending"), ("doc_id", "ascending")]).to_pylist()
    labels = [f"{row['dataset']}: {' '.join(row['text'].split())}" for row in buckets]
    return drawing.bars(labels, [row["members"] for row in buckets], "distinct texts of the largest buckets")


def thresholds(rows: Rows) -> Drawing:
    """Documents kept, bytes removed, pairs and largest component, by threshold of similarity."""
    columns = ["threshold", "kept", "removed_bytes", "similar_pairs", "largest_component"]
    sweep = whole(rows, columns).sort_by("threshold").to_pydict()
    panels = {
        "documents kept": sweep["kept"],
        "MB removed": [n_bytes / 1e6 for n_bytes in sweep["removed_bytes"]],
        "similar pairs": sweep["similar_pairs"],
        "largest component": sweep["largest_component"],
    }
    return drawing.over(sweep["threshold"], panels, "by threshold of similarity")


def recall(rows: Rows) -> Drawing:
    """Share of similar pairs that share a bucket: measured, and predicted by the banding."""
    columns = ["similarity", "recall", "predicted", "pairs"]
    steps = whole(rows, columns).sort_by("similarity").to_pydict()
    panels = {
        "measured": steps["recall"],
        "predicted": steps["predicted"],
        "sampled pairs": steps["pairs"],
    }
    return drawing.over(steps["similarity"], panels, "pairs that share a bucket, by similarity")


def decisions(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float]:
    """Documents or repositories kept and duplicate; dropped topics count as neither."""
    numbers = count_by(rows, "kept", "reason")
    return {
        "kept": sum(number for (stays, _), number in numbers.items() if stays),
        "duplicates": sum(
            number for (stays, reason), number in numbers.items() if not stays and reason != "topic"
        ),
    }


CHARTS: dict[str, Chart] = {
    "bags": powers_of_two("n_tokens", "documents by tokens"),
    "vocabulary": powers_of_two("document_frequency", "tokens by document frequency"),
    "signatures": powers_of_two("n_distinct", "documents by distinct tokens"),
    "buckets": bucket_sizes,
    "largest_buckets": largest_buckets,
    "edges": similarities,
    "components": sizes("component", "components by size"),
    "decisions": decided,
    "sweep": thresholds,
    "recall": recall,
    "repository_edges": shares,
    "repositories": repositories,
}
FIGURES: dict[str, Figures] = {"decisions": decisions}
