"""Every pair of documents whose exact weighted Jaccard reaches a limit, found without signatures.

The prefix filter (Chaudhuri, Ganti and Kaushik 2006; Xiao and others 2008) loses no pair. Order the tokens of
every document, rarest first. A document's prefix has the tokens at which the remaining weights still add up
to `least` of the document's weight. Similar documents overlap by at least `least` of either's weight, and the
whole overlap lies at or after the first token they share, so that token is in both prefixes. Documents that
share a token of their prefixes, and whose weights are close enough, are compared in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench.bags import Bags

_ROUNDING = 1e-9  # of a similarity
_SLACK = 1e-3  # of a weight; a running sum of millions of weights errs by less


@dataclass(frozen=True)
class Alike:
    """Pairs of similar documents, sorted: `left` < `right`, and their similarity."""

    left: np.ndarray
    right: np.ndarray
    similarity: np.ndarray

    def __len__(self) -> int:
        return len(self.left)

    def pairs(self) -> set[tuple[int, int]]:
        """The pairs without their similarity."""
        return set(zip(self.left.tolist(), self.right.tolist(), strict=True))

    def at(self, least: float) -> Alike:
        """The pairs that reach `least`."""
        chosen = self.similarity >= least
        return Alike(self.left[chosen], self.right[chosen], self.similarity[chosen])

    def of(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The similarity of each pair (one, other): 1 for a document and itself, nan if below the limit."""
        n = int(max([*self.right[-1:], *one, *other, 0])) + 1
        known = self.left * n + self.right  # ascending, since the pairs are sorted
        wanted = np.minimum(one, other) * n + np.maximum(one, other)
        place = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
        found = np.full(len(wanted), np.nan)
        if len(known):
            there = known[place] == wanted
            found[there] = self.similarity[place[there]]
        found[one == other] = 1.0
        return found


def alike(bags: Bags, least: float) -> Alike:
    """All pairs of at least `least` > 0. A document without tokens is in no pair."""
    tokens, weights, offsets = bags.tokens, bags.weights, bags.offsets
    nothing = Alike(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    if not len(tokens):
        return nothing
    lengths = np.diff(offsets)
    document = np.repeat(np.arange(len(lengths)), lengths)
    _, numbers, frequencies = np.unique(tokens, return_inverse=True, return_counts=True)
    rarity = np.empty(len(frequencies), np.int64)
    rarity[np.argsort(frequencies, kind="stable")] = np.arange(len(frequencies))
    tokens = rarity[numbers]
    order = np.lexsort((tokens, document))
    tokens, weights = tokens[order], weights[order]
    sizes = np.bincount(document, weights, len(lengths))
    before = np.cumsum(weights) - weights  # weight of all tokens before one, in any document
    left_over = (before[offsets[:-1].clip(max=len(before) - 1)] + sizes)[document] - before
    prefix = left_over >= least * sizes[document] - _SLACK
    prefix &= (np.bincount(tokens[prefix], minlength=len(frequencies)) > 1)[tokens]  # in two prefixes
    numbered = _Bags(tokens, weights, offsets, sizes, len(frequencies))
    found = [*_compared(numbered, document[prefix], tokens[prefix], least)]
    if not found:
        return nothing
    one, other, similarity = (np.concatenate(column) for column in zip(*found, strict=True))
    left, right = np.minimum(one, other), np.maximum(one, other)
    order = np.lexsort((right, left))
    return Alike(left[order], right[order], similarity[order])


@dataclass(frozen=True)
class _Bags(Bags):
    sizes: np.ndarray
    vocabulary: int


def _compared(
    bags: _Bags, documents: np.ndarray, tokens: np.ndarray, least: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(one, others, similarities) of each document and the smaller ones that share a token of its prefix.

    (documents, tokens) are the prefixes, by document.
    """
    # Numbered by size, so that documents too small to compare come first in every list.
    place = np.empty(len(bags.sizes), np.int64)
    by_size = np.argsort(bags.sizes, kind="stable")
    place[by_size] = np.arange(len(by_size))
    order = np.lexsort((place[documents], tokens))
    listed = place[documents[order]]
    ends = np.searchsorted(tokens[order], np.arange(bags.vocabulary + 1))
    starts = np.searchsorted(documents, np.arange(len(bags.sizes) + 1))
    sorted_sizes = bags.sizes[by_size]
    at = np.zeros(bags.vocabulary)
    for one in range(len(bags.sizes)):
        own = place[one]
        smallest = np.searchsorted(sorted_sizes, (least - _ROUNDING) * bags.sizes[one])
        lists = []
        for token in tokens[starts[one] : starts[one + 1]]:
            members = listed[ends[token] : ends[token + 1]]
            lists.append(members[np.searchsorted(members, smallest) : np.searchsorted(members, own)])
        if not sum(map(len, lists)):
            continue
        others = by_size[np.unique(np.concatenate(lists))]
        part = slice(bags.offsets[one], bags.offsets[one + 1])
        at[bags.tokens[part]] = bags.weights[part]
        overlaps = _overlaps(bags, at, others)
        at[bags.tokens[part]] = 0
        similarities = overlaps / (bags.sizes[one] + bags.sizes[others] - overlaps)
        near = similarities >= least - _ROUNDING
        if near.any():
            yield np.full(near.sum(), one), others[near], similarities[near]


def _overlaps(bags: _Bags, at: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The sum of minima of the weights `at` and those of each of `others`, none of which is empty."""
    lengths = bags.offsets[others + 1] - bags.offsets[others]
    begins = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) + np.repeat(bags.offsets[others] - begins, lengths)
    return np.add.reduceat(np.minimum(at[bags.tokens[places]], bags.weights[places]), begins)
