"""A text as datatrove's filters see it: its words, lines, paragraphs, n-grams and their repetitions."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from operator import itemgetter

from factory.filters.rules.datatrove.tokenizer import english, tables
from factory.filters.text import Text

PARAGRAPH_END = re.compile(r"\n{2,}")
LINE_END = re.compile(r"\n+")


class DatatroveText:
    """One text and its parts, each computed on first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def words(self) -> list[str]:
        """spaCy's tokens without spaces; a punctuation mark is a word."""
        return english().words(self.text)

    @cached_property
    def written_words(self) -> list[str]:
        """The words that are not all punctuation."""
        marks = _punctuation()
        return [word for word in self.words if not marks.issuperset(word)]

    @cached_property
    def split_lines(self) -> list[str]:
        """Every line as `str.splitlines` cuts it, blank ones too."""
        return self.text.splitlines()

    @cached_property
    def pieces(self) -> list[str]:
        """The pieces between runs of newlines; a newline at either end adds an empty piece."""
        return LINE_END.split(self.text)

    @cached_property
    def paragraphs(self) -> list[str]:
        """The paragraphs, separated by two or more newlines."""
        return PARAGRAPH_END.split(self.text.strip())

    @cached_property
    def written_lines(self) -> list[str]:
        """The lines, as newlines separate them, that are not blank."""
        return [line for line in self.text.split("\n") if line.strip()]

    def top_ngram_chars(self, n: int) -> int | None:
        """Return length times occurrences of the most frequent n-gram, its words joined by a blank.

        Among equally frequent n-grams the first to occur counts, even if it occurs once.
        """
        words = self.words
        if len(words) < n:
            return None
        counts = Counter(zip(*(words[at:] for at in range(n)), strict=False))
        ngram, occurrences = max(counts.items(), key=itemgetter(1))
        return len(" ".join(ngram)) * occurrences

    def repeated_ngram_chars(self, n: int) -> int:
        """Return the characters of n-grams that repeat an earlier one, taken from left to right.

        n-grams are compared without the spaces between words: `ab c` repeats `a bc`.
        """
        ends = self._ends
        ngrams = [self._joined[start:end] for start, end in zip(ends, ends[n:], strict=False)]
        seen: set[str] = set()
        at = repeated = 0
        while at < len(ngrams):
            ngram = ngrams[at]
            if ngram in seen:
                repeated += len(ngram)
                at += n
            else:
                seen.add(ngram)
                at += 1
        return repeated

    @cached_property
    def _joined(self) -> str:
        return "".join(self.words)

    @cached_property
    def _ends(self) -> list[int]:
        """Where each word begins and the last one ends in `_joined`."""
        return [0, *accumulate(map(len, self.words))]


@lru_cache(maxsize=1)
def _of(text: str) -> DatatroveText:
    return DatatroveText(text)


def datatrove_text(text: Text) -> DatatroveText:
    """Return datatrove's view of `text`; all rules of one text share it."""
    return _of(text.text)


def end_marks() -> tuple[str, ...]:
    """Return the marks that end a line."""
    return tuple(tables()["end_marks"])


@cache
def _punctuation() -> frozenset[str]:
    return frozenset(tables()["punctuation"])
