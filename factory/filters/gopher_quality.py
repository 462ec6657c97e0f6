"""The quality rules of Gopher: is a text made of words, written for people to read?

From Rae et al., "Scaling Language Models: Methods, Analysis & Insights from Training Gopher" (2021),
appendix A.1.1; limits as in datatrove. Tools cut words differently: see `docs/filters.md`.
"""

from __future__ import annotations

from factory.filters.rule import AtLeast, AtMost, Between, TextRule
from factory.filters.text import Text, has_letter, ratio

GOPHER = "Gopher, 2021"
STOP_WORDS = frozenset({b"the", b"be", b"to", b"of", b"and", b"that", b"have", b"with"})
ELLIPSES = ("...", "…")


class WordCount(TextRule):
    """Words with at least one letter or number."""

    name, unit, paper = "word_count", "words", GOPHER
    limit = Between(50, 100_000)
    example = "I am too small..."

    def measure(self, text: Text) -> float | None:
        return float(len(text.cores))


class MeanWordLength(TextRule):
    """Mean length of the words without the punctuation around them."""

    name, unit, paper = "mean_word_length", "characters", GOPHER
    limit = Between(3, 10)
    example = "I am " * 20

    def measure(self, text: Text) -> float | None:
        return ratio(sum(map(len, text.cores)), len(text.cores))


class HashToWordRatio(TextRule):
    """Signs `#` per word."""

    name, unit, paper = "hash_to_word_ratio", "per word", GOPHER
    limit = AtMost(0.1)
    example = "# comment " * 20

    def measure(self, text: Text) -> float | None:
        return ratio(text.text.count("#"), len(text.words))


class EllipsisToWordRatio(TextRule):
    """Ellipses, `...` or `…`, per word."""

    name, unit, paper = "ellipsis_to_word_ratio", "per word", GOPHER
    limit = AtMost(0.1)
    example = "... comment " * 20

    def measure(self, text: Text) -> float | None:
        return ratio(sum(map(text.text.count, ELLIPSES)), len(text.words))


class BulletLines(TextRule):
    """Share of the lines, without blank ones, that begin with `•` or `-`."""

    name, unit, paper = "bullet_lines", "share", GOPHER
    limit = AtMost(0.9)
    example = "- milk\n- eggs\n\n• bread\n"

    def measure(self, text: Text) -> float | None:
        return ratio(sum(line.startswith(("•", "-")) for line in text.bare_lines), len(text.bare_lines))


class EllipsisLines(TextRule):
    """Share of the lines, without blank ones, that end with an ellipsis."""

    name, unit, paper = "ellipsis_lines", "share", GOPHER
    limit = AtMost(0.3)
    example = "Ten reasons to stay...\nRead more…\nAbout us\n"

    def measure(self, text: Text) -> float | None:
        return ratio(sum(line.endswith(ELLIPSES) for line in text.bare_lines), len(text.bare_lines))


class AlphabeticWords(TextRule):
    """Share of the words that contain a letter."""

    name, unit, paper = "alphabetic_words", "share", GOPHER
    limit = AtLeast(0.8)
    example = "1 2 3 4 of 7 8 9 ( ) | apples"

    def measure(self, text: Text) -> float | None:
        return ratio(sum(map(has_letter, text.words)), len(text.words))


class StopWords(TextRule):
    """Distinct words among the, be, to, of, and, that, have, with; ASCII capitals count as small letters."""

    name, unit, paper = "stop_words", "words", GOPHER
    limit = AtLeast(2)
    example = "Home Products Contact the Team"

    def measure(self, text: Text) -> float | None:
        return float(len(STOP_WORDS & {core.encode().lower() for core in text.cores}))


RULES: tuple[TextRule, ...] = (
    WordCount(),
    MeanWordLength(),
    HashToWordRatio(),
    EllipsisToWordRatio(),
    BulletLines(),
    EllipsisLines(),
    AlphabeticWords(),
    StopWords(),
)
