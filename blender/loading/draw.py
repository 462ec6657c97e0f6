"""Pictures of a plan as text for Mermaid and Graphviz: sources, microbatches of buckets, ranks (Figure 8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from blender.errors import InvalidRequest
from blender.loading.plan import Plan

DrawingLanguage = Literal["mermaid", "dot"]

MOST_BINS = 256  # a larger picture cannot be read


def drawing(plan: Plan, language: DrawingLanguage) -> str:
    """The picture of a plan; raises InvalidRequest for one of more than MOST_BINS microbatches."""
    if plan.buckets * plan.bins > MOST_BINS:
        raise InvalidRequest(
            f"The plan has {plan.buckets * plan.bins:,} microbatches, and a picture shows at most "
            f"{MOST_BINS}. Draw a smaller mesh."
        )
    return _mermaid(plan) if language == "mermaid" else _dot(plan)


def _mermaid(plan: Plan) -> str:
    lines = ["flowchart LR"]
    lines += [f'  s{number}["{name}: {rows:,} rows"]' for number, name, rows in _sources(plan)]
    for bucket in range(plan.buckets):
        lines.append(f'  subgraph b{bucket}["bucket {bucket}: {_share(plan.loads[bucket].sum(), plan)}"]')
        lines += [f'    b{bucket}m{bin}("{label}")' for bin, label in _bins(plan, bucket)]
        lines.append("  end")
    lines += [f"  s{source} -->|{rows:,}| b{bucket}" for source, bucket, rows in _moved(plan)]
    lines += [f'  b{bucket} --> r{bucket}["{ranks}"]' for bucket, ranks in _ranks(plan)]
    return "\n".join(lines) + "\n"


def _dot(plan: Plan) -> str:
    lines = ["digraph plan {", "  rankdir=LR; compound=true; node [shape=box];"]
    lines += [f'  s{number} [label="{name}: {rows:,} rows"];' for number, name, rows in _sources(plan)]
    for bucket in range(plan.buckets):
        lines.append(f"  subgraph cluster_b{bucket} {{")
        lines.append(f'    label="bucket {bucket}: {_share(plan.loads[bucket].sum(), plan)}";')
        lines += [f'    b{bucket}m{bin} [label="{label}"];' for bin, label in _bins(plan, bucket)]
        lines.append("  }")
    for source, bucket, rows in _moved(plan):
        lines.append(f'  s{source} -> b{bucket}m0 [lhead=cluster_b{bucket}, label="{rows:,}"];')
    for bucket, ranks in _ranks(plan):
        lines.append(f'  r{bucket} [label="{ranks}"];')
        lines.append(f"  b{bucket}m0 -> r{bucket} [ltail=cluster_b{bucket}];")
    return "\n".join([*lines, "}"]) + "\n"


def _sources(plan: Plan) -> Iterator[tuple[int, str, int]]:
    counts = np.bincount(plan.step.source, minlength=len(plan.step.sources))
    for number, name in enumerate(plan.step.sources):
        if counts[number]:
            yield number, name.replace('"', "'"), int(counts[number])


def _bins(plan: Plan, bucket: int) -> Iterator[tuple[int, str]]:
    for bin in range(plan.bins):
        rows = len(plan.rows_of(bucket, bin))
        yield bin, f"microbatch {bin}: {rows:,} rows, {_share(plan.loads[bucket, bin] * plan.bins, plan)}"


def _moved(plan: Plan) -> Iterator[tuple[int, int, int]]:
    """Source, bucket and the number of rows that go from one to the other."""
    pairs, counts = np.unique(plan.step.source * plan.buckets + plan.bucket, return_counts=True)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        yield pair // plan.buckets, pair % plan.buckets, count


def _ranks(plan: Plan) -> Iterator[tuple[int, str]]:
    for bucket in range(plan.buckets):
        ranks = [str(consumer.rank) for consumer in plan.consumers if consumer.bucket == bucket]
        yield bucket, f"rank{'s' if len(ranks) != 1 else ''} {', '.join(ranks)}"


def _share(cost: float, plan: Plan) -> str:
    """A cost relative to the mean bucket's."""
    mean = float(plan.loads.sum(dtype=np.float64)) / plan.buckets
    return f"{float(cost) / max(mean, 1e-300):.2f} of the mean"
