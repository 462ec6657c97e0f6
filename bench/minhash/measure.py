"""Signatures a CPU second and their error: ours, datasketch's weighted MinHash, rensa's without weights.

All sign the same files on one core in one run: from counted tokens (bags with weights) and from raw text. The
error of a pair of bags is against its exact weighted Jaccard J_W, in units of sqrt(J (1 - J) / values).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.harness import Report, Row, at_least, at_most, table
from bench.minhash.corpus import LEAST_TOKENS, MOST_TOKENS, Bags, Pairs, corpus, pairs
from bench.peers import MINHASH
from factory import _native
from factory.dedup.bags import MAX_DISTINCT

SCHEMES = {"lpmh": 28, "cell_oph": 60}  # times minhash_many's documents from counts, at 128 values
VALUES = (128, 256)
TEXT_AIM = 7
ERROR_AIM = 1.05
PEER_SHARE = 4  # datasketch signs every fourth file by size: all files would take minutes
PEER_PAIRS = 500
REPETITIONS = 5
MANY = "datasketch minhash_many"


@dataclass(frozen=True)
class Result:
    """One tool at one number of values: documents a CPU second, errors; None if not measured."""

    tool: str
    values: int
    counts: float
    text: float | None
    bias: float | None
    error: float | None
    """Root mean square of (estimate - J) / sqrt(J (1 - J) / values), where J is what the tool estimates."""
    weighted_error: float | None
    """Root mean square of estimate - J_W."""


def measure(progress: Console) -> Report:
    """Check our estimates, time ours and the peers, and compare."""
    bags = corpus()
    alike = pairs(bags, seed=1)
    n_distinct = np.diff(bags.offsets)
    report = Report(
        caveats=[
            "CPU seconds of one process each; ours is the best of several rounds, the peers' one round.",
            "`from text` counts words too: ours in native code, theirs in Python by `re`.",
            "datasketch draws its parameters for every word before its time starts, so its pairs share a "
            "seed and err together; in ours and rensa's every pair has a seed.",
            f"datasketch signs every {PEER_SHARE}th file in order of size, so of the same mean length, "
            f"and {PEER_PAIRS} of the pairs.",
            "rensa estimates the Jaccard of sets: its error is against that, not against J_W.",
        ],
        data=f"{len(bags):,} files of {LEAST_TOKENS} to {MOST_TOKENS:,} distinct tokens (mean "
        f"{n_distinct.mean():.0f}, median {np.median(n_distinct):.0f}), {_bytes(bags) / 1e6:.1f} MB",
    )
    ours = [_ours(bags, alike, scheme, values, progress) for scheme in SCHEMES for values in VALUES]
    for it in ours:
        assert it.error is not None
        assert it.bias is not None
        report.check(
            f"{it.tool}, {it.values} values: bias {it.bias:+.3f} and rms error {it.error:.3f} of theory on "
            f"{len(alike):,} pairs",
            abs(it.bias) < 0.1 and it.error < 1.1,
        )
    theirs = [it for values in VALUES for it in _theirs(bags, alike, values, progress)]
    report.tables.append(_table([*ours, *theirs]))
    report.rows = _rows(ours, theirs)
    return report


def _ours(bags: Bags, alike: Pairs, scheme: str, values: int, progress: Console) -> Result:
    progress.print(f"{scheme}, {values} values")
    tokens, weights, offsets = pa.array(bags.tokens), pa.array(bags.weights), pa.array(bags.offsets)
    counts = _best(lambda: _native.sign_bags(tokens, weights, offsets, scheme, values, 8, 0))
    text = _best(lambda: _of_texts(bags, scheme, values))
    estimates = np.array([_estimate(alike, number, scheme, values) for number in range(len(alike))])
    return _result(scheme, values, len(bags) / counts, len(bags) / text, estimates, alike.similarities, alike)


def _of_texts(bags: Bags, scheme: str, values: int) -> None:
    made = _native.BagMaker("code", MAX_DISTINCT, max_text_bytes=0).make(bags.texts)
    _native.sign_packed(made["bag"], bags.idf, scheme, values, 8, 0)


def _best(work: Callable[[], Any]) -> float:
    """CPU seconds of the fastest round."""
    seconds = []
    for _ in range(REPETITIONS):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)


def _estimate(alike: Pairs, number: int, scheme: str, values: int) -> float:
    """The estimate of one pair; its number is the seed."""
    ends = alike.offsets[2 * number : 2 * number + 3]
    part = slice(ends[0], ends[2])
    signed = _native.sign_bags(
        pa.array(alike.tokens[part]),
        pa.array(alike.weights[part]),
        pa.array(ends - ends[0]),
        scheme,
        values,
        8,
        number,
    )
    left, right = (np.frombuffer(signature.as_py(), np.uint8) for signature in signed)
    return float(((left == right).mean() - 1 / 256) / (1 - 1 / 256))


def _theirs(bags: Bags, alike: Pairs, values: int, progress: Console) -> list[Result]:
    progress.print(f"datasketch and rensa, {values} values")
    words, dimensions = np.unique(bags.tokens, return_inverse=True)
    end = alike.offsets[2 * min(PEER_PAIRS, len(alike))]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        pq.write_table(pa.table({"text": bags.texts}), home / "texts.parquet")
        np.savez(
            home / "bags.npz",
            dimensions=dimensions.astype(np.int32),
            weights=bags.weights,
            offsets=bags.offsets,
            dimension=len(words),
            share=np.sort(np.argsort(np.diff(bags.offsets), kind="stable")[PEER_SHARE // 2 :: PEER_SHARE]),
        )
        np.savez(
            home / "pairs.npz",
            dimensions=np.searchsorted(words, alike.tokens[:end]).astype(np.int32),
            weights=alike.weights[:end],
            offsets=alike.offsets[: 2 * PEER_PAIRS + 1],
        )
        found = MINHASH.answer("bench.minhash.peer", folder, values, console=progress)
    results = []
    for tool, said in found.items():
        counts, text = (it and it["documents"] / it["cpu_s"] for it in (said["counts"], said["text"]))
        estimates = None if said["estimates"] is None else np.array(said["estimates"])
        truth = alike.unweighted if tool.startswith("rensa") else alike.similarities
        results.append(_result(tool, values, counts, text, estimates, truth, alike))
    return results


def _result(
    tool: str,
    values: int,
    counts: float,
    text: float | None,
    estimates: np.ndarray | None,
    truth: np.ndarray,
    alike: Pairs,
) -> Result:
    if estimates is None:
        return Result(tool, values, counts, text, None, None, None)
    n = len(estimates)
    z = (estimates - truth[:n]) / np.sqrt(truth[:n] * (1 - truth[:n]) / values)
    weighted = np.sqrt(((estimates - alike.similarities[:n]) ** 2).mean())
    return Result(tool, values, counts, text, float(z.mean()), float(np.sqrt((z**2).mean())), float(weighted))


def _bytes(bags: Bags) -> int:
    return sum(len(text.as_py().encode()) for text in bags.texts)


def _table(results: list[Result]) -> Any:
    columns = "tool | values | from counts | times many | from text | times many | bias | error / theory"
    made = table("Documents a CPU second", f"{columns} | rms against J_W")
    for it in results:
        many = _many(results, it.values)
        assert many.text is not None
        made.add_row(
            it.tool,
            str(it.values),
            f"{it.counts:,.0f}",
            f"{it.counts / many.counts:.2f}",
            "" if it.text is None else f"{it.text:,.0f}",
            "" if it.text is None else f"{it.text / many.text:.2f}",
            "" if it.bias is None else f"{it.bias:+.3f}",
            "" if it.error is None else f"{it.error:.3f}",
            "" if it.weighted_error is None else f"{it.weighted_error:.4f}",
        )
    return made


def _many(results: list[Result], values: int) -> Result:
    return next(it for it in results if it.tool == MANY and it.values == values)


def _rows(ours: list[Result], theirs: list[Result]) -> list[Row]:
    rows = []
    for it in [*ours, *theirs]:
        name = f"minhash.{it.tool.replace(', no weights', '').replace(' ', '_')}.{it.values}"
        rows.append(Row(f"{name}.from_counts", it.counts, "documents/CPU s"))
        if it.text is not None:
            rows.append(Row(f"{name}.from_text", it.text, "documents/CPU s"))
        if it.error is not None:
            rows.append(Row(f"{name}.error", it.error, "of theory"))
    for it in ours:
        many = _many(theirs, it.values)
        assert it.text is not None
        assert it.error is not None
        name = f"minhash.{it.tool}.{it.values}"
        if it.values == VALUES[0]:
            rows.append(
                at_least(f"{name}.from_counts_ratio", it.counts / many.counts, "times", SCHEMES[it.tool])
            )
        # minhash_many is given its counts, ours counts words: the harder of the two comparisons.
        rows.append(at_least(f"{name}.from_text_ratio", it.text / many.counts, "times", TEXT_AIM))
        rows.append(at_most(f"{name}.error_ratio", it.error, "of theory", ERROR_AIM))
    return rows
