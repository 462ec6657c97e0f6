"""Permutations of 0 .. n-1 that are computed where they are asked for, by a key, and never stored.

A Feistel network on a domain just above n, walked until it falls below n (Black and Rogaway, 2002): any
position is looked up by itself, in either direction, at a cost that does not depend on n. The halves have
unequal width where needed, so that the domain is less than twice n. Up to 256 items a Feistel network is
too regular: there the permutation is written out, items sorted by keyed random words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

ROUNDS = 6  # fewest whose lag correlations, grid and pair tests are clean
_EXPLICIT = 256  # up to here the permutation is written out


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
    """A permutation of few items, written out: items sorted by keyed random words."""

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
        bits = (n - 1).bit_length()
        self._n = np.uint64(n)
        self._low = np.uint64(bits - bits // 2)  # width of the low half; the high half may be a bit narrower
        self._high_mask = np.uint64((1 << (bits // 2)) - 1)
        self._low_mask = np.uint64((1 << (bits - bits // 2)) - 1)
        self._keys = _words(key, ROUNDS)

    def forward(self, positions: Ints) -> Ints:
        """The item read at each position."""
        return self._walk(positions, self._encrypt)

    def inverse(self, items: Ints) -> Ints:
        """The position at which each item is read."""
        return self._walk(items, self._decrypt)

    def _walk(self, values: Ints, step: Callable[[Words], Words]) -> Ints:
        result = step(values.astype(np.uint64))
        outside = np.flatnonzero(result >= self._n)
        while len(outside):
            result[outside] = step(result[outside])
            outside = outside[result[outside] >= self._n]
        return result.astype(np.int64)

    def _encrypt(self, values: Words) -> Words:
        high, low = values >> self._low, values & self._low_mask
        for number in range(0, ROUNDS, 2):
            high ^= _mix(low + self._keys[number]) & self._high_mask
            low ^= _mix(high + self._keys[number + 1]) & self._low_mask
        return (high << self._low) | low

    def _decrypt(self, values: Words) -> Words:
        high, low = values >> self._low, values & self._low_mask
        for number in range(ROUNDS - 2, -1, -2):
            low ^= _mix(high + self._keys[number + 1]) & self._low_mask
            high ^= _mix(low + self._keys[number]) & self._high_mask
        return (high << self._low) | low


def keyed(n: int, key: bytes) -> Permutation:
    """The permutation of `n` items that belongs to a key of 32 bytes."""
    if n < 2:
        return Identity()
    return Explicit(n, key) if n <= _EXPLICIT else Feistel(n, key)


def _words(key: bytes, count: int) -> Words:
    return np.frombuffer(hashlib.shake_256(key).digest(8 * count), dtype="<u8").astype(np.uint64)


def _mix(words: Words) -> Words:
    # The finalizer of splitmix64; unsigned arithmetic wraps.
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
