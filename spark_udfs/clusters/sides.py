"""Two sides of a cluster: the proxy continues on side A and is scored on side B.

Near duplicates lie on one side. Otherwise every cluster with copies would look easy, and copies are the
business of deduplication, which comes later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from factory import _native

SIMILAR = 0.6  # Jaccard of the hashed words and pairs of words of near duplicates
_BITS = 16

Integers = npt.NDArray[np.int64]


def families(texts: pa.Array) -> Integers:
    """Return the family of each text, numbered from 0 by the first member.

    A family is a connected component of near duplicates. A text without a token is a family by itself. The
    cost grows with the square of the number of texts.
    """
    buckets = _native.hashed_features(texts, _BITS)
    sets = _bit_sets(buckets)
    sizes = pc.list_value_length(buckets).to_numpy().astype(np.int64)
    parents = list(range(len(texts)))

    def root(member: int) -> int:
        while parents[member] != member:
            member = parents[member]
        return member

    for member in range(len(texts) - 1):
        n_common = np.bitwise_count(sets[member] & sets[member + 1 :]).sum(axis=1, dtype=np.int64)
        n_distinct = sizes[member] + sizes[member + 1 :] - n_common
        for other in np.flatnonzero((n_common > 0) & (n_common >= SIMILAR * n_distinct)):
            first, second = sorted((root(member), root(member + 1 + int(other))))
            parents[second] = first
    return np.unique([root(member) for member in range(len(texts))], return_inverse=True)[1].astype(np.int64)


def sides(
    family_numbers: Sequence[int] | Integers, n_bytes: Sequence[int] | Integers
) -> npt.NDArray[np.bool_]:
    """Return whether each document is on side B; A and B have about the same bytes.

    Families go one after another, by their first document, to the side that is lighter. A single
    family is split by document.
    """
    numbers = np.asarray(family_numbers, np.int64)
    if len(np.unique(numbers)) < 2:
        numbers = np.arange(len(numbers))
    weights = np.bincount(numbers, np.asarray(n_bytes, np.float64))
    on_b = np.zeros(len(weights), bool)
    sums = [0.0, 0.0]
    for family, weight in enumerate(weights):
        on_b[family] = sums[1] < sums[0]
        sums[int(on_b[family])] += weight
    return on_b[numbers]


def _bit_sets(buckets: pa.ListArray) -> npt.NDArray[np.uint64]:
    """Return a row of 2^_BITS bits for each text."""
    bits = np.zeros((len(buckets), 1 << _BITS), bool)
    rows = np.repeat(np.arange(len(buckets)), pc.list_value_length(buckets).to_numpy())
    bits[rows, buckets.flatten().to_numpy()] = True
    return np.packbits(bits, axis=1).view(np.uint64)
