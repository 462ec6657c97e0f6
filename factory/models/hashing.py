"""The hashed words of a text, which classifiers and word lists share.

This is the readable definition; `native/src/models/tokens.rs` and `linear.rs` compute the same for millions
of texts.

- A *token* is a maximal run of letters, numbers and `_`, in lower case, with the marks on them. A character
  of a script that is written without spaces (Chinese, Japanese, Thai, Lao, Burmese, Khmer) is a token by
  itself. A soft hyphen or a joiner inside a run is not seen: the word is the same without it.
- The *hash* of a token is FNV-1a of its UTF-8 bytes, 64 bits, through the finalizer of MurmurHash3.
- The *features* of a text are the buckets of its distinct tokens and pairs of neighboring tokens: the first
  bits of their hashes. Each has the value one over the root of their number, so that long and short texts
  have vectors of the same length (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning",
  2009, without their signs).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from factory import _native

OUTSIDE, WORD, ALONE, MARK, UNSEEN = range(5)  # classes of characters
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Token:
    """A token of a text, in lower case, and its characters `begin` to `end`."""

    word: str
    begin: int
    end: int

    @property
    def hash(self) -> int:
        """64 bits."""
        state = 0xCBF29CE484222325
        for byte in self.word.encode():
            state = ((state ^ byte) * 0x100000001B3) & _MASK
        return finalize(state)


def tokens(text: str) -> list[Token]:
    """The tokens of a text, in order."""
    tokens_of_text: list[Token] = []
    begin = 0
    for end, character in enumerate(f"{text} "):
        kind = kind_of(character)
        if kind == WORD or (kind in (MARK, UNSEEN) and begin < end):
            continue
        if begin < end:
            tokens_of_text.append(Token(lower_case(visible(text[begin:end])), begin, end))
        if kind == ALONE:
            tokens_of_text.append(Token(lower_case(character), end, end + 1))
        begin = end + 1
    return tokens_of_text


def features(text: str, bits: int) -> set[int]:
    """The buckets, of 2^`bits`, of a text's distinct tokens and pairs of tokens."""
    hashes = [token.hash for token in tokens(text)]
    pairs = [pair(*neighbors) for neighbors in pairwise(hashes)]
    return {ngram >> (64 - bits) for ngram in (*hashes, *pairs)}


def pair(first: int, second: int) -> int:
    """The hash of two neighboring tokens, from theirs."""
    return finalize(((first * 0x9E3779B97F4A7C15) & _MASK) ^ second)


def finalize(state: int) -> int:
    """The finalizer of MurmurHash3, on 64 bits: every bit of the result depends on every bit of `state`."""
    state = ((state ^ (state >> 33)) * 0xFF51AFD7ED558CCD) & _MASK
    state = ((state ^ (state >> 33)) * 0xC4CEB9FE1A85EC53) & _MASK
    return state ^ (state >> 33)


@cache
def _classes() -> tuple[list[int], list[int]]:
    changes = _native.token_classes()
    return [first for first, _ in changes], [kind for _, kind in changes]


def kind_of(character: str) -> int:
    """The class of a character: OUTSIDE, WORD, ALONE, MARK or UNSEEN."""
    first_points, kinds = _classes()
    return kinds[bisect_right(first_points, ord(character)) - 1]


def visible(text: str) -> str:
    """The text without soft hyphens, joiners and variation selectors."""
    return "".join(character for character in text if kind_of(character) != UNSEEN)


@cache
def _lower_cases() -> dict[int, str]:
    return {ord(character): lower for character, lower in _native.lower_cases()}


def lower_case(word: str) -> str:
    """The word in lower case, character by character, by the tables of the native pass."""
    return word.translate(_lower_cases())
