"""The includes and macros of a C or C++ file; its comments, words and outline come from the native module.

Both languages are read in two steps. Words are counted (`_native.c_words`): a use in C is a name, whatever
stands around it, and macros make trees of function bodies unreliable. Declarations come from a syntax tree,
for which `_native.c_outline` leaves what matters: a body at the left margin is emptied, a conditional's lines
go and its branches stay, so that both of an `#ifdef` count.
"""

from __future__ import annotations

import re
from collections import Counter

MAX_WORDS = 64  # of what one macro stands for

_WORD = re.compile(rb"\b\d[\w.']*+|((?:(?:->|\.(?!\.)|::)\s*+~?)?[A-Za-z_]\w*+)")
_INCLUDE = re.compile(
    rb"""^[ \t]*#[ \t]*(?:include|import|include_next)[ \t]*(?:"([^"\n]+)"|(<[^>\n]+>))""", re.M
)
_DEFINE = re.compile(
    rb"^[ \t]*+#[ \t]*+define[ \t]++([A-Za-z_]\w*+)(\([^()\n]*+\))?((?:[^\\\n]|\\(?:\r\n|.))*+)",
    re.M | re.DOTALL,
)


def includes(text: bytes) -> Counter[str]:
    """What a text without comments includes, `x.h` or `<x.h>`, with how often."""
    return Counter((quoted or angled).decode("utf-8", "replace") for quoted, angled in _INCLUDE.findall(text))


def macros(text: bytes) -> tuple[bytes, Counter[bytes], dict[bytes, tuple[bytes, ...]]]:
    """The text without what its macros stand for, the macros' names, and the words each stands for."""
    names: Counter[bytes] = Counter()
    bodies: dict[bytes, dict[bytes, None]] = {}

    def take(definition: re.Match[bytes]) -> bytes:
        name, parameters, body = definition.groups()
        names[name] += 1
        bound = {name, *_WORD.findall(parameters or b"")}
        found = [
            word for word in _WORD.findall(body) if word and word not in bound and word[:1] not in b".-:"
        ]
        bodies.setdefault(name, {}).update(dict.fromkeys(found[:MAX_WORDS]))
        return b"#"

    text = _DEFINE.sub(take, text)
    return text, names, {name: tuple(body) for name, body in bodies.items() if body}
