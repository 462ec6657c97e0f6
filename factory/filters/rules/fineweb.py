"""The rules of FineWeb: did somebody write the lines of a text, or are they a list, a menu, a table?

From Penedo et al., "The FineWeb Datasets: Decanting the Web for the Finest Text Data at Scale" (2024),
section 3.6, with the limits of datatrove, which built that data set and applies them after Gopher's and C4's.
"""

from __future__ import annotations

from factory.filters.limits import AtLeast, AtMost
from factory.filters.rule import TextRule, text_rule
from factory.filters.text import Text, duplicate_chars, is_terminal, ratio

FINEWEB = "FineWeb, 2024"
SHORT_LINE = 30  # characters


@text_rule(
    "share", FINEWEB, AtLeast(0.12), example="Home\nProducts\nWe sell what is good,\nsend it,\nAbout us\n"
)
def line_punctuation(text: Text) -> float | None:
    """Share of the lines, without blank ones, that end in a mark that ends a sentence."""
    return ratio(sum(is_terminal(line[-1]) for line in text.bare_lines), len(text.bare_lines))


@text_rule("share", FINEWEB, AtMost(0.67), example="Home.\nProducts.\nAbout us.\n")
def short_lines(text: Text) -> float | None:
    """Share of the lines, without blank ones, that have at most 30 characters."""
    short = sum(len(line) <= SHORT_LINE for line in text.written_lines)
    return ratio(short, len(text.written_lines))


@text_rule("share", FINEWEB, AtMost(0.01), example="Read more.\nIt rained all day long.\nRead more.\n")
def fineweb_duplicate_chars(text: Text) -> float | None:
    """Share of the characters, without newlines, in lines that repeat an earlier one."""
    return ratio(duplicate_chars(text.written_lines), sum(map(len, text.lines)))


@text_rule("per word", FINEWEB, AtMost(0.3), example="Fresh milk\nBrown eggs\nRye bread\n")
def newline_to_word_ratio(text: Text) -> float | None:
    """Newlines per word."""
    return ratio(text.text.count("\n"), len(text.words))


RULES: tuple[TextRule, ...] = (line_punctuation, short_lines, fineweb_duplicate_chars, newline_to_word_ratio)
