"""Words and exact weights of texts by regular expressions and numpy, the truth for deduplications.

It uses no code of ours: words are cut as `docs/deduplication.md` defines, and a word is itself, not its hash.
A weight is (1 + ln tf) * ln(1 + N / df) in float64 over all N given texts. It implements the most frequent
word boundaries of Unicode; the bench's checks show whether the few texts in other scripts differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from bench.bags import Bags

_BEYOND = r"[0-9A-Za-z_]*[^\x00-\x7f][^\x00-/:-@\[-^`{-\x7f]*"
_ESCAPE = r"\\(?:\\|[ntr])?"  # its letter would stick to the next word; an escaped backslash has none
_HEXADECIMAL = r"0[xX](?:\w|(?<=\d)\.(?=\d))*"
_NUMBER = r"\d(?:\w|(?<=\d)\.(?=\d)|(?<=\d[eE])[+-](?=\d))*"
_CODE = re.compile(f"(?:{_ESCAPE})|({_BEYOND})|((?a:{_HEXADECIMAL})|(?a:{_NUMBER})|(?a:[A-Za-z_]\\w*))")
_ALONE = (
    "\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # ideographs
    "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u215f\u2460-\u249b"  # numbers that are not digits
)
_LETTERS = f"(?:(?![{_ALONE}])[\\w\u0300-\u036f\u200d])+"
_BETWEEN = f"(?:(?<=[^\\W\\d_])’(?=[^\\W\\d_{_ALONE}])|(?<=\\d)’(?=\\d))"
_UNICODE_WORD = re.compile(f"[{_ALONE}]|{_LETTERS}(?:{_BETWEEN}{_LETTERS})*")


def code_words(text: str) -> Iterator[str]:
    """Identifiers, numbers and words, case kept."""
    for beyond, word in _CODE.findall(text):
        if word:
            yield word
        elif beyond:
            yield from unicode_words(beyond)


def unicode_words(stretch: str) -> Iterator[str]:
    """The words of a stretch with characters beyond ASCII."""
    return (word for word in _UNICODE_WORD.findall(stretch) if any(map(str.isalnum, word)))


def weighted_words(texts: Iterable[str | None]) -> Bags:
    """The words of code in `texts`, numbered, and weighed by how many of them hold each."""
    numbers: dict[str, int] = {}
    words, counts, offsets = [], [], [0]
    for text in texts:
        counted = Counter(code_words(text or ""))
        words.append(np.array([numbers.setdefault(word, len(numbers)) for word in counted], np.int64))
        counts.append(np.array([*counted.values()], np.float64))
        offsets.append(offsets[-1] + len(counted))
    of_words, of_counts = np.concatenate(words), np.concatenate(counts)
    frequencies = np.bincount(of_words, minlength=len(numbers))
    idf = np.log1p(len(words) / frequencies)
    return Bags(of_words, (1 + np.log(of_counts)) * idf[of_words], np.array(offsets))
