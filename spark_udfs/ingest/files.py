"""The text of whole files: opened without following links, read within a limit, decoded as they declare.

Anything wrong with a file is a `BadRecord`, never an exception that ends a run. No message holds a path: the
row's key names the file, below its source's folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from encodings import normalize_encoding
from encodings.aliases import aliases
from functools import cached_property
from importlib.util import find_spec
from typing import BinaryIO

from spark_udfs.ingest.bounds import MAX_TEXT_BYTES
from spark_udfs.ingest.file_types import FileKind, kind_of
from spark_udfs.ingest.place import FilePart, Place, size_of
from spark_udfs.ingest.rows import BadRecord, Origin, Row, document, rejection


@dataclass(frozen=True)
class Input:
    """A file to read: `name` is its path below a place, in the operating system's bytes.

    With `first_bytes` a reader of records or members stops, by `EndOfPreview`, behind so many bytes of
    content. With a `part` it reads the records of that part.
    """

    origin: Origin
    place: Place
    name: bytes
    first_bytes: int | None = None
    part: FilePart | None = None

    @property
    def shown(self) -> str:
        """The path below the place as text, with a surrogate for each byte that is not UTF-8."""
        return self.name.decode("utf-8", "surrogateescape")

    @cached_property
    def key(self) -> str:
        """The path below the place as `key_of` writes it; a name in another encoding is rejected."""
        return key_of(self.shown)

    @property
    def fault_key(self) -> str:
        """The key of a rejected record for the whole file, or for a part behind its first."""
        return f"{self.key}@{self.part.begin}" if self.part and self.part.begin else self.key


def key_of(name: str) -> str:
    """Return the key of a file's or member's name: the name itself, with escapes for odd characters.

    A byte that is not UTF-8 becomes `\\xNN` and any other half surrogate `\\uNNNN`. A backslash becomes two,
    so that no two names share a key and `name_of` can undo it.
    """
    return _ODD_IN_A_NAME.sub(_escaped, name)


def name_of(key: str) -> str:
    """Return the name of a key, with bytes that are not UTF-8 as `os.fsdecode` writes them."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16) + 0xDC00) if match[1] else _plain(match[0]), key)


_ODD_IN_A_NAME = re.compile("[\\\\\ud800-\udfff]")
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})|\\u[0-9a-f]{4}|\\\\")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code == ord("\\"):
        return "\\\\"
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def _plain(escape: str) -> str:
    return "\\" if escape == "\\\\" else chr(int(escape[2:], 16))


@contextmanager
def opened(source: Input) -> Iterator[BinaryIO]:
    """Open the file for reading.

    Raises BadRecord `link`, `not_a_file`, `vanished`, `unreadable`, `name_not_utf8`, and `changed_while_read`
    if size or time differ when the reading is over.
    """
    try:
        source.name.decode()
    except UnicodeDecodeError as error:
        raise BadRecord("name_not_utf8", f"Byte {error.start} of the file's name is not UTF-8.") from None
    try:
        with source.place.open(source.name, source.part) as file:
            yield file
    except OSError as error:
        raise bad_read(error) from None


def bad_read(error: OSError) -> BadRecord:
    """Return the BadRecord for an error of the operating system, without the path in its message."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return BadRecord("vanished", "The file was listed, but it is not there.")
    return BadRecord("unreadable", f"The file cannot be read: {error.strerror or 'unknown cause'}.")


def decode_utf8(encoded: bytes) -> str:
    """Return the text of UTF-8 bytes without a byte order mark; raises BadRecord `not_utf8`."""
    try:
        return encoded.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        detail = f"Byte {error.start} is not UTF-8 ({error.reason})."
        raise BadRecord("not_utf8", detail, f"byte {error.start}") from None


_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?$")


def declared_encoding(source_code: bytes) -> str:
    """Return the encoding that a Python file's first two lines declare (PEP 263), by default `utf-8`."""
    for line in re.split(rb"\r\n|\r|\n", source_code[:4096], maxsplit=2)[:2]:
        if cookie := _COOKIE.match(line.removeprefix(b"\xef\xbb\xbf")):
            return cookie[1].decode("ascii", "replace").lower()
        if not _BLANK.match(line):
            break
    return "utf-8"


# Encodings of text in bytes. Python has other codecs: punycode takes time quadratic in the length,
# `unicode_escape` reads escapes, `rot13` is not an encoding.
_TEXT_ENCODING = re.compile(
    r"ascii|utf_8|latin_1|iso8859_\d+|cp\d+|koi8_[rtu]|kz1048|mac_\w+|ptcp154|tis_620|hp_roman8|palmos"
    r"|big5\w*|gb\d+|gbk|hz|iso2022_\w+|euc_\w+|shift_jis\w*|johab"
)


def _is_text_encoding(name: str) -> bool:
    codec = normalize_encoding(name)
    codec = aliases.get(codec, codec)
    return _TEXT_ENCODING.fullmatch(codec) is not None and find_spec(f"encodings.{codec}") is not None


def decode_python(source_code: bytes) -> str:
    """Return the text of a Python source file in the encoding it declares.

    Raises BadRecord `not_utf8`, or `wrong_encoding` and `unknown_encoding` for a declared one.
    """
    encoding = declared_encoding(source_code)
    if encoding.replace("_", "-") in ("utf-8", "utf8", "utf-8-sig"):
        return decode_utf8(source_code)
    if not _is_text_encoding(encoding):
        raise BadRecord("unknown_encoding", f"The declared encoding `{encoding}` is not supported.")
    try:
        return source_code.decode(encoding)
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        raise BadRecord(
            "wrong_encoding",
            f"Byte {start} is invalid in the declared `{encoding}`.",
            f"byte {start}",
        ) from None


def decode(content: bytes, key: str) -> str:
    """Return the text of a file's bytes: Python sources as they declare, everything else as UTF-8."""
    return decode_python(content) if kind_of(key).language == "python" else decode_utf8(content)


NOTEBOOK_REMEDY = (
    "A notebook is JSON with its code, outputs and pictures in it, and is rejected. Convert it to a script, "
    "as with `jupyter nbconvert --to script`, or leave it out with `exclude`."
)


def is_notebook(name: str) -> bool:
    """Whether a file of this name is a notebook of Jupyter."""
    return name.lower().endswith(".ipynb")


def text_file(source: Input, max_bytes: int = MAX_TEXT_BYTES) -> Iterator[Row]:
    """Yield one row: the file as a document or a rejected record."""

    def documents(content: bytes) -> Iterator[Row]:
        text, kind = decode(content, source.key), kind_of(source.key)
        yield file_document(source.origin, source.key, text, kind, source.shown)

    return whole_file(source, max_bytes, documents)


def whole_file(source: Input, max_bytes: int, documents: Callable[[bytes], Iterator[Row]]) -> Iterator[Row]:
    """Yield the rows that `documents` makes of a file's bytes, or one rejected record."""
    n_bytes, content = 0, b""
    try:
        with opened(source) as file:
            n_bytes = size_of(file)
            content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise BadRecord("too_large", f"The file is longer than {max_bytes:,} bytes.", f"byte {max_bytes}")
        yield from documents(content)
    except BadRecord as bad:
        yield rejection(source.origin, source.key, bad, n_bytes, content)


def file_document(origin: Origin, key: str, text: str, kind: FileKind, path: str) -> Row:
    """Return the document of a file, or of a part of one.

    Raises BadRecord as `document` does, and `notebook`, because the text of a notebook is JSON with its code,
    outputs and pictures, which passes every rule of code.
    """
    if is_notebook(path):
        raise BadRecord("notebook", NOTEBOOK_REMEDY)
    return document(origin, key, text, media_type=kind.media_type, language=kind.language, path=path)
