"""A text as the rules see it: words, lines, paragraphs, n-grams and classes of characters.

This is the readable definition; `native/src/filters/text_signals` computes the same for millions of texts.

- A *word* is a maximal run of characters other than spaces, so punctuation belongs to the word it touches.
- A *core* is the part of a word from its first to its last letter or number: `(don't)` has the core `don't`,
  `--` has none. Rules that count words count cores.
- A *token* is the core of a word, or the whole word if it has none. n-grams consist of tokens.
- An *identifier* is a maximal run of letters, numbers and `_`: a word of a program.
- A *line* ends at a newline or at the end of the text; it is *blank* if it holds only spaces.
- A *paragraph* is a maximal run of lines without a blank one.
- Space, letter and number are Unicode's White_Space, Alphabetic and N*, small letter is Lowercase, from the
  tables of the native pass.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cache, cached_property, partial

from factory import _native

Ngram = tuple[str, ...]


@cache
def _boundaries(kind: str) -> list[int]:
    return _native.character_boundaries(kind)


def _is(kind: str, character: str) -> bool:
    return bisect_right(_boundaries(kind), ord(character)) % 2 == 1


is_letter = partial(_is, "letter")  # of any alphabet
is_lowercase = partial(_is, "lowercase")
is_terminal = partial(_is, "terminal")  # a mark that ends a sentence


@cache
def spaces() -> str:
    """Return all spaces as one string."""
    edges = _boundaries("space")
    return "".join(
        chr(point) for first, end in zip(edges[::2], edges[1::2], strict=True) for point in range(first, end)
    )


@cache
def _word() -> re.Pattern[str]:
    return re.compile(f"[^{re.escape(spaces())}]+")


class Text:
    """One text and its parts, each computed on first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __len__(self) -> int:
        """Return the number of characters (code points)."""
        return len(self.text)

    @cached_property
    def words(self) -> list[str]:
        return _word().findall(self.text)

    @cached_property
    def cores(self) -> list[str]:
        return [core for word in self.words if (core := _core(word))]

    @cached_property
    def tokens(self) -> list[str]:
        return [_core(word) or word for word in self.words]

    @cached_property
    def identifiers(self) -> list[str]:
        spaced = (c if c == "_" or _is("alphanumeric", c) else " " for c in self.text)
        return "".join(spaced).split()

    @cached_property
    def lines(self) -> list[str]:
        """Every line, including blank ones; a final newline begins no further line."""
        lines = self.text.split("\n")
        return lines if lines[-1] else lines[:-1]

    @cached_property
    def written_lines(self) -> list[str]:
        """The lines that are not blank, with the spaces around them."""
        return [line for line in self.lines if line.strip(spaces())]

    @cached_property
    def bare_lines(self) -> list[str]:
        """The lines that are not blank, without the spaces around them."""
        return [line.strip(spaces()) for line in self.written_lines]

    @cached_property
    def paragraphs(self) -> list[str]:
        paragraphs: list[list[str]] = [[]]
        for line in self.lines:
            if line.strip(spaces()):
                paragraphs[-1].append(line)
            elif paragraphs[-1]:
                paragraphs.append([])
        return ["\n".join(lines) for lines in paragraphs if lines]

    @cached_property
    def visible(self) -> str:
        """All characters other than spaces."""
        return "".join(self.words)

    def ngrams(self, n: int) -> list[Ngram]:
        """Return every run of `n` tokens, in order."""
        return list(zip(*(self.tokens[i:] for i in range(n)), strict=False))


def has_letter(word: str) -> bool:
    """Return whether `word` contains a letter of any alphabet."""
    return any(is_letter(character) for character in word)


def _core(word: str) -> str:
    positions = [i for i, character in enumerate(word) if _is("alphanumeric", character)]
    return word[positions[0] : positions[-1] + 1] if positions else ""


def ratio(part: int, whole: int) -> float | None:
    """Return the quotient, None for a `whole` of 0."""
    return part / whole if whole else None


def duplicate_share(parts: Sequence[str]) -> float | None:
    """Return the share of the parts that repeat an earlier one, None without parts."""
    return ratio(len(_duplicates(parts)), len(parts))


def duplicate_chars(parts: Sequence[str]) -> int:
    """Return the characters of the parts that repeat an earlier one."""
    return sum(map(len, _duplicates(parts)))


def _duplicates(parts: Sequence[str]) -> list[str]:
    seen: set[str] = set()
    found = []
    for part in parts:
        if part in seen:
            found.append(part)
        seen.add(part)
    return found


def top_ngram_chars(ngrams: Sequence[Ngram]) -> int:
    """Return length times occurrences of the most frequent n-gram, its tokens joined by a space.

    Among equally frequent n-grams the first to occur counts. An n-gram that occurs once repeats nothing: 0.
    """
    (ngram, occurrences) = Counter(ngrams).most_common(1)[0]
    return len(" ".join(ngram)) * occurrences if occurrences > 1 else 0


def repeated_ngram_chars(ngrams: Sequence[Ngram]) -> int:
    """Return the characters, without spaces, of n-grams that repeat an earlier one.

    The n-grams are taken from left to right and never overlap.
    """
    seen: set[Ngram] = set()
    at = chars = 0
    while at < len(ngrams):
        ngram = ngrams[at]
        if ngram in seen:
            chars += len("".join(ngram))
            at += len(ngram)
        else:
            seen.add(ngram)
            at += 1
    return chars
