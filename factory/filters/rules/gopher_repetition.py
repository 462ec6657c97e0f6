"""The repetition rules of Gopher: how much of a text repeats earlier parts of it?

From Rae et al., "Scaling Language Models: Methods, Analysis & Insights from Training Gopher" (2021), table
A1; n-grams are counted as in datatrove, except that an n-gram seen once repeats nothing.
"""

from __future__ import annotations

from factory.filters.limits import AtMost
from factory.filters.rule import TextRule, text_rule
from factory.filters.text import (
    Text,
    duplicate_chars,
    duplicate_share,
    ratio,
    repeated_ngram_chars,
    top_ngram_chars,
)

GOPHER = "Gopher, 2021"


@text_rule("share", GOPHER, AtMost(0.3), example="I am your father.\n" * 4)
def duplicate_lines(text: Text) -> float | None:
    """Share of the lines, without blank ones, that repeat an earlier one."""
    return duplicate_share(text.written_lines)


@text_rule("share", GOPHER, AtMost(0.3), example="I am your father.\n\n" * 4)
def duplicate_paragraphs(text: Text) -> float | None:
    """Share of the paragraphs that repeat an earlier one."""
    return duplicate_share(text.paragraphs)


@text_rule(
    "share",
    GOPHER,
    AtMost(0.2),
    example="I am groot.\nYou are a wizard.\nI am your father.\n" + f"{'x' * 40}.\n" * 2,
)
def duplicate_line_chars(text: Text) -> float | None:
    """Share of the characters in lines that repeat an earlier one."""
    return ratio(duplicate_chars(text.written_lines), len(text))


@text_rule(
    "share",
    GOPHER,
    AtMost(0.2),
    example="I am groot.\n\nYou are a wizard.\n\nI am your father.\n\n" + f"{'x' * 30}.\n\n" * 2,
)
def duplicate_paragraph_chars(text: Text) -> float | None:
    """Share of the characters in paragraphs that repeat an earlier one."""
    return ratio(duplicate_chars(text.paragraphs), len(text))


class TopNgram(TextRule):
    """Length times occurrences of the most frequent n-gram, over the length of the text.

    Overlapping occurrences all count, so a text of one word repeated exceeds 1.
    """

    unit, paper = "share", GOPHER

    def __init__(self, n: int, high: float, example: str) -> None:
        self.n, self.name = n, f"top_{n}_gram"
        self.limit, self.example = AtMost(high), example

    def measure(self, text: Text) -> float | None:
        ngrams = text.ngrams(self.n)
        return ratio(top_ngram_chars(ngrams), len(text)) if ngrams else None


class DuplicateNgrams(TextRule):
    """Share of the characters in n-grams that occurred before; no character is counted twice."""

    unit, paper = "share", GOPHER

    def __init__(self, n: int, high: float) -> None:
        self.n, self.name = n, f"duplicate_{n}_grams"
        self.limit, self.example = AtMost(high), "please accept all of our very tasty " * 5

    def measure(self, text: Text) -> float | None:
        ngrams = text.ngrams(self.n)
        return ratio(repeated_ngram_chars(ngrams), len(text)) if ngrams else None


RULES: tuple[TextRule, ...] = (
    duplicate_lines,
    duplicate_paragraphs,
    duplicate_line_chars,
    duplicate_paragraph_chars,
    TopNgram(2, 0.20, "I am Frank, I am Frank, I am Frank"),
    TopNgram(3, 0.18, "I am Frank, you are John. I am Frank, you are John."),
    TopNgram(4, 0.16, "I am Frank, you are John. I am Frank, you are John."),
    DuplicateNgrams(5, 0.15),
    DuplicateNgrams(6, 0.14),
    DuplicateNgrams(7, 0.13),
    DuplicateNgrams(8, 0.12),
    DuplicateNgrams(9, 0.11),
    DuplicateNgrams(10, 0.10),
)
