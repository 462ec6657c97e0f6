"""The quality rules of Gopher: is a text made of words, written for people to read?

From Rae et al., "Scaling Language Models: Methods, Analysis & Insights from Training Gopher" (2021),
appendix A.1.1; limits as in datatrove. Tools cut words differently: see `docs/filters.md`.
"""

from __future__ import annotations

from factory.filters.limits import AtLeast, AtMost, Between
from factory.filters.rule import TextRule, text_rule
from factory.filters.text import Text, has_letter, ratio

GOPHER = "Gopher, 2021"
STOP_WORDS = frozenset({b"the", b"be", b"to", b"of", b"and", b"that", b"have", b"with"})
ELLIPSES = ("...", "…")


@text_rule("words", GOPHER, Between(50, 100_000), example="I am too small...")
def word_count(text: Text) -> float:
    """Words with at least one letter or number."""
    return float(len(text.cores))


@text_rule("characters", GOPHER, Between(3, 10), example="I am " * 20)
def mean_word_length(text: Text) -> float | None:
    """Mean length of the words without the punctuation around them."""
    return ratio(sum(map(len, text.cores)), len(text.cores))


@text_rule("per word", GOPHER, AtMost(0.1), example="# comment " * 20)
def hash_to_word_ratio(text: Text) -> float | None:
    """Signs `#` per word."""
    return ratio(text.text.count("#"), len(text.words))


@text_rule("per word", GOPHER, AtMost(0.1), example="... comment " * 20)
def ellipsis_to_word_ratio(text: Text) -> float | None:
    """Ellipses, `...` or `…`, per word."""
    return ratio(sum(map(text.text.count, ELLIPSES)), len(text.words))


@text_rule("share", GOPHER, AtMost(0.9), example="- milk\n- eggs\n\n• bread\n")
def bullet_lines(text: Text) -> float | None:
    """Share of the lines, without blank ones, that begin with `•` or `-`."""
    return ratio(sum(line.startswith(("•", "-")) for line in text.bare_lines), len(text.bare_lines))


@text_rule("share", GOPHER, AtMost(0.3), example="Ten reasons to stay...\nRead more…\nAbout us\n")
def ellipsis_lines(text: Text) -> float | None:
    """Share of the lines, without blank ones, that end with an ellipsis."""
    return ratio(sum(line.endswith(ELLIPSES) for line in text.bare_lines), len(text.bare_lines))


@text_rule("share", GOPHER, AtLeast(0.8), example="1 2 3 4 of 7 8 9 ( ) | apples")
def alphabetic_words(text: Text) -> float | None:
    """Share of the words that contain a letter."""
    return ratio(sum(map(has_letter, text.words)), len(text.words))


@text_rule("words", GOPHER, AtLeast(2), example="Home Products Contact the Team")
def stop_words(text: Text) -> float:
    """Distinct words among the, be, to, of, and, that, have, with; ASCII capitals count as small letters."""
    return float(len(STOP_WORDS & {core.encode().lower() for core in text.cores}))


RULES: tuple[TextRule, ...] = (
    word_count,
    mean_word_length,
    hash_to_word_ratio,
    ellipsis_to_word_ratio,
    bullet_lines,
    ellipsis_lines,
    alphabetic_words,
    stop_words,
)
