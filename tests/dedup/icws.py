"""Consistent weighted sampling by the book (Ioffe 2010): slow, exact, and nothing like our signatures.

For a token of weight S and a value of the signature: r, c ~ Gamma(2, 1), beta ~ U(0, 1), all three fixed by
(seed, token, value); t = floor(ln S / r + beta); ln y = r (t - beta); ln a = ln c - ln y - r. The value is
the pair (token, t) of the least a, and two bags agree in it with a probability of exactly J_W.
"""

from __future__ import annotations

import numpy as np


def icws(tokens: np.ndarray, weights: np.ndarray, values: int, seed: int) -> np.ndarray:
    """(values, 2) int64: the token and the t that a bag has in each value."""
    drawn = [np.random.default_rng([seed, token]) for token in tokens.astype(np.uint64)]
    r = np.array([generator.gamma(2, size=values) for generator in drawn])
    c = np.array([generator.gamma(2, size=values) for generator in drawn])
    beta = np.array([generator.random(values) for generator in drawn])
    t = np.floor(np.log(weights)[:, None] / r + beta)
    least = (np.log(c) - r * (t - beta) - r).argmin(0)
    return np.stack([tokens[least], t[least, np.arange(values)].astype(np.int64)], axis=1)
