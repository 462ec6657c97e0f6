"""Glob patterns of paths as regular expressions that never try a path twice.

    **/   at the front of a name: any folders        a/**/b.txt   matches a/b.txt and a/x/y/b.txt
    **    any characters                             a/**         everything below a
    *     any characters of one name                 *.txt
    ?     one character of a name

With a plain translation (`.*` for each `**`), time grows with the path's length to the power of the number of
wildcards, and patterns may come from untrusted datasets. Here each wildcard but the last stops at the first
position where the rest of its piece fits, and never moves on (an atomic group). A later position would not
let more match behind it, because a piece between two wildcards of folders begins where a name begins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

_WILDCARDS = re.compile(r"(?:(?<=/)|^)\*\*/|\*\*|\*|\?")
_GAPS = {"**/": "(?:[^/]*/)*?", "**": ".*?"}
# Two adjacent wildcards are one: the pair, and the wildcard with the same meaning.
_TOGETHER = {
    ("**/", "**/"): "**/",
    ("**/", "**"): "**",
    ("**", "**"): "**",
    ("**", "*"): "**",
    ("*", "**"): "**",
    ("*", "*"): "*",
}


def compiled(globs: Sequence[str]) -> re.Pattern[bytes]:
    """Return one expression that accepts, by `fullmatch`, the paths that match any of `globs`."""
    return re.compile(os.fsencode("|".join(map(_regex, globs)) if globs else "(?!)"), re.DOTALL)


def _regex(glob: str) -> str:
    chunks = [("", [""])]  # a gap, and the pieces behind it, with a `*` between each two
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
    """Match a gap and its pieces at the first position where they fit."""
    return f"(?>{gap}{_in_order(pieces)})"


def _in_order(pieces: Sequence[str]) -> str:
    """Match pieces of one name in sequence, each at the first position where it fits."""
    return "".join(piece if not n else f"(?>[^/]*?{piece})" for n, piece in enumerate(pieces))


def _tokens(glob: str) -> list[str]:
    """Return the wildcards and the text between them."""
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
