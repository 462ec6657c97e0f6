"""Counts of n-grams, and bits per byte by the models of languages, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from factory import _native

Merge = tuple[int, int]


def count(
    batches: Iterator[pa.RecordBatch], merges: Mapping[str, Sequence[Merge]]
) -> Iterator[pa.RecordBatch]:
    """Yield (language, ngram, count) of (language, text): of the longest n-gram at each position.

    `merges` has the merges of each language.
    """
    counters = {language: _native.NgramCounter(list(pairs)) for language, pairs in merges.items()}
    for batch in batches:
        for language, counter in counters.items():
            counter.add(batch.column(1).filter(pc.equal(batch.column(0), language)))
    for language, counter in counters.items():
        counts = counter.counts()
        names = pa.repeat(language, len(counts))
        yield pa.RecordBatch.from_arrays([names, *counts.columns], ["language", "ngram", "count"])


@lru_cache(maxsize=4)
def load(models: bytes) -> dict[str, _native.NgramModel]:
    """Return the models by language of a table NGRAM_MODEL, given as an Arrow stream."""
    rows = pa.ipc.open_stream(models).read_all()
    return {
        rows["language"][number].as_py(): _native.NgramModel(
            as_pairs(rows["merges"][number].as_py()),
            rows["ngrams"][number].values,
            rows["counts"][number].values,
        )
        for number in range(len(rows))
    }


def as_pairs(merges: Sequence[int]) -> list[Merge]:
    """Return merges as pairs, from one list of their tokens."""
    return list(zip(merges[::2], merges[1::2], strict=True))
