"""The filters of Gopher as datatrove runs them on English: `GopherQualityFilter`, `GopherRepetitionFilter`.

The rules stand in datatrove's order, so the first rule that a document fails is datatrove's reason.
"""

from __future__ import annotations

from factory.filters.limits import AtLeast
from factory.filters.rule import TextRule, text_rule
from factory.filters.rules import gopher_quality, gopher_repetition
from factory.filters.rules.datatrove.text import datatrove_text
from factory.filters.text import Text, duplicate_chars, duplicate_share, ratio

DATATROVE = "datatrove 0.10.1"
STOP_WORDS = frozenset(word.decode() for word in gopher_quality.STOP_WORDS)
ELLIPSES = gopher_quality.ELLIPSES


@text_rule("words", DATATROVE, gopher_quality.word_count.limit, example="I am too small...")
def datatrove_word_count(text: Text) -> float:
    """spaCy's words that are not all punctuation."""
    return float(len(datatrove_text(text).written_words))


@text_rule("characters", DATATROVE, gopher_quality.mean_word_length.limit, example="I am " * 20)
def datatrove_mean_word_length(text: Text) -> float | None:
    """Mean length of spaCy's words that are not all punctuation."""
    words = datatrove_text(text).written_words
    return ratio(sum(map(len, words)), len(words))


@text_rule("per word", DATATROVE, gopher_quality.hash_to_word_ratio.limit, example="# comment " * 20)
def datatrove_hash_to_word_ratio(text: Text) -> float | None:
    """Signs `#` per spaCy word, punctuation marks included."""
    return ratio(text.text.count("#"), len(datatrove_text(text).words))


@text_rule("per word", DATATROVE, gopher_quality.ellipsis_to_word_ratio.limit, example="... comment " * 20)
def datatrove_ellipsis_to_word_ratio(text: Text) -> float | None:
    """Ellipses, `...` or `…`, per spaCy word, punctuation marks included."""
    return ratio(sum(map(text.text.count, ELLIPSES)), len(datatrove_text(text).words))


@text_rule("share", DATATROVE, gopher_quality.bullet_lines.limit, example="- milk\n- eggs\n• bread\n")
def datatrove_bullet_lines(text: Text) -> float | None:
    """Share of the lines, blank ones too, that begin with `•` or `-`."""
    lines = datatrove_text(text).split_lines
    return ratio(sum(line.lstrip().startswith(("•", "-")) for line in lines), len(lines))


@text_rule("share", DATATROVE, gopher_quality.ellipsis_lines.limit, example="Read more…\nAbout us\n")
def datatrove_ellipsis_lines(text: Text) -> float | None:
    """Share of the lines, blank ones too, that end with an ellipsis."""
    lines = datatrove_text(text).split_lines
    return ratio(sum(line.rstrip().endswith(ELLIPSES) for line in lines), len(lines))


@text_rule("share", DATATROVE, gopher_quality.alphabetic_words.limit, example="f(of, the), a.b(c) + d[e]")
def datatrove_alphabetic_words(text: Text) -> float | None:
    """Share of spaCy's words, punctuation marks included, that contain a letter."""
    words = datatrove_text(text).words
    return ratio(sum(word.isalpha() or any(map(str.isalpha, word)) for word in words), len(words))


@text_rule("words", DATATROVE, gopher_quality.stop_words.limit, example="The Team And That House")
def datatrove_stop_words(text: Text) -> float:
    """Distinct words among the, be, to, of, and, that, have, with, in small letters."""
    return float(len(STOP_WORDS.intersection(datatrove_text(text).words)))


@text_rule("characters", DATATROVE, AtLeast(1), example="")
def datatrove_chars(text: Text) -> float:
    """Characters; datatrove drops a text without any as `empty`."""
    return float(len(text))


@text_rule("share", DATATROVE, gopher_repetition.duplicate_paragraphs.limit, example="So it is.\n\n" * 4)
def datatrove_duplicate_paragraphs(text: Text) -> float | None:
    """Share of the paragraphs, cut at two or more newlines, that repeat an earlier one."""
    return duplicate_share(datatrove_text(text).paragraphs)


@text_rule("share", DATATROVE, gopher_repetition.duplicate_paragraph_chars.limit, example="So it is.\n\n" * 4)
def datatrove_duplicate_paragraph_chars(text: Text) -> float | None:
    """Share of the characters in paragraphs that repeat an earlier one."""
    return ratio(duplicate_chars(datatrove_text(text).paragraphs), len(text))


@text_rule("share", DATATROVE, gopher_repetition.duplicate_lines.limit, example="So it is.\n" * 4)
def datatrove_duplicate_lines(text: Text) -> float | None:
    """Share of the pieces between runs of newlines that repeat an earlier one."""
    return duplicate_share(datatrove_text(text).pieces)


@text_rule("share", DATATROVE, gopher_repetition.duplicate_line_chars.limit, example="So it is.\n" * 4)
def datatrove_duplicate_line_chars(text: Text) -> float | None:
    """Share of the characters in pieces between runs of newlines that repeat an earlier one."""
    return ratio(duplicate_chars(datatrove_text(text).pieces), len(text))


class DatatroveTopNgram(TextRule):
    """Length times occurrences of the most frequent n-gram of spaCy's words, over the length of the text.

    An n-gram that occurs once counts, so a text of two words is all repetition.
    """

    unit, paper = "share", DATATROVE

    def __init__(self, ours: gopher_repetition.TopNgram) -> None:
        self.n, self.name = ours.n, f"datatrove_{ours.name}"
        self.limit, self.example = ours.limit, ours.example

    def measure(self, text: Text) -> float | None:
        chars = datatrove_text(text).top_ngram_chars(self.n)
        return None if chars is None else ratio(chars, len(text))


class DatatroveDuplicateNgrams(TextRule):
    """Share of the characters in n-grams of spaCy's words that occurred before; no character counts twice."""

    unit, paper = "share", DATATROVE

    def __init__(self, ours: gopher_repetition.DuplicateNgrams) -> None:
        self.n, self.name = ours.n, f"datatrove_{ours.name}"
        self.limit, self.example = ours.limit, ours.example

    def measure(self, text: Text) -> float | None:
        return ratio(datatrove_text(text).repeated_ngram_chars(self.n), len(text))


QUALITY: tuple[TextRule, ...] = (
    datatrove_word_count,
    datatrove_mean_word_length,
    datatrove_hash_to_word_ratio,
    datatrove_ellipsis_to_word_ratio,
    datatrove_bullet_lines,
    datatrove_ellipsis_lines,
    datatrove_alphabetic_words,
    datatrove_stop_words,
)
REPETITION: tuple[TextRule, ...] = (
    datatrove_chars,
    datatrove_duplicate_paragraphs,
    datatrove_duplicate_paragraph_chars,
    datatrove_duplicate_lines,
    datatrove_duplicate_line_chars,
    *(
        DatatroveTopNgram(rule)
        for rule in gopher_repetition.RULES
        if isinstance(rule, gopher_repetition.TopNgram)
    ),
    *(
        DatatroveDuplicateNgrams(rule)
        for rule in gopher_repetition.RULES
        if isinstance(rule, gopher_repetition.DuplicateNgrams)
    ),
)
