"""The text of a page's bytes, by the charset that it declares if that is plausible, else by one that is.

The order is the browsers': byte order mark, header, meta element. Browsers trust the first of them, and show
nonsense where it is wrong; people then choose another charset in a menu. Here a declared charset is passed
over unless the bytes are plausible text in it. Bytes that are valid UTF-8 are UTF-8, even if another charset
is declared: its texts are hardly ever valid UTF-8.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import AnyStr

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

from spark_udfs.ingest.rows import BadRecord

_BOMS = {
    codecs.BOM_UTF32_LE: "utf-32-le",  # begins with the mark of UTF-16
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
# A page begins with a tag or white space, whose width tells these without a mark (XML 1.0, appendix F).
_WIDE = {
    "utf-32-le": re.compile(rb"[\s<]\x00\x00\x00"),
    "utf-32-be": re.compile(rb"\x00\x00\x00[\s<]"),
    "utf-16-le": re.compile(rb"[\s<]\x00[\s!?/a-zA-Z<]\x00"),
    "utf-16-be": re.compile(rb"\x00[\s<]\x00[\s!?/a-zA-Z<]"),
}
_META_BYTES = 1 << 20  # of a head; browsers look at 1,024, and scripts in front of the element have grown
_BODY = re.compile(rb"<body\b", re.IGNORECASE)
_SCRIPT = re.compile(rb"<(script|style)\b.*?(?:</\1|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_META = re.compile(rb"""<meta\b[^>]{0,200}?\bcharset\s*=\s*["']?\s*([-\w.:]{2,40})""", re.IGNORECASE)
# Tried where nothing is declared and detection fails: those of languages whose pages still have them.
_LEGACY = (
    *("cp1252", "cp1250", "cp1251", "cp1254", "gb18030"),
    *("cp950", "big5hkscs", "cp949", "cp932", "euc-jp"),
)
# What browsers decode by these labels is more than Python's codecs of the same names do.
_AS_BROWSERS = {
    "shift_jis": ("cp932",),
    "euc_kr": ("cp949",),
    "big5": ("cp950", "big5hkscs"),
    "x-mac-cyrillic": ("mac_cyrillic",),
}
# Bytes of a declared charset that are no text in it, as a vendor's sign or a slip; of blocks beyond ASCII.
_MOST_REPLACED = 1 / 500
_DETECTED_BYTES = 64 << 10  # of a page, for detection and plausibility
_BLOCK = 1 << 10  # of a page, with or without what tells a charset
_TELLING = 500  # letters, or bytes, beyond ASCII that tell one
_HIGH = re.compile(rb"[\x80-\xff\x1b]")
_LEAST_PLAUSIBLE = 0.9  # share of the letters beyond ASCII
_CLEARLY_BETTER, _DOUBTFUL = 0.1, 0.6  # what another charset must gain, and a declared one must have

# What text in a wrong charset has and text in the right one hardly ever: controls, signs and cases inside
# words, runs of accented Latin letters, letters of two scripts in a word.
_LETTER = r"[^\W\d_]"
_ACCENTED = "[\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f]"
_SIGN = (
    "[\u00a1-\u00a9\u00ab\u00ac\u00ae-\u00b3\u00b6\u00b8\u00b9"
    "\u00bb-\u00bf\u00d7\u00f7\u2020-\u2026\u20ac\u2122]"
)
_IMPLAUSIBLE = re.compile(
    rf"[\x80-\x9f\ufffd\ue000-\uf8ff]|(?<={_LETTER}){_SIGN}(?={_LETTER})|{_ACCENTED}{{5,}}"
    r"|[а-яё][А-ЯЁ]|[α-ω][Α-Ω]|[\uff61-\uff9f]{4,}|[\uac00-\ud7a3][\u4e00-\u9fff]"
    rf"|[\u0370-\u04ff](?:[A-Za-z]|{_ACCENTED})|(?:[A-Za-z]|{_ACCENTED})[\u0370-\u04ff]"
)
# Turkish as Western European has the letters of Icelandic, but not those beside which they stand there.
_TURKISH, _ICELANDIC = re.compile("[ðþýÐÞÝ]"), re.compile("[áíóúæ]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f\s]")
# Letters that are two fifths of any text in Cyrillic, and fewer in a wrong charset.
_CYRILLIC, _COMMON_CYRILLIC = re.compile("[\u0400-\u04ff]"), re.compile("[оеаинтОЕАИНТ]")
_ENOUGH = 20  # letters to tell
_LATIN = re.compile("[A-Za-z]")
_INSIDE_LATIN = re.compile(
    "[\u3400-\u9fff\uac00-\ud7a3\uff61-\uff9f](?=[A-Za-z])|(?<=[A-Za-z])[\u3400-\u9fff\uac00-\ud7a3\uff61-\uff9f]"
)
# A wrong multi-byte charset makes rare characters of common ones, which no other sign tells.
_COMMON = re.compile(
    "[的一是不了在人有我他这這中大来來上国國之以年个個为為和地出要到时時会會\u3040-\u30ff\uac00-\ud7a3]"
)
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uac00-\ud7a3\u3040-\u30ff]")


@dataclass(frozen=True)
class Decoded:
    """A page's text, its charset, and what told it: `bom`, `header`, `meta`, `bytes`, `detection`.

    `n_replaced` characters stand for bytes that are no text in the charset.
    """

    text: str
    charset: str
    charset_from: str
    n_replaced: int = 0


def decode_page(body: bytes, header: str | None = None) -> Decoded:
    """Return the text of a page; `header` is the charset that its HTTP header declares.

    Raises BadRecord `unknown_charset` if no charset makes plausible text of the bytes.
    """
    for mark, charset in _BOMS.items():
        if body.startswith(mark) and (text := _text(body[len(mark) :], charset)) is not None:
            return Decoded(text, charset, "bom")
    for charset, beginning in _WIDE.items():
        if beginning.match(body) and (text := _text(body, charset)) is not None:
            return Decoded(text, charset, "bytes")
    charsets = [(source, charset) for source, label in _labels(body, header) for charset in _charsets(label)]
    text = _text(body, "utf-8")
    if text is not None and not (text.isascii() and "\x1b" in text):
        told_by = next((source for source, charset in charsets if charset == "utf-8"), "bytes")
        return Decoded(text, "utf-8", told_by)
    doubtful: Decoded | None = None
    for source, charset in charsets:
        if (in_charset := _nearly(body, charset, source)) is not None:
            if plausible(in_charset.text) >= _LEAST_PLAUSIBLE:
                return in_charset
            doubtful = doubtful or in_charset
    if (utf8 := _mostly_utf8(body)) is not None:
        return utf8
    return _detected(body, doubtful)


def plausible(text: str) -> float:
    """Return the share of the characters beyond ASCII that text in a right charset may have."""
    beginning = _telling(text, _BEYOND_ASCII)
    n_beyond = len(_BEYOND_ASCII.findall(beginning))
    n_implausible = sum(len(match[0]) for match in _IMPLAUSIBLE.finditer(beginning))
    if not _ICELANDIC.search(beginning):
        n_implausible += len(_TURKISH.findall(beginning))
    n_latin = len(_LATIN.findall(beginning))
    n_inside = len(_INSIDE_LATIN.findall(beginning))
    if n_latin > 10 * len(_IDEOGRAPH.findall(beginning)):  # few ideographs, and these inside words
        n_implausible += n_inside
    n_cyrillic = len(_CYRILLIC.findall(beginning))
    if n_cyrillic > _ENOUGH and len(_COMMON_CYRILLIC.findall(beginning)) < n_cyrillic / 4:
        n_implausible += n_cyrillic
    n_ideographs = len(_IDEOGRAPH.findall(beginning))
    if n_ideographs > _ENOUGH and not _COMMON.search(beginning):
        n_implausible += n_ideographs
    return 1 - min(1.0, n_implausible / max(1, n_beyond))


def _telling(content: AnyStr, beyond: re.Pattern[AnyStr]) -> AnyStr:
    """Return the part of a page that tells its charset: its beginning, or its blocks beyond ASCII.

    A page may have more script before its first word than is looked at.
    """
    beginning = content[:_DETECTED_BYTES]
    if len(content) <= _DETECTED_BYTES or len(beyond.findall(beginning)) >= _TELLING:
        return beginning
    return content[:0].join(islice(filter(beyond.search, _blocks(content)), _DETECTED_BYTES // _BLOCK))


def _blocks(content: AnyStr) -> Iterator[AnyStr]:
    return (content[begin : begin + _BLOCK] for begin in range(0, len(content), _BLOCK))


def _labels(body: bytes, header: str | None) -> Iterator[tuple[str, str]]:
    if header:
        yield "header", header
    if match := _META.search(_SCRIPT.sub(b"", _BODY.split(body[:_META_BYTES], maxsplit=1)[0])):
        yield "meta", match[1].decode("ascii", "replace")


def _charsets(label: str) -> tuple[str, ...]:
    """Return the charsets that a browser may take for a label, none for an unknown label.

    A page that says in ASCII that it is UTF-16 is none.
    """
    charset = map_encoding_to_html5(label, fallback_utf8=False)
    if charset is None:
        return _AS_BROWSERS.get(label.lower(), ())
    return ("utf-8",) if charset.startswith("utf-16") else _AS_BROWSERS.get(str(charset), (str(charset),))


def _nearly(body: bytes, charset: str, source: str) -> Decoded | None:
    """Return the text in a declared charset, with few replaced bytes; None with more."""
    try:
        text = body.decode(charset, "replace")
    except LookupError:
        return None
    n_replaced = text.count("\ufffd")
    n_telling = min(len(body), _BLOCK * sum(1 for _ in filter(_HIGH.search, _blocks(body))))
    return (
        Decoded(text, charset, source, n_replaced) if n_replaced <= 1 + _MOST_REPLACED * n_telling else None
    )


def _text(body: bytes, charset: str) -> str | None:
    try:
        return body.decode(charset)
    except (UnicodeDecodeError, LookupError):
        return None


def _mostly_utf8(body: bytes) -> Decoded | None:
    """Return UTF-8 with replaced bytes: a page cut inside a character, or with parts in another charset."""
    text = body.decode("utf-8", "replace")
    n_replaced = text.count("\ufffd")
    n_right = len(_BEYOND_ASCII.findall(text)) - n_replaced
    return Decoded(text, "utf-8", "bytes", n_replaced) if n_right > 4 * n_replaced else None


def _detected(body: bytes, doubtful: Decoded | None) -> Decoded:
    """Return the most plausible text; that in the declared charset if no other is clearly better."""
    guess = detect_encoding(_telling(body, _HIGH))
    guesses = _AS_BROWSERS.get(guess, (guess,)) if guess else ()
    best: tuple[float, float, Decoded] | None = None
    for charset in dict.fromkeys([*guesses, *_LEGACY]):
        text = _text(body, charset)
        if text is None:
            continue
        likely = (plausible(text), _common(text))
        if best is None or likely > best[:2]:
            best = (*likely, Decoded(text, charset, "detection"))
    as_declared = plausible(doubtful.text) if doubtful is not None else 0.0
    if best is not None and best[0] >= max(_LEAST_PLAUSIBLE, as_declared + _CLEARLY_BETTER):
        return best[2]
    if doubtful is not None and as_declared >= _DOUBTFUL:
        return doubtful
    raise BadRecord("unknown_charset", "The bytes of the page are plausible text in no charset.")


def _common(text: str) -> float:
    """Return the share of a text's ideographs and syllables that are common ones; 0 without any."""
    beginning = _telling(text, _BEYOND_ASCII)
    n_ideographs = len(_IDEOGRAPH.findall(beginning))
    return round(len(_COMMON.findall(beginning)) / n_ideographs, 3) if n_ideographs else 0.0
