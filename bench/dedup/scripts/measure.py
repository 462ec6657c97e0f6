"""Similarity of unrelated texts and of edited copies in twelve scripts, by words and by cl100k_base.

The native bags of texts are weighed like those of a group that has only these texts. Unrelated texts should
resemble each other as little in a script without blanks as in English.
"""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.bags import Bag
from bench.dedup.minhash.corpus import counted
from bench.dedup.scripts.corpus import SCRIPTS, Texts, texts_of_names, texts_of_syllables
from bench.harness import Report, Row, at_most, table

KINDS = ("prose", "cl100k_base")
N_TEXTS, SENTENCES = 20, (10, 25, 50)
N_SYLLABIC, SYLLABIC_WORDS = 8, 1_500
LIMIT = 0.25  # of the mean similarity of pairs texts, 50 sentences long
COLUMNS = "script | texts | pairs, mean | max | >= .7 | >= .8 | copies, mean | least | MB/CPU s"


def measure(progress: Console) -> Report:
    """Compare all pairs of texts of each script, length and kind of token."""
    report = Report(
        ["Names of CLDR are no sentences; without verbs and particles, unrelated texts share less."],
        f"{N_TEXTS} texts of {', '.join(map(str, SENTENCES))} sentences; {N_SYLLABIC} of {SYLLABIC_WORDS:,} "
        "made words",
    )
    for kind in KINDS:
        figures_table = table(f"By {kind}", COLUMNS)
        for name, script in SCRIPTS.items():
            progress.print(f"{name}, {kind}")
            cases = {f"{n} sentences": texts_of_names(script, N_TEXTS, n) for n in SENTENCES}
            cases["made"] = texts_of_syllables(script, N_SYLLABIC, SYLLABIC_WORDS)
            for case, texts in cases.items():
                pairs, copies, speed = similarities(texts, kind)
                shares = [(pairs >= threshold).mean() for threshold in (0.7, 0.8)]
                figures = (pairs.mean(), pairs.max(), *shares, copies.mean(), copies.min())
                figures_table.add_row(name, case, *(f"{figure:.3f}" for figure in figures), f"{speed:.0f}")
                row = f"scripts.{kind}.{name}.{case.replace(' sentences', '')}"
                mean = round(float(pairs.mean()), 4)
                report.rows += [
                    Row(f"{row}.unrelated", mean, "J_W")
                    if case in ("10 sentences", "25 sentences")
                    else at_most(f"{row}.unrelated", mean, "J_W", LIMIT),
                    Row(f"{row}.copies", round(float(copies.mean()), 4), "J_W"),
                ]
        report.tables.append(figures_table)
    return report


def similarities(texts: Texts, kind: str) -> tuple[np.ndarray, np.ndarray, float]:
    """J_W of all pairs of unrelated texts, and of texts and their copies; MB cut per CPU second."""
    both = pa.array([*texts.originals, *texts.copies])
    begin = time.process_time()
    bags = counted(both, kind=kind)
    speed = both.nbytes / 1e6 / (time.process_time() - begin)
    n = len(texts.originals)
    vocabulary, frequencies = np.unique(
        np.concatenate([tokens for tokens, _ in bags[:n]]), return_counts=True
    )

    def weights_of(tokens: np.ndarray, counts: np.ndarray) -> Bag:
        places = np.searchsorted(vocabulary, tokens).clip(max=len(vocabulary) - 1)
        frequency = np.where(vocabulary[places] == tokens, frequencies[places], 1)
        return tokens, (1 + np.log(counts)) * np.log1p(n / frequency)

    weights = [weights_of(*bag) for bag in bags]
    pairs = [jaccard(bag, other) for bag, other in combinations(weights[:n], 2)]
    copies = [jaccard(bag, copy) for bag, copy in zip(weights[:n], weights[n:], strict=True)]
    return np.array(pairs), np.array(copies), speed


def jaccard(bag: Bag, other: Bag) -> float:
    """The weighted Jaccard of two bags."""
    _, lefts, rights = np.intersect1d(bag[0], other[0], assume_unique=True, return_indices=True)
    common = np.minimum(bag[1][lefts], other[1][rights]).sum()
    return float(common / (bag[1].sum() + other[1].sum() - common))
