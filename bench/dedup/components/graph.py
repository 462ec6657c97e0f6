"""A graph of numbered documents like those of banding: stars of power-law sizes, bridges, and long paths.

Documents form families whose sizes follow a power law. In every band some documents of a family share a
bucket, and a bucket is a star around its least document. A few edges bridge two families; some families are
long paths, chains in which each document resembles the one before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

BANDS = 12
EXPONENT = 2.0  # of the sizes' power law
LARGEST = 100_000  # documents of a family
IN_BAND = 0.7  # share of a family that a band's bucket holds
BRIDGES = 1 / 500  # edges between families for each star edge
PATHS = 1 / 50  # share of the edges that lie on paths
LONGEST = 2_000  # documents of a path
_ROWS_A_BATCH = 1 << 20


def graph(n_edges: int, seed: int) -> tuple[int, np.ndarray]:
    """(documents, edges): `n_edges` rows (left, right) in random order, some more than once."""
    generator = np.random.default_rng(seed)
    on_paths = int(n_edges * PATHS)
    bridges = int(n_edges * BRIDGES)
    paths, next_document = _paths(on_paths, generator)
    stars, n_documents = _stars(n_edges - on_paths - bridges, next_document, generator)
    in_stars = n_documents - next_document
    one = generator.integers(0, in_stars, bridges)
    other = (one + generator.integers(1, in_stars, bridges)) % in_stars  # never the same document
    across = np.stack([one, other], axis=1) + next_document
    edges = np.concatenate([paths, stars, across])
    generator.shuffle(edges)
    return n_documents, edges


def _paths(n_edges: int, generator: np.random.Generator) -> tuple[np.ndarray, int]:
    """Paths of up to `LONGEST` documents and the first document after them."""
    lengths: list[int] = []
    while sum(lengths) < n_edges:
        lengths.append(min(int(generator.integers(2, LONGEST)), n_edges - sum(lengths)))
    steps = np.arange(n_edges) + np.repeat(np.arange(len(lengths)), lengths)
    return np.stack([steps, steps + 1], axis=1), n_edges + len(lengths)


def _stars(n_edges: int, first: int, generator: np.random.Generator) -> tuple[np.ndarray, int]:
    """Stars of the buckets of families, and the first document after them."""
    found: list[np.ndarray] = []
    held = 0
    while held < n_edges:
        sizes = np.minimum(generator.zipf(EXPONENT, 1 << 16) + 1, LARGEST)
        family = np.repeat(np.arange(len(sizes)), sizes)
        for _ in range(BANDS):
            members = np.flatnonzero(generator.random(len(family)) < IN_BAND)
            begins = np.flatnonzero(np.diff(family[members], prepend=-1))
            hubs = np.repeat(members[begins], np.diff(np.append(begins, len(members))))
            edges = np.stack([hubs, members], axis=1)[hubs != members]
            found.append(edges + first)
            held += len(edges)
        first += len(family)
    return np.concatenate(found)[:n_edges], first


def names(numbers: np.ndarray) -> pa.Array:
    """The id of each document, 32 hex digits like a `doc_id`, in another order than the numbers."""
    words = np.stack([_mixed(numbers, 1), _mixed(numbers, 2)], axis=1)
    digits = np.array([f"{byte:02x}" for byte in range(256)], "S2")[words.view(np.uint8)]
    ends = np.arange(len(numbers) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(ends), pa.py_buffer(digits.tobytes()))


def _mixed(numbers: np.ndarray, seed: int) -> np.ndarray:
    """A bijection of 64-bit numbers (the finalizer of SplitMix64)."""
    mixed = numbers.astype(np.uint64) + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def batches(edges: np.ndarray, ids: pa.Array) -> Iterator[pa.RecordBatch]:
    """The edges as pairs of ids."""
    for start in range(0, len(edges), _ROWS_A_BATCH):
        left, right = (ids.take(pa.array(edges[start : start + _ROWS_A_BATCH, end])) for end in (0, 1))
        yield pa.RecordBatch.from_arrays([left, right], names=["left", "right"])
