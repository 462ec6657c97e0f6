"""The share of similar pairs that bandings of the same signatures find, and their candidates."""

from __future__ import annotations

import numpy as np

from bench.dedup.exact import Alike
from bench.harness import Report, Row, at_least, cells, table
from factory.dedup.banding import Banding, best_bands, candidate_probability
from factory.dedup.config import DedupConfig
from factory.dedup.edges import PAIR_BUCKET

MISS_COSTS = (0.5, 0.9, 0.98, 0.995)


def add_bandings(report: Report, signatures: np.ndarray, exact: Alike, config: DedupConfig) -> None:
    """Add a row per banding; `signatures` are bytes by text, `exact` reaches below the threshold."""
    truth = exact.at(config.threshold)
    columns = "miss cost | rows | bands | similar pairs | share a bucket | promised | candidates"
    made = table("Bandings", columns)
    for miss_cost in sorted({*MISS_COSTS, config.miss_cost}):
        banding = best_bands(config.threshold, config.values, miss_cost, config.value_bits)
        found = float(met(signatures, truth, banding).mean())
        promised = np.mean([candidate_probability(it, banding) for it in truth.similarity.tolist()])
        tried = candidates(signatures, banding, PAIR_BUCKET)
        line = f"{miss_cost:g} | {banding.rows} | {banding.bands} | {len(truth):,} | {found:.4f}"
        made.add_row(*cells(f"{line} | {promised:.4f} | {tried:,}"))
        name = f"dedup.banding.{banding.rows}x{banding.bands}"
        if miss_cost == config.miss_cost:
            report.rows.append(at_least(f"{name}.met", round(found, 5), "share of similar pairs", 0.995))
        else:
            report.rows.append(Row(f"{name}.met", round(found, 5), "share of similar pairs"))
        report.rows.append(Row(f"{name}.candidates", tried, "pairs"))
    report.tables.append(made)


def met(signatures: np.ndarray, pairs: Alike, banding: Banding) -> np.ndarray:
    """Whether each pair agrees in all bytes of a band."""
    width = banding.rows * banding.bands
    agree = signatures[pairs.left, :width] == signatures[pairs.right, :width]
    found: np.ndarray = agree.reshape(len(pairs), banding.bands, banding.rows).all(2).any(1)
    return found


def candidates(signatures: np.ndarray, banding: Banding, most: int) -> int:
    """Distinct pairs that share a bucket of up to `most` members."""
    n = len(signatures)
    found = np.empty(0, np.int64)
    for band in range(banding.bands):
        part = np.ascontiguousarray(signatures[:, band * banding.rows : (band + 1) * banding.rows])
        keys = np.unique(part.view(f"V{banding.rows}").ravel(), return_inverse=True)[1]
        keys = np.where(np.bincount(keys)[keys] <= most, keys, -1 - np.arange(n))
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        pairs = []
        for lag in range(1, most):
            same = np.flatnonzero(ordered[lag:] == ordered[:-lag])
            if not len(same):
                break
            ends = np.stack([order[same], order[same + lag]])
            pairs.append(ends.min(0) * n + ends.max(0))
        found = np.unique(np.concatenate([found, *pairs]))
    return len(found)
