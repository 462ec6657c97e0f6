"""Next-fit, the yardstick of plans: documents in order, a sequence for each repository and each misfit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.packing.lengths import full_and_rest
from factory.lake.schemas.base import REPOSITORY

_IN_ORDER = [(name, "ascending") for name in (*REPOSITORY, "position", "doc_id")]


def next_fit_chunk(documents: pa.Table, sequence_length: int) -> pa.Table:
    """Return next-fit's plan of the documents that `plan_chunk` takes, with the same columns.

    A document longer than a sequence fills sequences of its own, which come last; its remainder is placed.
    """
    documents = documents.sort_by(_IN_ORDER)
    full, rest = full_and_rest(documents["n_tokens"].to_numpy().astype(np.int64), sequence_length)
    sequences, n_sequences = _sequences(_repositories(documents), rest.tolist(), sequence_length)
    remainders = np.flatnonzero(rest)
    full_documents = np.repeat(np.arange(len(full)), full)
    nth = np.arange(len(full_documents)) - np.repeat(np.cumsum(full) - full, full)
    sequence = np.concatenate(
        [np.array(sequences, dtype=np.int64)[remainders], n_sequences + np.arange(len(full_documents))]
    )
    document = np.concatenate([remainders, full_documents])
    offset = np.concatenate([full[remainders], nth]) * sequence_length
    length = np.concatenate([rest[remainders], np.full(len(full_documents), sequence_length)])
    firsts = np.flatnonzero(np.diff(sequence, prepend=-1))
    position = np.arange(len(sequence)) - np.repeat(firsts, np.diff(np.append(firsts, len(sequence))))
    return pa.table(
        {
            "sequence": sequence,
            "position": position,
            "doc_id": documents["doc_id"].combine_chunks().take(pa.array(document)),
            "doc_offset": offset,
            "length": length,
        }
    )


def _sequences(repositories: list[object], lengths: list[int], sequence_length: int) -> tuple[list[int], int]:
    """Return the sequence of each document in order, and the number of sequences."""
    sequences = []
    sequence = n_tokens = 0
    for number, length in enumerate(lengths):
        begins = number > 0 and repositories[number] != repositories[number - 1]
        if n_tokens and (begins or n_tokens + length > sequence_length):
            sequence, n_tokens = sequence + 1, 0
        sequences.append(sequence)
        n_tokens += length
    return sequences, sequence + (n_tokens > 0)


def _repositories(documents: pa.Table) -> list[object]:
    return list(zip(*(documents[name].to_pylist() for name in REPOSITORY), strict=True))
