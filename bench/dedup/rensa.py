"""The documents that rensa's deduplicator keeps, and their shingles; run in its environment.

Arguments as for `bench.dedup.program`. rensa takes tokens, so Python makes shingles of five words, as in its
examples; its deduplicator compares signatures of 128 values with all kept ones at .8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from rensa import RMinHashDeduplicator

from bench.dedup.program import run

WORD = re.compile(r"\w+")
WORDS = 5
THRESHOLD, VALUES = 0.8, 128


def shingles_of(text: str) -> set[str]:
    """The shingles of five words; a shorter text is one shingle."""
    words = WORD.findall(text.lower())
    return (
        {" ".join(words[start : start + WORDS]) for start in range(max(1, len(words) - WORDS + 1))}
        if words
        else set()
    )


def deduplicate(documents: Path) -> list[str]:
    """The kept documents, in the order of the files."""
    deduplicator = RMinHashDeduplicator(THRESHOLD, VALUES, True)
    kept = []
    for batch in _batches(documents):
        stays = deduplicator.add_pairs([(name, list(shingles_of(text))) for name, text in batch])
        kept += [name for (name, _), stay in zip(batch, stays, strict=True) if stay]
    return kept


def shingles(documents: Path) -> Iterator[tuple[str, np.ndarray]]:
    """The shingles of every document, hashed."""
    for batch in _batches(documents):
        for name, text in batch:
            hashes = [hash(shingle) for shingle in shingles_of(text)]  # one process, so one seed
            yield name, np.array(hashes, np.int64).astype(np.uint64)


def _batches(documents: Path) -> Iterator[list[tuple[str, str]]]:
    """Ids and texts of a thousand documents at a time."""
    for file in sorted(documents.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(1_000, columns=["doc_id", "text"]):
            names, texts = (batch[name].to_pylist() for name in ("doc_id", "text"))
            yield list(zip(names, texts, strict=True))


if __name__ == "__main__":
    run(deduplicate, shingles)
