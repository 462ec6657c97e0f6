"""Keyed permutations of 0 .. n-1, computed position by position and never stored.

A Feistel network on a domain just above n, walked until it falls below n (Black and Rogaway, 2002), looks up
any position by itself, in either direction, at a cost that does not depend on n. Its halves may differ in
width, so that the domain is less than twice n. Up to 256 items a Feistel network is too regular: there the
permutation is an array, the items sorted by keyed random words.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

import numpy as np
import numpy.typing as npt

from blender.arrays import as_numpy
from factory import _native

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

ROUNDS = 6  # the fewest rounds that pass the lag, grid and pair tests
_EXPLICIT = 256  # largest permutation kept as an array


class Permutation(Protocol):
    """A bijection of 0 .. n-1, applied to many positions at once."""

    def forward(self, positions: Ints) -> Ints:
        """The item read at each position."""

    def inverse(self, items: Ints) -> Ints:
        """The position at which each item is read."""


class Identity:
    """Items in their own order."""

    def forward(self, positions: Ints) -> Ints:
        """The item read at each position."""
        return positions

    def inverse(self, items: Ints) -> Ints:
        """The position at which each item is read."""
        return items


class Explicit:
    """A permutation of few items as an array: the items sorted by keyed random words."""

    def __init__(self, n: int, key: bytes) -> None:
        self._items = np.argsort(_words(key, n), kind="stable").astype(np.int64)
        self._positions = np.argsort(self._items, kind="stable").astype(np.int64)

    def forward(self, positions: Ints) -> Ints:
        """The item read at each position."""
        return self._items[positions]

    def inverse(self, items: Ints) -> Ints:
        """The position at which each item is read."""
        return self._positions[items]


class Feistel:
    """A permutation of n > 1 items by a cycle-walked Feistel network of ROUNDS rounds."""

    def __init__(self, n: int, key: bytes) -> None:
        self._n, self._keys = n, _words(key, ROUNDS).tolist()

    def forward(self, positions: Ints) -> Ints:
        """The item read at each position."""
        return self._walk(positions, inverse=False)

    def inverse(self, items: Ints) -> Ints:
        """The position at which each item is read."""
        return self._walk(items, inverse=True)

    def _walk(self, values: Ints, inverse: bool) -> Ints:
        contiguous = np.ascontiguousarray(values, dtype=np.int64)
        return as_numpy(_native.feistel(contiguous, self._n, self._keys, inverse))


def keyed(n: int, key: bytes) -> Permutation:
    """The permutation of `n` items under a key of 32 bytes."""
    if n < 2:
        return Identity()
    return Explicit(n, key) if n <= _EXPLICIT else Feistel(n, key)


def _words(key: bytes, count: int) -> Words:
    return np.frombuffer(hashlib.shake_256(key).digest(8 * count), dtype="<u8").astype(np.uint64)
