"""The words that set a few texts apart from many: tf-idf of single words.

Words are the tokens that classifiers and word lists share (`factory.models.hashing`). Scripts written without
spaces have a token for each character, and pairs of neighbors are their words. How many texts have a word is
counted by a bucket of its hash, so the counts take 2 MB for any number of words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from factory import _native
from factory.models.hashing import pair
from spark_udfs.clusters.runs import groups

N_TERMS = 10
COUNTED = pa.schema([("bucket", pa.int32()), ("n", pa.int64())])
ALL_TEXTS = -1
"""The bucket of COUNTED that counts texts."""

_TERMS = pa.list_(pa.string())
_BITS = 18
N_BUCKETS = 1 << _BITS
_IDEOGRAPH_BYTES = 3  # in UTF-8; Thai, Lao, Burmese and Khmer letters have as many
_LENGTHS = range(2, 41)  # bytes of a word: a line of base64 tells nobody anything


@dataclass(frozen=True)
class DocumentFrequency:
    """How many of `n_texts` have a word of each of N_BUCKETS buckets."""

    n_texts: int
    counts: npt.NDArray[np.int64]


def top_terms(texts: Sequence[str], document_frequency: DocumentFrequency) -> list[str]:
    """Return at most N_TERMS words of `texts`, the largest tf-idf first, equal ones by the alphabet.

    The frequency of a word is one plus the logarithm of its count, added over the texts: a word that many of
    the texts have comes before one that a single text repeats.
    """
    frequencies: dict[str, float] = defaultdict(float)
    buckets: dict[str, int] = {}
    for text in texts:
        counts: dict[str, int] = defaultdict(int)
        for bucket, word in _words(text):
            counts[word] += 1
            buckets[word] = bucket
        for word, count in counts.items():
            frequencies[word] += 1 + float(np.log(count))
    n_texts = max(document_frequency.n_texts, 1)
    rarity = {
        word: float(np.log((1 + n_texts) / (1 + document_frequency.counts[bucket])))
        for word, bucket in buckets.items()
    }
    scores = {word: round(frequency * rarity[word], 9) for word, frequency in frequencies.items()}
    by_score = sorted((word for word in scores if scores[word] > 0), key=lambda word: (-scores[word], word))
    return by_score[:N_TERMS]


def texts_with_buckets(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of COUNTED for all batches of (text): the texts with a word of each bucket."""
    counts = np.zeros(N_BUCKETS, np.int64)
    n_texts = 0
    for batch in batches:
        for text in batch.column("text").to_pylist():
            n_texts += 1
            counts[list({bucket for bucket, _ in _words(text)})] += 1
    buckets = np.flatnonzero(counts)
    columns = [
        pa.array([ALL_TEXTS, *buckets.tolist()], pa.int32()),
        pa.array([n_texts, *counts[buckets].tolist()], pa.int64()),
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=COUNTED)


def terms_of_groups(
    batches: Iterator[pa.RecordBatch], *, group: str, document_frequency: DocumentFrequency
) -> Iterator[pa.RecordBatch]:
    """Yield (group, terms) for batches of (group, text), sorted by group."""
    for (number,), pieces in groups(batches, group):
        texts = [text for piece in pieces for text in piece.column("text").to_pylist()]
        columns = [pa.array([number], pa.int32()), pa.array([top_terms(texts, document_frequency)], _TERMS)]
        yield pa.RecordBatch.from_arrays(columns, names=[group, "terms"])


def _words(text: str) -> Iterator[tuple[int, str]]:
    """The bucket and the lower case of each word, and of neighbors in scripts written without spaces."""
    utf8 = text.encode()
    ideograph, ideograph_hash, ideograph_end = "", 0, 0
    for token, begin, end in _native.token_hashes(text):
        word = utf8[begin:end].decode().lower()
        if len(word) == 1 and end - begin >= _IDEOGRAPH_BYTES:
            if ideograph and ideograph_end == begin:
                yield pair(ideograph_hash, token) >> (64 - _BITS), ideograph + word
            ideograph, ideograph_hash, ideograph_end = word, token, end
        elif end - begin in _LENGTHS and not word.isdigit():
            yield token >> (64 - _BITS), word
