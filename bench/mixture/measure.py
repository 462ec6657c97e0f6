"""The cost of looking up a row of a mixture, and the drift of its counts, at 3 to 1,000 sources.

A lookup maps a row of the blend to its source and a row of that source. Ours (`blender.spec.mixture`)
is timed for 1,024 rows at once, as a fetch asks, and for one row, with fixed weights and with shares that
change linearly; a seek is one row anywhere up to step 1e12. Grain's rule is timed alone, and as `ds[k]` of a
mixture of ranges. Updates follow (`bench.mixture.updates`), which no peer has.
"""

from __future__ import annotations

import json
import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt
from rich.console import Console

from bench.harness import Report, Row, at_most, table
from bench.mixture import updates
from bench.peers import GRAIN
from bench.timing import cpu_seconds
from blender.spec.mixture import WHOLE, Mixture, constant, scheduled, shares_of

SOURCES = (3, 30, 300, 1000)
BATCH = 1024
ROWS_PER_STEP = 4096
LAST_STEP = 10**12
CHECKED_ROWS = 200_000  # rows checked one by one, and for the deviation
PEER_ROWS = 2000
AIMED = 300  # sources, at which ours should be 50 times cheaper
FASTER = 50
MOST_SEEK_MS = 1.0
CAVEATS = [
    "CPU time of the process, best (and median) of 3; Grain's in its own environment in the same run.",
    "`ds[k]` also builds an element of a range, the cheapest source there is.",
    "Levanter is left out: its mixtures are asynchronous reads over JAX.",
]


@dataclass(frozen=True)
class Measured:
    """The figures of one mixture; CPU microseconds per lookup in three rounds."""

    batched: list[float]
    single: list[float]
    seek_ms: float
    deviation: float


def measure(progress: Console) -> Report:
    """Ours and Grain's at each number of sources."""
    weights = {n: _weights(n) for n in SOURCES}
    report = Report(CAVEATS, f"sources of weights 1 to 7, cut to {ROWS_PER_STEP:,} rows a step")
    progress.print("looking up rows by Grain")
    asked = json.dumps([weights[n].tolist() for n in SOURCES])
    answers = GRAIN.answer("bench.mixture.peer", asked, PEER_ROWS, console=progress)
    grain = dict(zip(SOURCES, answers, strict=True))
    for n in SOURCES:
        shares = PEER_ROWS * weights[n] / weights[n].sum()
        near = bool(np.abs(np.array(grain[n]["counts"]) - shares).max() < n + 1)
        report.check(f"Grain's counts at {n:,} sources follow the same weights", near)
    columns = "sources | Grain rule | Grain ds\\[k] | fixed, 1,024 | fixed, 1 | linear, 1,024 | linear, 1"
    shown = table("CPU microseconds per lookup", columns)
    seeks = table("One row anywhere up to step 1e12", "sources | fixed, ms | linear, ms")
    stray = table("Largest distance of a count from its share, rows", "sources | fixed | linear | bound")
    for n in SOURCES:
        progress.print(f"looking up rows of {n:,} sources")
        fixed = _measured(report, f"fixed weights of {n:,} sources", _fixed(weights[n]), _share(weights[n]))
        shares = [shares_of(weights[n].tolist()), shares_of(weights[n][::-1].tolist())]
        linear = _measured(report, f"linear shares of {n:,} sources", _linear(shares), _integral(shares))
        rule, got = grain[n]["rule_us"], grain[n]["get_us"]
        timed = (fixed.batched, fixed.single, linear.batched, linear.single)
        ours = (f"{min(it):.3f} ({statistics.median(it):.3f})" for it in timed)
        shown.add_row(f"{n:,}", f"{rule:.2f}", f"{got:.2f}", *ours)
        seeks.add_row(f"{n:,}", f"{fixed.seek_ms:.4f}", f"{linear.seek_ms:.4f}")
        most = 1 + weights[n].max() / weights[n].sum() * n / 2
        stray.add_row(f"{n:,}", f"{fixed.deviation:.3f}", f"{linear.deviation:.3f}", f"{most:.3f}")
        report.rows += [
            Row(f"mixture.grain.{n}.rule", round(rule, 3), "us"),
            Row(f"mixture.grain.{n}.get", round(got, 3), "us"),
        ]
        for name, found in (("fixed", fixed), ("linear", linear)):
            report.rows += _rows(f"mixture.{name}.{n}", found, most, rule if n == AIMED else None)
    report.tables += [shown, seeks, stray]
    progress.print(f"updating a blend {updates.UPDATES:,} times")
    updates.measure(report)
    return report


def _rows(name: str, found: Measured, most: float, rule: float | None) -> list[Row]:
    batched, us = f"{name}.batched", round(min(found.batched), 4)
    return [
        Row(batched, us, "us") if rule is None else at_most(batched, us, "us", round(rule / FASTER, 4)),
        Row(f"{name}.single", round(min(found.single), 3), "us"),
        at_most(f"{name}.seek", round(found.seek_ms, 4), "ms", MOST_SEEK_MS),
        at_most(f"{name}.deviation", round(found.deviation, 3), "rows", round(float(most), 3)),
    ]


def _weights(n: int) -> npt.NDArray[np.int64]:
    """Rows per step of n sources, at least one each, that sum to ROWS_PER_STEP."""
    parts = 1 + np.arange(n) * 3 % 7
    weights = np.maximum(1, parts * ROWS_PER_STEP // parts.sum())
    weights[0] += ROWS_PER_STEP - weights.sum()
    return weights.astype(np.int64)


def _fixed(weights: npt.NDArray[np.int64]) -> Mixture:
    return Mixture([constant(weights.tolist())])


def _linear(shares: list[tuple[int, ...]]) -> Mixture:
    """Shares that change into their reverse over the first, checked steps, and back until step 1e12."""
    knots = [(0, shares[0]), (CHECKED_ROWS // ROWS_PER_STEP, shares[1]), (LAST_STEP, shares[0])]
    return Mixture([scheduled("linear", ROWS_PER_STEP, knots)])


def _share(weights: npt.NDArray[np.int64]) -> Callable[[int], list[Fraction]]:
    return lambda row: [Fraction(int(weight) * row, ROWS_PER_STEP) for weight in weights]


def _integral(shares: list[tuple[int, ...]]) -> Callable[[int], list[Fraction]]:
    length = CHECKED_ROWS // ROWS_PER_STEP * ROWS_PER_STEP

    def due(row: int) -> list[Fraction]:
        part = Fraction(min(row, length))
        pairs = zip(*shares, strict=True)
        return [(a * part + (b - a) * part**2 / (2 * length)) / WHOLE for a, b in pairs]

    return due


def _measured(report: Report, name: str, mixed: Mixture, due: Callable[[int], list[Fraction]]) -> Measured:
    length = CHECKED_ROWS // ROWS_PER_STEP * ROWS_PER_STEP
    rows = np.arange(length)
    source, index = mixed.place(rows)
    deviation = _checked(report, name, mixed, source, index, due)
    generator = np.random.default_rng(7)
    far = generator.integers(0, mixed.first_row(LAST_STEP), 200)
    starts = generator.integers(0, mixed.first_row(LAST_STEP), 100)
    batches = [start + np.arange(BATCH) for start in starts]
    alone = [np.array([row]) for row in far]
    single = _timed(mixed, alone, 1)
    return Measured(_timed(mixed, batches, BATCH), single, _slowest_ms(mixed, alone), deviation)


def _checked(
    report: Report,
    name: str,
    mixed: Mixture,
    source: npt.NDArray[np.int64],
    index: npt.NDArray[np.int64],
    due: Callable[[int], list[Fraction]],
) -> float:
    """Check the lookups; return the largest distance of a count from its share at 200 rows."""
    order = np.argsort(source, kind="stable")
    firsts = np.flatnonzero(np.diff(source[order], prepend=-1))
    within = np.arange(len(order)) - np.repeat(firsts, np.diff([*firsts, len(order)]))
    report.check(f"{name}: every index follows the one before", bool((index[order] == within).all()))
    far = np.random.default_rng(3).integers(0, mixed.first_row(LAST_STEP), 100)
    found_source, found_index = mixed.place(far)
    back = [mixed.row_of(int(s), np.array([i]))[0] for s, i in zip(found_source, found_index, strict=True)]
    report.check(f"{name}: rows up to step 1e12 are found by looking up backwards", back == far.tolist())
    marks = np.linspace(1, len(source), 200).astype(np.int64)
    counts = [np.bincount(source[:mark], minlength=mixed.n_sources) for mark in marks]
    report.check(f"{name}: counts agree with the rows", bool((mixed.counts(marks) == counts).all()))
    return max(
        float(abs(int(count) - exact))
        for mark, found in zip(marks.tolist(), counts, strict=True)
        for count, exact in zip(found, due(mark), strict=True)
    )


def _timed(mixed: Mixture, batches: list[npt.NDArray[np.int64]], rows: int) -> list[float]:
    """CPU microseconds per lookup, by round."""
    seconds = cpu_seconds(lambda: deque(map(mixed.place, batches), maxlen=0))
    return [duration / len(batches) / rows * 1e6 for duration in seconds]


def _slowest_ms(mixed: Mixture, rows: list[npt.NDArray[np.int64]]) -> float:
    """The slowest of many single lookups, each the best of 3."""
    return max(min(cpu_seconds(partial(mixed.place, row))) for row in rows) * 1e3
