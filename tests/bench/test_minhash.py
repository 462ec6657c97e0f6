"""The bench of signatures: its pairs' exact similarities, and errors in units of theory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.bags import Bags, joined
from bench.dedup.minhash.corpus import Pairs, pairs
from bench.dedup.minhash.measure import errors
from tests.bench.test_dedup import similarity


def bags() -> Bags:
    generator = np.random.default_rng(5)
    tokens = [np.sort(generator.choice(200, size, replace=False)) for size in (60, 90, 40, 120)]
    return joined([(bag, generator.random(len(bag)) + 0.1) for bag in tokens])


def test_the_similarities_of_pairs_are_exact() -> None:
    made = pairs(bags(), seed=2)
    for number in range(len(made)):
        left, right = (dict(zip(*made.bags.of(it), strict=True)) for it in (2 * number, 2 * number + 1))
        assert made.similarities[number] == pytest.approx(similarity(left, right))
        sets = dict.fromkeys(left, 1.0), dict.fromkeys(right, 1.0)
        assert made.unweighted[number] == pytest.approx(similarity(*sets))
        assert 0 < made.similarities[number] < 1
        assert list(right) == sorted(right)


def test_errors_are_in_units_of_theory() -> None:
    alike = Pairs(joined([(np.array([]),) * 2]), np.array([0.5, 0.8]), np.array([0.4, 0.7]))
    off = np.array([0.5, 0.8]) + 2 * np.sqrt(np.array([0.25, 0.16]) / 64)
    found = errors(off, 64, alike.similarities, alike)
    assert (found["bias"], found["error"]) == (pytest.approx(2), pytest.approx(2))
    assert found["weighted_error"] == pytest.approx(math.sqrt((4 * 0.25 / 64 + 4 * 0.16 / 64) / 2))
