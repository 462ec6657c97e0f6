"""The SPDX identifier of a license's text, where a whole text is compared with whole texts.

Two texts are one license where the Dice coefficient of their word bigrams is at least SAME and as much of the
file lies in the license: a file that holds more (a third party's terms at its end, an exception) has no
identifier. Case, punctuation, marks of lists and lines of copyright, in which two copies of a license may
differ, do not count. The texts are those of choosealicense.com, as the package `identify` ships them.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise

from identify.vendor.licenses import LICENSES

SAME = 0.95
APART = 0.005  # by which the best text leads the second: versions of a license differ in little

# `\W*` at the front of a line would run through all blank lines behind it, from each of them.
_COPYRIGHT = re.compile(
    r"^[^\w\n]*(?:(?:portions )?copyright\b.*(?:\(c\)|©|\d{4})|\(c\)|©|all rights reserved[^\w\n]*$).*$",
    re.M | re.I,
)
_MARK = re.compile(r"^[^\w\n]*+(\d+|[a-z])[.)]\s", re.M | re.I)
_END = re.compile(r"(?<=END OF TERMS AND CONDITIONS)")
_WORD = re.compile(r"[a-z0-9]+")

Bigrams = Counter[tuple[str, str]]


def recognized(text: str) -> str | None:
    """The SPDX identifier of the license that `text` is, None where it is none for certain.

    The texts of the GNU licenses do not say whether later versions are allowed: theirs is `GPL-3.0`.
    """
    own = _bigrams(text)
    found = sorted(((_alike(own, known), name) for name, known in _texts()), reverse=True)
    best, name = found[0]
    second = max(alike for alike, other in found if other != name)
    return name if best >= SAME and best - second >= APART else None


@cache
def _texts() -> tuple[tuple[str, Bigrams], ...]:
    """The licenses by name; one that ends with how to apply it also without that."""
    texts = [(name, text) for name, text in LICENSES]
    texts += [(name, text[: end.start()]) for name, text in LICENSES if (end := _END.search(text))]
    return tuple((name, _bigrams(text)) for name, text in texts)


def _bigrams(text: str) -> Bigrams:
    plain = _MARK.sub("", _COPYRIGHT.sub("", text)).lower()
    return Counter(pairwise(_WORD.findall(plain)))


def _alike(own: Bigrams, known: Bigrams) -> float:
    """The lesser of the Dice coefficient and the share of `own` that `known` explains.

    Bigrams count as often as they occur. A long license with a short exception behind it reaches SAME by the
    first alone.
    """
    n_own, n_known = own.total(), known.total()
    if min(n_own, n_known) < SAME / 2 * (n_own + n_known):
        return 0.0  # the lengths alone keep them apart
    shared = (own & known).total()
    return min(2 * shared / (n_own + n_known), shared / n_own)
