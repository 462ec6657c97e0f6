"""The SPDX identifier of a license's text, found by comparing whole texts.

A file is a license if the Dice coefficient of their word bigrams is at least SAME and the license contains
that share of the file: a file that holds more (a third party's terms at its end, an exception) has no
identifier. Case, punctuation, list marks and copyright lines do not count, since copies of a license differ
in them. The package `identify` ships the known texts, from choosealicense.com.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise

from identify.vendor.licenses import LICENSES

SAME = 0.95
LEAD = 0.005  # of the best text over the second: versions of a license differ little

# `\W*` at the front of a line would scan all blank lines behind it, again from each of them.
_COPYRIGHT = re.compile(
    r"^[^\w\n]*(?:(?:portions )?copyright\b.*(?:\(c\)|©|\d{4})|\(c\)|©|all rights reserved[^\w\n]*$).*$",
    re.M | re.I,
)
_MARK = re.compile(r"^[^\w\n]*+(\d+|[a-z])[.)]\s", re.M | re.I)
_END = re.compile(r"(?<=END OF TERMS AND CONDITIONS)")
_WORD = re.compile(r"[a-z0-9]+")

Bigrams = Counter[tuple[str, str]]


def recognized(text: str) -> str | None:
    """Return the SPDX identifier of the license `text`, None if it is not certain.

    The GNU licenses' texts do not say whether later versions are allowed, so the result is `GPL-3.0`.
    """
    own = _bigrams(text)
    found = sorted(((_similarity(own, known), name) for name, known in _texts()), reverse=True)
    best, name = found[0]
    second = max(value for value, other in found if other != name)
    return name if best >= SAME and best - second >= LEAD else None


@cache
def _texts() -> tuple[tuple[str, Bigrams], ...]:
    """Return the licenses by name; one that ends with instructions also without them."""
    texts = [(name, text) for name, text in LICENSES]
    texts += [(name, text[: end.start()]) for name, text in LICENSES if (end := _END.search(text))]
    return tuple((name, _bigrams(text)) for name, text in texts)


def _bigrams(text: str) -> Bigrams:
    plain = _MARK.sub("", _COPYRIGHT.sub("", text)).lower()
    return Counter(pairwise(_WORD.findall(plain)))


def _similarity(own: Bigrams, known: Bigrams) -> float:
    """Return the lesser of the Dice coefficient and the share of `own` that `known` contains.

    Bigrams count as often as they occur. By the Dice coefficient alone, a long license with a short exception
    behind it would reach SAME.
    """
    n_own, n_known = own.total(), known.total()
    if min(n_own, n_known) < SAME / 2 * (n_own + n_known):
        return 0.0  # the lengths alone differ too much
    shared = (own & known).total()
    return min(2 * shared / (n_own + n_known), shared / n_own)
