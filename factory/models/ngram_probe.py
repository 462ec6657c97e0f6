"""Runs of n tokens by their hashes: which of a set does a text hold, and where?

This is the readable definition; `native/src/models/ngram_probe.rs` probes millions of texts. With t1 ... tn
the hashes of the tokens (`factory.models.hashing`), the hash of an n-gram is the polynomial
t1 B^(n-1) + ... + tn modulo 2^64, xor n, through the finalizer of MurmurHash3. A text of fewer than n tokens
is one n-gram.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from factory.models.hashing import finalize, tokens

BASE = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class FoundNgram:
    """An n-gram of a text: its hash, and its characters `begin` to `end`."""

    hash: int
    begin: int
    end: int


def ngrams(text: str, n: int) -> list[FoundNgram]:
    """Return every run of `n` tokens of a text, in order."""
    of_text = tokens(text)
    length = min(n, len(of_text))
    runs = [of_text[first : first + length] for first in range(len(of_text) - length + 1)] if length else []
    return [FoundNgram(_hash([token.hash for token in run]), run[0].begin, run[-1].end) for run in runs]


def probe(text: str, hashes: Collection[int], n: int) -> list[FoundNgram]:
    """Return the runs of `n` tokens of a text that are among `hashes`."""
    return [ngram for ngram in ngrams(text, n) if ngram.hash in hashes]


def _hash(tokens_of_run: list[int]) -> int:
    total = 0
    for token in tokens_of_run:
        total = (total * BASE + token) & _MASK
    return finalize(total ^ len(tokens_of_run))
