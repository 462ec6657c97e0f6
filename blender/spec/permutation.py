"""Keyed permutations of 0 .. n-1, computed position by position and never stored.

A Feistel network on a domain just above n, walked until it falls below n (Black and Rogaway, 2002), looks up
any position by itself, in either direction, at a cost that does not depend on n. Its halves may differ in
width, so that the domain is less than twice n. Up to 256 items a Feistel network is too regular: there the
permutation is an array, the items sorted by keyed random words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from blender.arrays import as_numpy
from factory import _native

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
WalkPart = tuple[int, int, int, list[int]]

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
        return _walk(positions, [self.part(0, len(positions))])

    def inverse(self, items: Ints) -> Ints:
        """The position at which each item is read."""
        return _walk(items, [self.part(0, len(items))], inverse=True)

    def part(self, begin: int, end: int) -> WalkPart:
        """The arguments of the native call that permutes the values `begin` to `end` of an array."""
        return begin, end, self._n, self._keys


def forward_each(permutations: Sequence[Permutation], positions: Ints, ends: Sequence[int]) -> Ints:
    """The items at consecutive parts of `positions`, each under a permutation of its own.

    One native call serves all networks: of 300 parts of 300 positions, calls cost as much as permuting.
    """
    items, networks = positions.copy(), []
    for one, begin, end in zip(permutations, [0, *ends], ends, strict=False):
        if isinstance(one, Feistel):
            networks.append(one.part(begin, end))
        elif not isinstance(one, Identity):
            items[begin:end] = one.forward(positions[begin:end])
    return _walk(items, networks) if networks else items


def _walk(values: Ints, parts: list[WalkPart], inverse: bool = False) -> Ints:
    contiguous = np.ascontiguousarray(values, dtype=np.int64)
    return as_numpy(_native.feistel(contiguous, parts, inverse))


def keyed(n: int, key: bytes) -> Permutation:
    """The permutation of `n` items under a key of 32 bytes."""
    if n < 2:
        return Identity()
    return Explicit(n, key) if n <= _EXPLICIT else Feistel(n, key)


def _words(key: bytes, count: int) -> Words:
    return np.frombuffer(hashlib.shake_256(key).digest(8 * count), dtype="<u8").astype(np.uint64)
