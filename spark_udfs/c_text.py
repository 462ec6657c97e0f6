"""The words, includes and macros of a C or C++ file, and its text without comments and function bodies.

Both languages are read in two steps. Words are counted by one regular expression over the text: a use in C
is a name, whatever stands around it, and macros make trees of function bodies unreliable. Declarations come
from a syntax tree, for which `outline` leaves what matters: a body at the left margin is emptied, a
conditional's lines go and its branches stay, so that both of an `#ifdef` count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

MAX_LINE = 2_000  # bytes in which a line is looked for
MAX_WORDS = 64  # of what one macro stands for

_PIECE = re.compile(
    rb"""
    (//(?:[^\\\n]|\\.)*+ | /\*(?:[^*]++|\*(?!/))*+(?:\*/)?)          # a comment
    | (^[ \t]*+\#[ \t]*+(?:include|import)[^\n]*+)
    | R"([^(\s"\\]{0,16})\((?:[^)]++|\)(?!\3"))*+(?:\)\3")?       # a raw string
    | (?<!\\)(?: "(?:[^"\\\n]|\\.)*+" | '(?:[^'\\\n]|\\.)*+' )   # from no quote inside one without an end
    """,
    re.DOTALL | re.VERBOSE | re.MULTILINE,
)
_WORD = re.compile(rb"\b\d[\w.']*+|((?:(?:->|\.(?!\.)|::)\s*+~?)?[A-Za-z_]\w*+)")
_INCLUDE = re.compile(
    rb"""^[ \t]*#[ \t]*(?:include|import|include_next)[ \t]*(?:"([^"\n]+)"|(<[^>\n]+>))""", re.M
)
_DEFINE = re.compile(
    rb"^[ \t]*+#[ \t]*+define[ \t]++([A-Za-z_]\w*+)(\([^()\n]*+\))?((?:[^\\\n]|\\(?:\r\n|.))*+)",
    re.M | re.DOTALL,
)
_DIRECTIVE = re.compile(rb"^[ \t]*#(?:[^\\\n]|\\(?:\r\n|.))*+", re.M | re.DOTALL)
_BODY = re.compile(rb"\)[\w\s]*+\{")
_ATTRIBUTE = re.compile(
    rb"\b(?:__attribute__|__declspec|__asm__|__asm|_Alignas|alignas)\s*+\((?:[^()]|\([^()]*+\))*+\)\)?"
    rb"|\b[A-Za-z_]\w*\s*+\(\s*+\d++\s*+(?:,\s*+\d++\s*+)*+\)"  # printf_like(1, 2)
)
_PROTOTYPE = re.compile(
    rb"(?:(?<=[;{}])|\A)([^;{}()=]*(?:\([^;{}()]*+\)[^;{}()=]*)?(?<!\w))([A-Za-z_]\w*+)\s*+"
    rb"\((?:[^();{}]|\((?:[^();{}]|\([^();{}]*+\))*+\))*+\)[\w\s]*+;"
)
_IN_PARENTHESES = re.compile(rb"\(\s*+([A-Za-z_]\w*+)\s*+\)(?=\s*+\()")
_MARK = re.compile(
    rb"\b[A-Z][A-Z0-9_]*_(?:API|EXPORTS?|PUBLIC|EXTERN|INLINE|FORCEINLINE|DEPRECATED|NOEXCEPT|CONSTEXPR)\b"
    rb"|^[ \t]*+\w*(?:NAMESPACE|_DECLS|Q_OBJECT)\w*(?:\([^()\n]*\))?[ \t]*+;?$",
    re.M,
)
_EXPORTED = re.compile(rb"(\b(?:class|struct)\s)\s*+[A-Z][A-Z0-9_]*+\s++(?=[A-Za-z_])")
_INDENTATION = re.compile(rb"[ \t]*+")
_HEAD = re.compile(rb"([A-Za-z_]\w*)\s*$")
_A_WORD = re.compile(rb"\w")
_STATIC = re.compile(rb"\bstatic\b")
_STATEMENTS = frozenset({b"if", b"for", b"while", b"switch", b"return", b"else", b"do"})


def without_comments(source: bytes) -> bytes:
    """The text with comments as single spaces and strings empty, but for those of includes."""
    return _PIECE.sub(_replaced, source)


def _replaced(piece: re.Match[bytes]) -> bytes:
    if piece[2]:
        return piece[2]
    return b" " if piece[1] else b'""'


def includes(text: bytes) -> Counter[str]:
    """What a text without comments includes, `x.h` or `<x.h>`, with how often."""
    return Counter((quoted or angled).decode("utf-8", "replace") for quoted, angled in _INCLUDE.findall(text))


def words(text: bytes) -> Counter[bytes]:
    """Every name of a text without comments, `.name` where it follows `.` or `->`."""
    counted: Counter[bytes] = Counter()
    for word, n in Counter(_WORD.findall(text)).items():
        if word:
            name = word.lstrip(b"->.:~ \t\r\n")
            if word[:1] in b".-:":
                counted[b"." + name] += n
            if word[:1] not in b".-":
                counted[name] += n
    return counted


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


def outline(text: bytes) -> bytes:
    """A text without comments, its directives, and the function bodies that end at the left margin."""
    return b"".join(piece for piece, _ in _pieces(text))


def functions(text: bytes) -> tuple[bytes, Counter[bytes], Counter[bytes], set[bytes]]:
    """What `outline` gives, without the functions' heads and the prototypes; then the names of the functions
    made, of those announced, and of the static ones."""
    kept: list[bytes] = []
    made: Counter[bytes] = Counter()
    static: set[bytes] = set()
    for piece, has_body in _pieces(text):
        if has_body and (head := _head(piece)) is not None:
            start, name, is_static = head
            kept.append(piece[:start])
            if name:
                made[name] += 1
            if is_static:
                static.add(name)
        else:
            kept.append(piece)
    announced: Counter[bytes] = Counter()

    def announce(prototype: re.Match[bytes]) -> bytes:
        if not _A_WORD.search(prototype[1]) or b"typedef" in prototype[1]:
            return prototype[0]
        announced[prototype[2]] += 1
        return b""

    return _PROTOTYPE.sub(announce, b"".join(kept)), made, announced, static


def _pieces(text: bytes) -> Iterator[tuple[bytes, bool]]:
    """The outline cut behind each emptied body; the last piece has none.

    A body ends at the brace on its own line, or on the next line that is indented as the function's name is.
    """
    text = _MARK.sub(b"", _ATTRIBUTE.sub(b"", _DIRECTIVE.sub(b"", text)))
    text = _EXPORTED.sub(rb"\1", _IN_PARENTHESES.sub(rb" \1", text))
    done = searched = 0
    absent: set[bytes] = set()  # ends of bodies that the rest of the text lacks
    while (opening := _BODY.search(text, searched)) is not None:
        searched = opening.end()
        line_end = text.find(b"\n", searched, searched + MAX_LINE)
        closing = text.find(b"}", searched, searched + MAX_LINE if line_end < 0 else line_end)
        if closing < 0:
            name = text.rfind(b"(", done, opening.start())
            near = searched if b"\n" in opening[0] else max(name, done)  # a brace on a line of its own
            line = text.rfind(b"\n", max(0, near - MAX_LINE), near) + 1
            indentation = _INDENTATION.match(text, line)
            ending = b"\n" + (indentation[0] if indentation else b"") + b"}"
            closing = -1 if ending in absent else text.find(ending, searched - 1)
            if closing < 0:
                absent.add(ending)
                continue
            closing += len(ending) - 1
        yield text[done:searched] + b"}\n", True
        done = searched = closing + 1
    yield text[done:], False


def _head(piece: bytes) -> tuple[int, bytes, bool] | None:
    """Where the head of the function at the end of a piece starts, its name, and whether it is static."""
    depth, position = 0, piece.rfind(b")")
    end = position + 1
    while position >= 0:
        opening, closing = piece.rfind(b"(", 0, end), piece.rfind(b")", 0, end)
        if closing > opening:
            depth, end = depth + 1, closing
        elif opening >= 0:
            depth, end = depth - 1, opening
        else:
            return None
        if not depth:
            break
    name = _HEAD.search(piece, max(0, end - 200), end)
    if name is None or name[1] in _STATEMENTS:
        return None
    start = max(piece.rfind(mark, 0, name.start()) for mark in (b";", b"}", b"{")) + 1
    before = piece[start : name.start()]
    if not before.strip():
        return start, b"", False  # a macro that makes a function
    return start, name[1], _STATIC.search(before) is not None
