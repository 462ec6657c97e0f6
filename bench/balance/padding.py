"""The fill of packed rows, and the padding of batches without packing, for given lengths of documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.packing.lengths import full_and_rest
from factory._native import fewest_sequences

SEQUENCE_LENGTH = 8_192
BYTES_PER_TOKEN = 4
CHUNK = 1_000  # documents of a plan
BATCH = 32  # documents padded to the longest among them, at most a row's length

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Packings:
    """What several ways to lay out the same documents fill, pad and cut."""

    n_tokens: int
    fill_planned: float
    """Share of tokens in the rows of plans of CHUNK documents."""
    fill_in_order: float
    """The same if each document goes into the row of the one before it, or else begins a row."""
    padding: float
    """Share of padding in batches of BATCH documents without packing."""
    cut: float
    """Share of the tokens past a row's length, which batches without packing lose."""


def packings(n_bytes: Integers) -> Packings:
    """Return the figures of documents in their order."""
    lengths = np.maximum(1, n_bytes // BYTES_PER_TOKEN)
    full, rest = full_and_rest(lengths, SEQUENCE_LENGTH)
    n_tokens = int(lengths.sum())
    chunks = (rest[first : first + CHUNK] for first in range(0, len(rest), CHUNK))
    n_planned = int(full.sum()) + sum(_n_sequences(chunk) for chunk in chunks)
    n_in_order = int(full.sum()) + _n_in_order(rest)
    fitting = np.minimum(lengths, SEQUENCE_LENGTH)
    batches = fitting[: len(fitting) // BATCH * BATCH].reshape(-1, BATCH)
    room = float(batches.max(axis=1).sum()) * BATCH
    return Packings(
        n_tokens,
        n_tokens / (n_planned * SEQUENCE_LENGTH),
        n_tokens / (n_in_order * SEQUENCE_LENGTH),
        1 - float(batches.sum()) / room,
        1 - float(fitting.sum()) / n_tokens,
    )


def _n_sequences(lengths: Integers) -> int:
    return max(fewest_sequences(pa.array(lengths), SEQUENCE_LENGTH).drop_null().to_pylist(), default=-1) + 1


def _n_in_order(lengths: Integers) -> int:
    n_sequences, room = 0, 0
    for length in lengths.tolist():
        if length > room:
            n_sequences, room = n_sequences + 1, SEQUENCE_LENGTH
        room -= length
    return n_sequences
