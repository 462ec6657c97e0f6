"""The four rule sets under our definitions, under datatrove's, and under any mixture of the two.

A switch replaces one of our definitions (of a word, a line, an end mark) by datatrove's. A filter without
switches is ours, with all switches it must be datatrove's. The cause of a disagreement is the smallest set of
switches that turns our verdict on a document into datatrove's.

Each filter is implemented here once, over definitions that it looks up, so that only the switched definition
differs. It runs in datatrove's environment, on the texts that both judged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from factory.filters.rule import TextRule
from factory.filters.rules import c4, fineweb, gopher_quality, gopher_repetition
from factory.filters.text import Text, duplicate_chars, duplicate_share, has_letter, is_terminal, ratio

Switches = frozenset[str]
Values = list[tuple[str, float | None]]  # by rule, in the order in which datatrove checks them

NONE: Switches = frozenset()
WORDS = "words: spaCy's tokens instead of runs between spaces"
LINES = "lines: as datatrove cuts them, blank ones counted, instead of lines that are not blank"
BLANKS = "spaces: Python's, which have four control characters more than Unicode's White_Space"
CASE = "stop words: as they are written, instead of in any case"
LETTERS = "letters: of category L, instead of Unicode's Alphabetic"
PARAGRAPHS = "paragraphs: cut at two newlines, instead of at lines that are blank"
ONCE = "top n-gram: one that occurs once counts as repeated"
JOINED = "repeated n-grams: compared without the spaces between words"
SENTENCES = "sentences: spaCy's, instead of end marks before a capital or a number"
CASES = "phrases: looked up in the small letters of Unicode, instead of ASCII"
MARKS = "end marks: of every script in Unicode, instead of those in use"
ENDS = "line ends: before the spaces are cut"
EMPTY = "no words or lines: rejected, instead of without a value"

REASONS = {
    "empty": "empty",
    "gopher_short_doc": "word_count",
    "gopher_long_doc": "word_count",
    "gopher_below_avg_threshold": "mean_word_length",
    "gopher_above_avg_threshold": "mean_word_length",
    "gopher_too_many_hashes": "hash_to_word_ratio",
    "gopher_too_many_ellipsis": "ellipsis_to_word_ratio",
    "gopher_too_many_bullets": "bullet_lines",
    "gopher_too_many_end_ellipsis": "ellipsis_lines",
    "gopher_below_alpha_threshold": "alphabetic_words",
    "gopher_enough_stop_words": "stop_words",
    "dup_para_frac": "duplicate_paragraphs",
    "dup_para_char_frac": "duplicate_paragraph_chars",
    "dup_line_frac": "duplicate_lines",
    "dup_line_char_frac": "duplicate_line_chars",
    **{f"top_{n}_gram": f"top_{n}_gram" for n in (2, 3, 4)},
    **{f"duplicated_{n}_n_grams": f"duplicate_{n}_grams" for n in range(5, 11)},
    "lorem_ipsum": "c4_lorem_ipsum",
    "curly_bracket": "c4_curly_brackets",
    "too_few_sentences": "c4_sentences",
    "line_punct_ratio": "line_punctuation",
    "short_line_ratio": "short_lines",
    "char_dup_ratio": "fineweb_duplicate_chars",
    "list_ratio": "newline_to_word_ratio",
}
"""datatrove's reasons -> names of our rules."""


@dataclass(frozen=True)
class Theirs:
    """datatrove's definitions, from its libraries."""

    words: Callable[[str], list[str]]
    n_sentences: Callable[[str], int]
    punctuation: frozenset[str]
    end_marks: tuple[str, ...]


@dataclass(frozen=True)
class Filter:
    """One of datatrove's filters: our rules for it, its switches, and its values under any of them."""

    rules: tuple[TextRule, ...]
    switches: tuple[str, ...]
    values: Callable[[str, Switches, Theirs], Values]

    def failing(self, text: str, on: Switches, theirs: Theirs) -> list[str]:
        """The rules that `text` fails with the switches `on`, in datatrove's order."""
        limits = {rule.name: rule.bounds for rule in self.rules}
        return [
            name
            for name, value in self.values(text, on, theirs)
            if name not in limits or limits[name].violated(value) is not None
        ]

    def causes(self, text: str, kept: bool, theirs: Theirs) -> tuple[str, ...] | None:
        """The fewest switches under which `text` is kept (or not, if not `kept`); None if there are none."""
        for n in range(len(self.switches) + 1):
            for on in combinations(self.switches, n):
                if (not self.failing(text, frozenset(on), theirs)) == kept:
                    return on
        return None


def _quality(text: str, on: Switches, theirs: Theirs) -> Values:
    seen = Text(text)
    words = theirs.words(text) if WORDS in on else seen.words
    counted = (
        [word for word in words if any(letter not in theirs.punctuation for letter in word)]
        if WORDS in on
        else seen.cores
    )
    lines = [line.strip() for line in text.splitlines()] if LINES in on else seen.bare_lines
    lettered = [any(map(str.isalpha, word)) if LETTERS in on else has_letter(word) for word in words]
    stop_words = {word.decode() for word in gopher_quality.STOP_WORDS}
    asked = counted if CASE in on else [word.encode().lower().decode() for word in counted]
    ellipses = sum(map(text.count, gopher_quality.ELLIPSES))
    return [
        ("word_count", float(len(counted))),
        ("mean_word_length", fmean(map(len, counted)) if counted else None),
        ("hash_to_word_ratio", ratio(text.count("#"), len(words))),
        ("ellipsis_to_word_ratio", ratio(ellipses, len(words))),
        ("bullet_lines", ratio(sum(line.startswith(("•", "-")) for line in lines), len(lines))),
        ("ellipsis_lines", ratio(sum(line.endswith(gopher_quality.ELLIPSES) for line in lines), len(lines))),
        ("alphabetic_words", ratio(sum(lettered), len(words))),
        ("stop_words", float(len(stop_words & set(asked)))),
    ]


def _repetition(text: str, on: Switches, theirs: Theirs) -> Values:
    seen = Text(text)
    paragraphs = re.split(r"\n{2,}", text.strip()) if PARAGRAPHS in on else seen.paragraphs
    lines = re.split("\n+", text) if LINES in on else seen.written_lines
    words = theirs.words(text) if WORDS in on else seen.tokens
    values: Values = [("empty", 1.0)] if EMPTY in on and not text else []
    values += [
        ("duplicate_paragraphs", duplicate_share(paragraphs)),
        ("duplicate_paragraph_chars", ratio(duplicate_chars(paragraphs), len(text))),
        ("duplicate_lines", duplicate_share(lines)),
        ("duplicate_line_chars", ratio(duplicate_chars(lines), len(text))),
    ]
    values += [(f"top_{n}_gram", _top(words, n, len(text), ONCE in on)) for n in (2, 3, 4)]
    return values + [
        (f"duplicate_{n}_grams", _repeated(words, n, len(text), JOINED in on)) for n in range(5, 11)
    ]


def _top(words: Sequence[str], n: int, characters: int, once: bool) -> float | None:
    if len(words) < n:
        return None
    ngrams = [" ".join(words[start : start + n]) for start in range(len(words) - n + 1)]
    [(ngram, occurrences)] = Counter(ngrams).most_common(1)
    return ratio(len(ngram) * occurrences if once or occurrences > 1 else 0, characters)


def _repeated(words: Sequence[str], n: int, characters: int, joined: bool) -> float | None:
    if len(words) < n:
        return None
    found: set[object] = set()
    at = repeated = 0
    while at + n <= len(words):
        run = words[at : at + n]
        ngram = "".join(run) if joined else tuple(run)
        if ngram in found:
            repeated += len("".join(run))
            at += n
        else:
            found.add(ngram)
            at += 1
    return ratio(repeated, characters)


def _c4(text: str, on: Switches, theirs: Theirs) -> Values:
    if LINES in on:
        lines = [(line, line.split()) for line in map(str.strip, text.splitlines())]
    else:
        lines = [(line, Text(line).words) for line in Text(text).bare_lines]
    citation = re.compile(c4.CITATION.pattern.replace("[0-9]", r"\d")) if CASES in on else c4.CITATION
    lower = str.lower if CASES in on else lambda line: line.encode().lower().decode()
    policies = [policy.decode() for policy in c4.POLICIES]
    sentences = lorem_ipsum = brackets = 0
    for line, words in lines:
        left = citation.sub("", line)
        small = lower(left)
        if not left.endswith(c4.END_MARKS) or left.endswith("...") or len(words) < c4.LEAST_WORDS:
            continue
        if max(map(len, words)) > c4.LONGEST_WORD:
            continue
        lorem_ipsum += "lorem ipsum" in small
        if "javascript" in small:
            continue
        brackets += "{" in left
        if not any(policy in small for policy in policies):
            sentences += theirs.n_sentences(left) if SENTENCES in on else c4.sentences(left)
    return [
        ("c4_lorem_ipsum", float(lorem_ipsum)),
        ("c4_curly_brackets", float(brackets)),
        ("c4_sentences", float(sentences)),
    ]


def _fineweb(text: str, on: Switches, theirs: Theirs) -> Values:
    seen = Text(text)
    written = [line for line in seen.lines if line.strip()] if BLANKS in on else seen.written_lines
    bare = Text("\n".join(written)).bare_lines
    ends = written if ENDS in on else bare
    terminated = sum(
        line.endswith(theirs.end_marks) if MARKS in on else is_terminal(line[-1:]) for line in ends
    )
    short = sum(len(line) <= fineweb.SHORT_LINE for line in written)
    repeated = duplicate_chars(written)
    words = theirs.words(text) if WORDS in on else seen.words
    values: Values = [("empty", 1.0)] if EMPTY in on and not written else []
    values += [
        ("line_punctuation", ratio(terminated, len(written))),
        ("short_lines", ratio(short, len(written))),
        ("fineweb_duplicate_chars", ratio(repeated, len(text.replace("\n", "")))),
        ("newline_to_word_ratio", ratio(text.count("\n"), len(words))),
    ]
    return values


FILTERS: dict[str, Filter] = {
    "gopher_repetition": Filter(
        gopher_repetition.RULES, (WORDS, LINES, PARAGRAPHS, ONCE, JOINED, EMPTY), _repetition
    ),
    "gopher_quality": Filter(gopher_quality.RULES, (WORDS, LINES, CASE, LETTERS), _quality),
    "c4": Filter(c4.RULES, (LINES, SENTENCES, CASES), _c4),
    "fineweb": Filter(fineweb.RULES, (WORDS, MARKS, ENDS, BLANKS, EMPTY), _fineweb),
}
