"""The includes and macros of a C or C++ file; comments, words and outline come from the native module.

Both languages are read in two steps. Words are counted (`_native.c_words`), because any name in C is a use
and macros make syntax trees of function bodies unreliable. Declarations come from a syntax tree of the
outline (`_native.c_outline`): it empties bodies at the left margin, and drops the lines of conditionals but
keeps their branches, so that both branches of an `#ifdef` count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from spark_udfs.depsort.model import Import

MAX_WORDS = 64  # of a macro's body
MAX_ARGUMENTS = 8  # of a macro
MAX_CALLS = 5_000  # of macros, per file

_WORD = re.compile(rb"\b\d[\w.']*+|((?:(?:->|\.(?!\.)|::)\s*+~?)?[A-Za-z_]\w*+)")
_NAME = re.compile(rb"[A-Za-z_0-9]\w*+")
_INCLUDE = re.compile(
    rb"""^[ \t]*#[ \t]*(?:include|import|include_next)[ \t]*(?:"([^"\n]+)"|(<[^>\n]+>))""", re.M
)
_DEFINE = re.compile(
    rb"^[ \t]*+#[ \t]*+define[ \t]++([A-Za-z_]\w*+)(\([^()\n]*+\))?((?:[^\\\n]|\\(?:\r\n|.))*+)",
    re.M | re.DOTALL,
)
_PASTED = re.compile(rb"[A-Za-z_0-9]\w*+(?:\s*+##\s*+[A-Za-z_0-9]\w*+)++")
_CALL = re.compile(
    rb"^(?:[ \t]*+([A-Z_][A-Z_0-9]++)|([A-Za-z_]\w*+))[ \t]*+\(([^()\n;]{1,200})\)(?=(\s{0,80}\{)?)", re.M
)


def includes(text: bytes) -> Counter[Import]:
    """The includes of a text without comments, `x.h` or `<x.h>`, with their counts."""
    return Counter(
        Import((quoted or angled).decode("utf-8", "replace"), "*", None)
        for quoted, angled in _INCLUDE.findall(text)
    )


def macros(text: bytes) -> tuple[bytes, Counter[bytes], dict[bytes, tuple[bytes, ...]]]:
    """The text without macro bodies, the count of each macro's name, and the words of its bodies."""
    names: Counter[bytes] = Counter()
    bodies: dict[bytes, dict[bytes, None]] = {}

    def take(definition: re.Match[bytes]) -> bytes:
        name, parameters, body = definition.groups()
        names[name] += 1
        formals = [formal.strip() for formal in parameters[1:-1].split(b",")] if parameters else []
        pasted = [_template(paste, formals) for paste in _PASTED.findall(body)] if formals else []
        if pasted:
            body = _PASTED.sub(b" ", body)
        bound = {name, *_WORD.findall(parameters or b"")}
        words = [*filter(None, pasted)]
        for word in _WORD.findall(body):
            if word[:2] == b"::":  # a member, or a name in a namespace
                last = word[2:].strip(b" \t\r\n\\~")
                words += [b"." + last, last]
            elif word and word not in bound and word[:1] not in b".-:":
                words.append(word)
        bodies.setdefault(name, {}).update(dict.fromkeys(words[:MAX_WORDS]))
        return b"#"

    text = _DEFINE.sub(take, text)
    return text, names, {name: tuple(body) for name, body in bodies.items() if body}


def _template(pasted: bytes, parameters: Sequence[bytes]) -> bytes:
    """`run_#0` for `run_ ## name`, where `name` is the first parameter; empty without a parameter."""
    parts = [part.strip() for part in pasted.split(b"##")]
    if not any(part in parameters for part in parts):
        return b""
    return b"".join(
        b"#%d" % parameters.index(part) if part in parameters[:MAX_ARGUMENTS] else part for part in parts
    )


def calls(text: bytes) -> dict[bytes, dict[bytes, None]]:
    """The calls that look like a macro's: at the left margin, or in capitals at the start of a line.

    Each has its arguments where they are names, followed by `{` where a body follows.
    """
    by_name: dict[bytes, dict[bytes, None]] = {}
    for n, (capitals, name, arguments, body) in enumerate(_CALL.findall(text)):
        if n == MAX_CALLS:
            break
        names = [argument.strip() for argument in arguments.split(b",")[:MAX_ARGUMENTS]]
        identifiers = [argument if _NAME.fullmatch(argument) else b"" for argument in names]
        if any(identifiers):
            by_name.setdefault(capitals or name, {})[b",".join(identifiers) + (b"{" if body else b"")] = None
    return by_name
