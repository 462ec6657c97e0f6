"""A text as the rules see it: words, lines, paragraphs, n-grams and classes of characters.

This is the readable definition; `native/src/filters/text_signals` computes the same for millions of texts.

- A *word* is a maximal run of characters that are no space, so punctuation belongs to the word it touches.
- A *core* is a word between its first and its last letter or number: `(don't)` has the core `don't`, `--`
  has none. Cores are what is counted as words.
- A *token* is the core of a word, or the whole word where it has none. n-grams are made of tokens.
- An *identifier* is a maximal run of letters, numbers and `_`: a word as programs have them.
- A *line* ends at a newline or at the end of the text; it is *blank* if it holds spaces only.
- A *paragraph* is a maximal run of lines that are not blank.
- Space, letter and number are Unicode's White_Space, Alphabetic and N*, small letter is Lowercase, from the
  tables the native pass uses.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cache, cached_property

from factory import _native

Ngram = tuple[str, ...]


@cache
def _boundaries(kind: str) -> list[int]:
    return _native.character_boundaries(kind)


def _is(kind: str, character: str) -> bool:
    return bisect_right(_boundaries(kind), ord(character)) % 2 == 1


@cache
def spaces() -> str:
    """All characters that are spaces, as one string."""
    edges = _boundaries("space")
    return "".join(
        chr(point) for first, end in zip(edges[::2], edges[1::2], strict=True) for point in range(first, end)
    )


@cache
def _word() -> re.Pattern[str]:
    return re.compile(f"[^{re.escape(spaces())}]+")


class Text:
    """One text and its parts, each computed when first asked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __len__(self) -> int:
        """Characters (code points)."""
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
        """Every line, blank ones included; a newline at the very end begins no further line."""
        lines = self.text.split("\n")
        return lines if lines[-1] else lines[:-1]

    @cached_property
    def written_lines(self) -> list[str]:
        """The lines that are not blank, as they stand."""
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
        """The characters that are no space."""
        return "".join(self.words)

    def ngrams(self, n: int) -> list[Ngram]:
        """Every run of `n` tokens, in order."""
        return list(zip(*(self.tokens[i:] for i in range(n)), strict=False))


def has_letter(word: str) -> bool:
    """Whether `word` holds at least one letter of any alphabet."""
    return any(is_letter(character) for character in word)


def is_letter(character: str) -> bool:
    return _is("letter", character)


def is_lowercase(character: str) -> bool:
    """Whether `character` is a small letter."""
    return _is("lowercase", character)


def is_terminal(character: str) -> bool:
    """Whether a sentence ends with `character`."""
    return _is("terminal", character)


def _core(word: str) -> str:
    places = [i for i, character in enumerate(word) if _is("alphanumeric", character)]
    return word[places[0] : places[-1] + 1] if places else ""


def ratio(part: int, whole: int) -> float | None:
    """A quotient, or None where there is nothing to divide by."""
    return part / whole if whole else None


def duplicates(parts: Sequence[str]) -> list[str]:
    """The parts of which an equal stands before."""
    seen: set[str] = set()
    found = []
    for part in parts:
        if part in seen:
            found.append(part)
        seen.add(part)
    return found


def top_ngram_chars(ngrams: Sequence[Ngram]) -> int:
    """Length times occurrences of the most frequent n-gram, its tokens joined by a space.

    Among equally frequent ones the first to occur counts. An n-gram that occurs once repeats nothing: 0.
    """
    (ngram, occurrences) = Counter(ngrams).most_common(1)[0]
    return len(" ".join(ngram)) * occurrences if occurrences > 1 else 0


def repeated_ngram_chars(ngrams: Sequence[Ngram]) -> int:
    """Characters, without spaces, in n-grams that occurred before.

    They are taken from left to right, none overlapping another.
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
