"""The filters of C4 and FineWeb as datatrove runs them on English: `C4QualityFilter`, `FineWebQualityFilter`.

datatrove's C4 filter also edits: later filters see only the lines that it kept. Rules here judge unedited
documents.
"""

from __future__ import annotations

import re
from functools import lru_cache

from factory.filters.limits import AtLeast
from factory.filters.rule import TextRule, text_rule
from factory.filters.rules import c4, fineweb
from factory.filters.rules.datatrove.gopher import DATATROVE
from factory.filters.rules.datatrove.text import datatrove_text, end_marks
from factory.filters.rules.datatrove.tokenizer import english
from factory.filters.text import Text, duplicate_chars, ratio

CITATION = re.compile(r"\[\d*]|\[edit]|\[citation needed]")  # a digit of any script
POLICIES = tuple(policy.decode() for policy in c4.POLICIES)


@lru_cache(maxsize=1)
def whole_lines(text: str) -> list[str]:
    """Return the lines with an end mark and enough words, none too long, without citations."""
    found = []
    for line in map(str.strip, text.splitlines()):
        words = line.split()
        left = CITATION.sub("", line)
        ends = left.endswith(c4.END_MARKS) and not left.endswith("...")
        if ends and len(words) >= c4.LEAST_WORDS and max(map(len, words)) <= c4.LONGEST_WORD:
            found.append(left)
    return found


def without_javascript(lines: list[str]) -> list[str]:
    """Return the lines that do not mention javascript, in any case."""
    return [line for line in lines if "javascript" not in line.lower()]


@text_rule("lines", DATATROVE, c4.c4_lorem_ipsum.limit, example="Lorem ipsum dolor sit amet.\n")
def datatrove_c4_lorem_ipsum(text: Text) -> float:
    """Whole-sentence lines that say `lorem ipsum`, in any case."""
    return float(sum("lorem ipsum" in line.lower() for line in whole_lines(text.text)))


@text_rule("lines", DATATROVE, c4.c4_curly_brackets.limit, example="Write {name} where the name belongs.\n")
def datatrove_c4_curly_brackets(text: Text) -> float:
    """Whole-sentence lines with a `{` that do not mention javascript."""
    return float(sum("{" in line for line in without_javascript(whole_lines(text.text))))


@text_rule("sentences", DATATROVE, c4.c4_sentences.limit, example="It rains. It pours.\nRead more\n")
def datatrove_c4_sentences(text: Text) -> float:
    """Sentences, by spaCy's sentencizer, in the lines that C4 would keep."""
    lines = without_javascript(whole_lines(text.text))
    kept = [line for line in lines if not any(policy in line.lower() for policy in POLICIES)]
    return float(sum(map(english().n_sentences, kept)))


@text_rule("lines", DATATROVE, AtLeast(1), example=" \n\n")
def datatrove_written_lines(text: Text) -> float:
    """Lines that are not blank; datatrove drops a text without any as `empty`."""
    return float(len(datatrove_text(text).written_lines))


@text_rule("share", DATATROVE, fineweb.line_punctuation.limit, example="Home\nProducts\nAbout us \n")
def datatrove_line_punctuation(text: Text) -> float | None:
    """Share of the lines, without blank ones, whose last character ends a sentence in any script."""
    lines = datatrove_text(text).written_lines
    marks = end_marks()
    return ratio(sum(line.endswith(marks) for line in lines), len(lines))


@text_rule("share", DATATROVE, fineweb.short_lines.limit, example="Home.\nProducts.\nAbout us.\n")
def datatrove_short_lines(text: Text) -> float | None:
    """Share of the lines, without blank ones, that have at most 30 characters."""
    lines = datatrove_text(text).written_lines
    return ratio(sum(len(line) <= fineweb.SHORT_LINE for line in lines), len(lines))


@text_rule("share", DATATROVE, fineweb.fineweb_duplicate_chars.limit, example="Read more.\nRead more.\n")
def datatrove_fineweb_duplicate_chars(text: Text) -> float | None:
    """Share of the characters, without newlines, in lines that repeat an earlier one."""
    chars = len(text) - text.text.count("\n")
    return ratio(duplicate_chars(datatrove_text(text).written_lines), chars)


@text_rule("per word", DATATROVE, fineweb.newline_to_word_ratio.limit, example="Fresh milk\nBrown eggs\n")
def datatrove_newline_to_word_ratio(text: Text) -> float | None:
    """Newlines per spaCy word, punctuation marks included."""
    return ratio(text.text.count("\n"), len(datatrove_text(text).words))


C4: tuple[TextRule, ...] = (datatrove_c4_lorem_ipsum, datatrove_c4_curly_brackets, datatrove_c4_sentences)
FINEWEB: tuple[TextRule, ...] = (
    datatrove_written_lines,
    datatrove_line_punctuation,
    datatrove_short_lines,
    datatrove_fineweb_duplicate_chars,
    datatrove_newline_to_word_ratio,
)
