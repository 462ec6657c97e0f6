"""Exact weights in vocabularies of 3 and 60 million tokens: errors of J_W against float64, bytes and speed.

The tokens are random hashes whose frequencies fall like those of words. Pairs of bags miss or reach a
similarity of .8 by one token. The native code compares them, and numpy computes the truth by the definition.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.harness import Report, Row, at_least, at_most, table
from factory import _native

VOCABULARIES = {"3M": 3_000_000, "60M": 60_000_000}
N_DOCUMENTS = 40_000_000
THRESHOLD = 0.8
PAIRS = 4_000
_AT_ONCE = 1 << 22  # tokens


@dataclass(frozen=True)
class Pairs:
    """Pairs of packed bags, and their similarities by the definition."""

    left: list[bytes]
    right: list[bytes]
    similarities: np.ndarray


def measure(progress: Console) -> Report:
    """Build each table, and compare pairs around the threshold with it."""
    report = Report(
        ["The machine's other work shows in the times; a table that fits a cache is faster."],
        f"{PAIRS:,} pairs just below and {PAIRS:,} just above {THRESHOLD}; {N_DOCUMENTS:,} documents",
    )
    shown = table("Tables", "tokens | MB | bytes/token | s to build | weighed, M tokens/CPU s")
    for name, size in VOCABULARIES.items():
        progress.print(f"{size:,} tokens")
        tokens, frequencies = vocabulary(size)
        started = time.process_time()
        builder = _native.IdfBuilder()
        for start in range(0, size, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            builder.add(pa.array(tokens[part].view(np.int64)), pa.array(frequencies[part]))
        idf = builder.finish(N_DOCUMENTS)
        built_s = time.process_time() - started
        pairs = around(tokens, frequencies, PAIRS)
        reach = pairs.similarities >= THRESHOLD
        started = time.process_time()
        found = verified(pairs, idf, 0.01)
        weighed = sum(len(bag) for bag in [*pairs.left, *pairs.right]) / 9 / (time.process_time() - started)
        errors = np.abs(np.array([found[number] for number in range(len(reach))]) - pairs.similarities)
        similar = np.isin(np.arange(len(reach)), [*verified(pairs, idf, THRESHOLD)])
        figures = (len(idf) / 1e6, len(idf) / size, built_s, weighed / 1e6)
        shown.add_row(f"{size:,}", *(f"{figure:,.1f}" for figure in figures))
        report.rows += [
            at_most(f"idf.{name}.error", float(errors.max()), "of J_W", 1e-12),
            at_least(f"idf.{name}.recall", float(similar[reach].mean()), "share of similar pairs", 1),
            at_least(f"idf.{name}.precision", float(reach[similar].mean()), "share of pairs found", 1),
            Row(f"idf.{name}.bytes", round(len(idf) / size, 2), "bytes/token"),
            Row(f"idf.{name}.weighed", round(weighed / 1e6, 2), "million tokens/CPU s"),
        ]
    report.tables.append(shown)
    return report


def vocabulary(size: int) -> tuple[np.ndarray, np.ndarray]:
    """(tokens, document frequencies) of tokens that two or more documents hold."""
    generator = np.random.default_rng(size)
    tokens = generator.integers(0, 1 << 64, size, np.uint64)
    ranks = generator.permutation(size) + 1
    return tokens, np.maximum(2, N_DOCUMENTS // ranks)


def around(tokens: np.ndarray, frequencies: np.ndarray, n: int, seed: int = 6) -> Pairs:
    """n pairs of bags that miss the threshold by one token, then n that reach it."""
    generator = np.random.default_rng(seed)
    left, right, similarities = [], [], []
    for missed in (True, False):
        for _ in range(n):
            chosen = generator.choice(len(tokens), 200, replace=False, shuffle=False)
            counts = generator.integers(1, 4, len(chosen))
            weights = (1 + np.log(counts)) * np.log1p(N_DOCUMENTS / frequencies[chosen])
            shared, apart = weights[:100].sum(), np.cumsum(weights[100:])
            own = int(np.searchsorted(apart, shared * (1 / THRESHOLD - 1), side="right")) + missed
            similarities.append(shared / (shared + apart[own - 1]))
            one = np.r_[:100, 100 : 100 + own // 2]
            other = np.r_[:100, 100 + own // 2 : 100 + own]
            left.append(packed_bag(tokens[chosen[one]], counts[one]))
            right.append(packed_bag(tokens[chosen[other]], counts[other]))
    return Pairs(left, right, np.array(similarities))


def packed_bag(tokens: np.ndarray, counts: np.ndarray) -> bytes:
    """Pack a bag whose counts are below 256 (`native/src/dedup/bags/packed_bag.rs`)."""
    order = np.argsort(tokens)
    n = np.uint32(len(tokens)).tobytes()
    return n + tokens[order].astype("<u8").tobytes() + counts[order].astype(np.uint8).tobytes()


def verified(pairs: Pairs, idf: pa.UInt8Array, threshold: float) -> dict[int, float]:
    """The similarities of the pairs that reach `threshold`, by pair number."""
    n = len(pairs.left)
    batch = pa.RecordBatch.from_pydict(
        {
            "document": pa.array(range(2 * n), pa.int64()),
            "others": pa.array([*(np.array([n + it], "<i8").tobytes() for it in range(n)), *[b""] * n]),
            "doc_id": [f"{it:06}" for it in range(2 * n)],
            "signature": [b"12345678"] * (2 * n),
        }
    )
    alike = _native.CandidatePairs(batch, 8, 0.0)
    bags = pa.array([*pairs.left, *pairs.right]).take(alike.rows)
    found = alike.verify(bags, idf, threshold).to_pydict()
    return {int(name): it for name, it in zip(found["left"], found["similarity"], strict=True)}
