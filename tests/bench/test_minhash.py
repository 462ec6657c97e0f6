"""The bench of signatures: its pairs' exact similarities, and errors in units of theory."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from bench.minhash.corpus import Bags, Pairs, pairs
from bench.minhash.measure import _result


def bags() -> Bags:
    generator = np.random.default_rng(5)
    tokens = [np.sort(generator.choice(200, size, replace=False)) for size in (60, 90, 40, 120)]
    offsets = np.cumsum([0, *(len(it) for it in tokens)])
    return Bags(
        pa.array([]),
        np.concatenate(tokens),
        generator.random(offsets[-1]) + 0.1,
        offsets,
        pa.array([], pa.uint8()),
    )


def test_the_similarities_of_pairs_are_exact() -> None:
    made = pairs(bags(), seed=2)
    for number in range(len(made)):
        left, right = (
            dict(zip(made.tokens[start:end], made.weights[start:end], strict=True))
            for start, end in zip(
                made.offsets[2 * number : 2 * number + 2],
                made.offsets[2 * number + 1 : 2 * number + 3],
                strict=True,
            )
        )
        both = left.keys() | right.keys()
        least = sum(min(left.get(token, 0), right.get(token, 0)) for token in both)
        most = sum(max(left.get(token, 0), right.get(token, 0)) for token in both)
        assert made.similarities[number] == pytest.approx(least / most)
        assert made.unweighted[number] == pytest.approx(len(left.keys() & right.keys()) / len(both))
        assert 0 < made.similarities[number] < 1
        assert list(right) == sorted(right)


def test_errors_are_in_units_of_theory() -> None:
    alike = Pairs(np.array([]), np.array([]), np.array([]), np.array([0.5, 0.8]), np.array([0.4, 0.7]))
    off = np.array([0.5, 0.8]) + 2 * np.sqrt(np.array([0.25, 0.16]) / 64)
    found = _result("any", 64, 1.0, None, off, alike.similarities, alike)
    assert (found.bias, found.error) == (pytest.approx(2), pytest.approx(2))
    assert found.weighted_error == pytest.approx(math.sqrt((4 * 0.25 / 64 + 4 * 0.16 / 64) / 2))
