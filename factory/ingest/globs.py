"""Glob patterns of paths as regular expressions that never try a path twice.

    **/   at the front of a name: any folders        a/**/b.txt   matches a/b.txt and a/x/y/b.txt
    **    any letters                                a/**         all below a
    *     any letters of one name                    *.txt
    ?     one letter of a name

A plain translation (`.*` for each `**`) takes time that grows with the path's length to the power of the
number of wildcards, and patterns come with data sets of strangers. Here each wildcard but the last takes the
first place where what follows it fits, and keeps it (an atomic group): no later place would let more match
behind it, because what stands between two wildcards of folders begins where a name begins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

_WILDCARDS = re.compile(r"(?:(?<=/)|^)\*\*/|\*\*|\*|\?")
_GAPS = {"**/": "(?:[^/]*/)*?", "**": ".*?"}
# Wildcards that stand beside each other are one: each side's, and what both mean together.
_TOGETHER = {
    ("**/", "**/"): "**/",
    ("**/", "**"): "**",
    ("**", "**"): "**",
    ("**", "*"): "**",
    ("*", "**"): "**",
    ("*", "*"): "*",
}


def compiled(globs: Sequence[str]) -> re.Pattern[bytes]:
    """One expression whose `fullmatch` takes the paths that match any of `globs`."""
    return re.compile(os.fsencode("|".join(map(_regex, globs)) if globs else "(?!)"), re.DOTALL)


def _regex(glob: str) -> str:
    chunks = [("", [""])]  # a gap, and the pieces behind it that `*` stands between
    for token in _tokens(glob):
        if token in _GAPS:
            chunks.append((token, [""]))
        elif token == "*":
            chunks[-1][1].append("")
        else:
            chunks[-1][1][-1] += "[^/]" if token == "?" else re.escape(token)
    *inner, (gap, pieces) = chunks
    found = "".join(_kept(_GAPS.get(before, ""), between) for before, between in inner)
    return found + _GAPS.get(gap, "") + _in_order(pieces[:-1]) + ("[^/]*" if pieces[1:] else "") + pieces[-1]


def _kept(gap: str, pieces: Sequence[str]) -> str:
    """A gap with what follows it, at the first place where that fits."""
    return f"(?>{gap}{_in_order(pieces)})"


def _in_order(pieces: Sequence[str]) -> str:
    """Pieces of one name behind each other, each at the first place where it fits."""
    return "".join(piece if not n else f"(?>[^/]*?{piece})" for n, piece in enumerate(pieces))


def _tokens(glob: str) -> list[str]:
    """The wildcards and the letters between them."""
    found: list[str] = []
    at = 0
    for match in _WILDCARDS.finditer(glob):
        if match.start() > at:
            found.append(glob[at : match.start()])
        wildcard, at = match[0], match.end()
        while found and (found[-1], wildcard) in _TOGETHER:
            wildcard = _TOGETHER[found.pop(), wildcard]
        found.append(wildcard)
    return [*found, glob[at:]] if at < len(glob) else found
