"""Words and exact weights of texts by regular expressions and numpy, the truth for deduplications.

It uses no code of ours but for words of scripts without blanks, which need the same dictionaries. Words are
cut as `docs/deduplication.md` defines, and a word is itself, not its hash. A weight is (1 + ln tf) * ln(1 +
N / df) in float64 over all N given texts. The package `regex` knows Unicode's word boundaries (UAX #29).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import regex

from bench.bags import Bags
from factory import _native

_BEYOND = r"[0-9A-Za-z_]*[^\x00-\x7f][^\x00-/:-@\[-^`{-\x7f]*"
_ESCAPE = r"\\(?:\\|[ntr])?"  # its letter would stick to the next word; an escaped backslash has none
_HEXADECIMAL = r"0[xX](?:\w|(?<=\d)\.(?=\d))*"
_NUMBER = r"\d(?:\w|(?<=\d)\.(?=\d)|(?<=\d[eE])[+-](?=\d))*"
_CODE = re.compile(f"(?:{_ESCAPE})|({_BEYOND})|((?a:{_HEXADECIMAL})|(?a:{_NUMBER})|(?a:[A-Za-z_]\\w*))")
_DICTIONARY = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u3005\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # scripts without blanks
)
_BOUNDARY = regex.compile(r"(?V1)\b", regex.WORD)
_LETTER = regex.compile(r"[\p{Alphabetic}\p{N}]")
_IGNORABLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_APOSTROPHE = re.compile("[\u2018\u2019\u201b\u02bc\u05f3]")


def code_words(text: str) -> Iterator[str]:
    """Identifiers, numbers and words, case kept."""
    text = _APOSTROPHE.sub("'", unicodedata.normalize("NFKC", _IGNORABLE.sub("", text)))
    for beyond, word in _CODE.findall(text):
        if word:
            yield word
        elif beyond:
            yield from unicode_words(beyond)


def unicode_words(stretch: str) -> Iterator[str]:
    """The words of a stretch with characters beyond ASCII."""
    if _DICTIONARY.search(stretch):
        return iter(_native.lexer_tokens(stretch, "code"))
    return (word for word in _BOUNDARY.split(stretch) if _LETTER.search(word))


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
