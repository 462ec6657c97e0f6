"""Signatures per CPU second and their error: ours, datasketch's weighted MinHash, rensa's without weights.

All sign the same files on one core in one run: from counted tokens (bags with weights) and from raw text. The
error of a pair of bags is against its exact weighted Jaccard J_W, in units of sqrt(J (1 - J) / values).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.dedup.minhash.corpus import LEAST_TOKENS, MOST_TOKENS, Files, Pairs, corpus, pairs
from bench.harness import Report, Row, at_least, at_most, table
from bench.peers import MINHASH
from bench.timing import cpu_seconds
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


COLUMNS = "tool | values | from counts | times many | from text | times many | bias | error / theory"


@dataclass(frozen=True)
class Result:
    """The figures of one tool at one number of values; a figure that was not measured is missing.

    `from_counts` and `from_text` are documents per CPU second. `bias` and `error` are the mean and the root
    mean square of (estimate - J) / sqrt(J (1 - J) / values), where J is what the tool estimates, and
    `weighted_error` is the root mean square of estimate - J_W.
    """

    tool: str
    values: int
    figures: Mapping[str, float]


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
        bias, error = it.figures["bias"], it.figures["error"]
        report.check(
            f"{it.tool}, {it.values} values: bias {bias:+.3f} and rms error {error:.3f} of theory on "
            f"{len(alike):,} pairs",
            abs(bias) < 0.1 and error < 1.1,
        )
    theirs = [it for values in VALUES for it in _theirs(bags, alike, values, progress)]
    report.tables.append(_table([*ours, *theirs]))
    report.rows = _rows(ours, theirs)
    return report


def _ours(bags: Files, alike: Pairs, scheme: str, values: int, progress: Console) -> Result:
    progress.print(f"{scheme}, {values} values")
    tokens, weights, offsets = pa.array(bags.tokens), pa.array(bags.weights), pa.array(bags.offsets)
    works: dict[str, Callable[[], object]] = {
        "from_counts": lambda: _native.sign_bags(tokens, weights, offsets, scheme, values, 8, 0),
        "from_text": lambda: _of_texts(bags, scheme, values),
    }
    speeds = {name: len(bags) / min(cpu_seconds(work, REPETITIONS)) for name, work in works.items()}
    estimates = np.array([_estimate(alike, number, scheme, values) for number in range(len(alike))])
    return Result(scheme, values, speeds | errors(estimates, values, alike.similarities, alike))


def _of_texts(bags: Files, scheme: str, values: int) -> None:
    made = _native.BagMaker("code", MAX_DISTINCT, max_text_bytes=0).make(bags.texts)
    _native.sign_packed(made["bag"], bags.idf, scheme, values, 8, 0)


def _estimate(alike: Pairs, number: int, scheme: str, values: int) -> float:
    """The estimate of one pair; its number is the seed."""
    ends = alike.bags.offsets[2 * number : 2 * number + 3]
    part = slice(ends[0], ends[2])
    signed = _native.sign_bags(
        pa.array(alike.bags.tokens[part]),
        pa.array(alike.bags.weights[part]),
        pa.array(ends - ends[0]),
        scheme,
        values,
        8,
        number,
    )
    left, right = (np.frombuffer(signature.as_py(), np.uint8) for signature in signed)
    return float(((left == right).mean() - 1 / 256) / (1 - 1 / 256))


def _theirs(bags: Files, alike: Pairs, values: int, progress: Console) -> list[Result]:
    progress.print(f"datasketch and rensa, {values} values")
    words, dimensions = np.unique(bags.tokens, return_inverse=True)
    end = alike.bags.offsets[2 * min(PEER_PAIRS, len(alike))]
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
            dimensions=np.searchsorted(words, alike.bags.tokens[:end]).astype(np.int32),
            weights=alike.bags.weights[:end],
            offsets=alike.bags.offsets[: 2 * PEER_PAIRS + 1],
        )
        found = MINHASH.answer("bench.dedup.minhash.peer", folder, values, console=progress)
    results = []
    for tool, said in found.items():
        speeds = {name: it["documents"] / it["cpu_s"] for name, it in said["costs"].items()}
        truth = alike.unweighted if tool.startswith("rensa") else alike.similarities
        estimates = np.array(said["estimates"])
        results.append(Result(tool, values, speeds | errors(estimates, values, truth, alike)))
    return results


def errors(estimates: np.ndarray, values: int, truth: np.ndarray, alike: Pairs) -> dict[str, float]:
    """The errors of the estimates of the first pairs; `truth` is what the tool estimates."""
    n = len(estimates)
    if not n:
        return {}
    z = (estimates - truth[:n]) / np.sqrt(truth[:n] * (1 - truth[:n]) / values)
    off = estimates - alike.similarities[:n]
    rms = (float(np.sqrt((it**2).mean())) for it in (z, off))
    return {"bias": float(z.mean()), **dict(zip(("error", "weighted_error"), rms, strict=True))}


def _bytes(bags: Files) -> int:
    return sum(len(text.as_py().encode()) for text in bags.texts)


def _table(results: list[Result]) -> Any:
    made = table("Documents a CPU second", f"{COLUMNS} | rms against J_W")
    for it in results:
        many, shown = _many(results, it.values), [it.tool, str(it.values)]
        for name in ("from_counts", "from_text"):
            speed = it.figures.get(name)
            shown += ["", ""] if speed is None else [f"{speed:,.0f}", f"{speed / many.figures[name]:.2f}"]
        for name, digits in (("bias", "+.3f"), ("error", ".3f"), ("weighted_error", ".4f")):
            shown.append(f"{it.figures[name]:{digits}}" if name in it.figures else "")
        made.add_row(*shown)
    return made


def _many(results: list[Result], values: int) -> Result:
    return next(it for it in results if it.tool == MANY and it.values == values)


def _rows(ours: list[Result], theirs: list[Result]) -> list[Row]:
    units = {"from_counts": "documents/CPU s", "from_text": "documents/CPU s", "error": "of theory"}
    rows = []
    for it in [*ours, *theirs]:
        name = f"minhash.{it.tool.replace(', no weights', '').replace(' ', '_')}.{it.values}"
        rows += [
            Row(f"{name}.{figure}", it.figures[figure], unit)
            for figure, unit in units.items()
            if figure in it.figures
        ]
    for it in ours:
        name, many = f"minhash.{it.tool}.{it.values}", _many(theirs, it.values).figures["from_counts"]
        if it.values == VALUES[0]:
            ratio = it.figures["from_counts"] / many
            rows.append(at_least(f"{name}.from_counts_ratio", ratio, "times", SCHEMES[it.tool]))
        # minhash_many gets its counts, while ours counts words: the harder of the two comparisons.
        rows.append(at_least(f"{name}.from_text_ratio", it.figures["from_text"] / many, "times", TEXT_AIM))
        rows.append(at_most(f"{name}.error_ratio", it.figures["error"], "of theory", ERROR_AIM))
    return rows
