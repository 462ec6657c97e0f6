"""The readable definition of n-gram models (`factory/models/ngram.py`), which the kernels must equal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import log2

from factory.models.ngram import N_BYTE_VALUES, ORDER, PIECE, Merge

Ngram = tuple[int, ...]


def tokens(text: str, merges: Sequence[Merge]) -> list[int]:
    """The tokens of a text."""
    return [token for piece in PIECE.findall(text) for token in _merged(piece, merges)]


def _merged(piece: str, merges: Sequence[Merge]) -> list[int]:
    of_piece = list(piece.encode())
    ranks = {merge: rank for rank, merge in enumerate(merges)}
    while ranks_of_pairs := [ranks[pair] for pair in pairwise(of_piece) if pair in ranks]:
        rank, shorter = min(ranks_of_pairs), []
        waiting = iter(of_piece)
        for token in waiting:
            shorter.append(token)
            if tuple(shorter[-2:]) == merges[rank]:
                shorter[-2:] = [N_BYTE_VALUES + rank]
        of_piece = shorter
    return of_piece


def counts(texts: Iterable[Sequence[int]], least: int = 1) -> Counter[Ngram]:
    """How often each n-gram occurs in texts of tokens; of three tokens and more, at least `least` times."""
    every: Counter[Ngram] = Counter()
    for text in texts:
        for length in range(1, ORDER + 1):
            every.update(zip(*(text[start:] for start in range(length)), strict=False))
    return Counter({ngram: count for ngram, count in every.items() if len(ngram) < 3 or count >= least})


class WittenBell:
    """The probabilities of tokens, from counts of n-grams."""

    def __init__(self, ngrams: Mapping[Ngram, int], vocabulary: int) -> None:
        self.ngrams, self.vocabulary = ngrams, vocabulary

    @cached_property
    def _followers(self) -> Mapping[Ngram, list[int]]:
        followers: dict[Ngram, list[int]] = defaultdict(list)
        for ngram, count in self.ngrams.items():
            followers[ngram[:-1]].append(count)
        return followers

    def probability(self, token: int, context: Ngram) -> float:
        """P(token | context)."""
        below = self.probability(token, context[1:]) if context else 1 / self.vocabulary
        followers = self._followers.get(context, [])
        if not followers:
            return below
        n_tokens, n_distinct = sum(followers), len(followers)
        return (self.ngrams.get((*context, token), 0) + n_distinct * below) / (n_tokens + n_distinct)

    def bits(self, text: Sequence[int]) -> list[float]:
        """The bits of each token of a text."""
        contexts = (tuple(text[max(0, end - ORDER + 1) : end]) for end in range(len(text)))
        return [
            -log2(self.probability(token, context)) for token, context in zip(text, contexts, strict=True)
        ]
