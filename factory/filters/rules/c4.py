"""The rules of C4: does a text hold prose in whole sentences, and no placeholder or program?

From Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer"
(2020), section 2.2, with what its reference code adds (citations, policies, the longest word). C4 cuts lines
out of a document. A filter here never edits text, so the rules measure what C4 would leave: a document that
keeps enough sentences stays unchanged.
"""

from __future__ import annotations

import re

from factory.filters.limits import AtLeast, AtMost
from factory.filters.rule import TextRule, text_rule
from factory.filters.text import Text, is_lowercase

C4 = "C4, 2020"
LONGEST_WORD = 1_000  # characters
LEAST_WORDS = 3  # per line
END_MARKS = (".", "?", "!", '"', "'")
CLOSERS = "\"')]}”’»*"
CITATION = re.compile(r"\[[0-9]*\]|\[edit\]|\[citation needed\]")
POLICIES = (
    b"terms of use",
    b"privacy policy",
    b"cookie policy",
    b"uses cookies",
    b"use of cookies",
    b"use cookies",
)


def whole_lines(text: Text) -> list[str]:
    """Return the lines that end like a sentence and have enough words, none too long, without citations."""
    lines = [(line, CITATION.sub("", line)) for line in text.bare_lines]
    return [left for line, left in lines if _ends(left) and _has_words(line)]


def without_javascript(lines: list[str]) -> list[str]:
    """Return the lines that do not mention javascript, in any case."""
    return [line for line in lines if b"javascript" not in _lower(line)]


def kept_lines(text: Text) -> list[str]:
    """Return the lines that C4 would keep of a document it does not discard."""
    lines = without_javascript(whole_lines(text))
    return [line for line in lines if not any(policy in _lower(line) for policy in POLICIES)]


def sentences(line: str) -> int:
    """Count the sentences of a line.

    A sentence ends with a word in `. ? !`, ignoring quotes and brackets behind the mark, unless the next word
    begins with a small letter. Words after the last end are one more sentence.
    """
    words = Text(line).words
    ends = [word.rstrip(CLOSERS).endswith((".", "?", "!")) for word in words[:-1]]
    begins = [not is_lowercase(word[0]) for word in words[1:]]
    return sum(end and begin for end, begin in zip(ends, begins, strict=True)) + bool(words)


@text_rule(
    "sentences",
    C4,
    AtLeast(5),
    example="It rains. It pours.\nRead more about the weather\nPlease use JavaScript. Or go. Or not.\n",
)
def c4_sentences(text: Text) -> float:
    """Sentences in the lines that C4 would keep.

    It keeps lines that end in `. ? ! " '` but no ellipsis, have three words and none of more than 1,000
    characters, and mention neither javascript nor cookies and policies.
    """
    return float(sum(map(sentences, kept_lines(text))))


@text_rule("lines", C4, AtMost(0), example="Lorem ipsum dolor sit amet.\n")
def c4_lorem_ipsum(text: Text) -> float:
    """Whole-sentence lines that say `lorem ipsum`, in any case."""
    return float(sum(b"lorem ipsum" in _lower(line) for line in whole_lines(text)))


@text_rule("lines", C4, AtMost(0), example="Write {name} where the name belongs.\n")
def c4_curly_brackets(text: Text) -> float:
    """Whole-sentence lines with a `{` that do not mention javascript."""
    return float(sum("{" in line for line in without_javascript(whole_lines(text))))


def _ends(line: str) -> bool:
    return line.endswith(END_MARKS) and not line.endswith("...")


def _has_words(line: str) -> bool:
    words = Text(line).words
    return len(words) >= LEAST_WORDS and max(map(len, words)) <= LONGEST_WORD


def _lower(line: str) -> bytes:
    return line.encode().lower()  # ASCII letters only


RULES: tuple[TextRule, ...] = (c4_sentences, c4_lorem_ipsum, c4_curly_brackets)
