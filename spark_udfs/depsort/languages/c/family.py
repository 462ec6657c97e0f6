"""The common part of C and C++: included files, and a file's words as its references.

Every word of a text is a reference, except keywords and names that the file only binds as parameters,
members or local variables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set

from tree_sitter import Node

from factory import _native
from spark_udfs.depsort.languages.c import text as c_text
from spark_udfs.depsort.languages.c.modules import CModules
from spark_udfs.depsort.model import FileSymbols, Language, counted_imports

MAX_OUTLINE = 200_000  # bytes for a syntax tree: 1 MB of open parentheses took 12 s

_TAG = re.compile(rb"\b(?:struct|union|enum)\s++([A-Za-z_]\w*+)")


class CFamily(Language):
    """A language with files that include each other's text."""

    family = "c"
    textual_imports = True
    modules = CModules


class Outline:
    """The definitions and declarations in the outline of one file."""

    def __init__(self, source: bytes, owns: bool) -> None:
        self._source = source
        self.owns = owns  # not a header: static names are private
        self.definitions: Counter[bytes] = Counter()
        self.declarations: Counter[bytes] = Counter()
        self.private: set[bytes] = set()

    def is_stored(self, node: Node, word: bytes) -> bool:
        """Whether a declaration has a storage class, such as `static`."""
        return any(
            child.type == "storage_class_specifier" and self.bytes_of(child) == word
            for child in node.children
        )

    def bytes_of(self, node: Node) -> bytes:
        return self._source[node.start_byte : node.end_byte]


def symbols_of(
    text: bytes,
    outline: Outline,
    expansions: Mapping[bytes, Sequence[bytes]],
    keywords: Set[bytes],
    members: Set[bytes] = frozenset(),
) -> FileSymbols:
    """The symbols of a text without macro bodies; its words are references unless the file binds them.

    `members` are names that do not count as references after `.` and `::`.
    """
    definitions, declarations = outline.definitions, outline.declarations
    uses = {word: n - declarations.get(word, 0) for word, n in _native.c_words(text).items()}
    tags = set(_TAG.findall(text)) - definitions.keys() - declarations.keys()
    declarations.update(dict.fromkeys(tags, 1))
    no_uses = set(_native.c_declared_names(text)) - definitions.keys()
    no_uses.update(keywords, (b"." + name for name in members))
    references = {word: n for word, n in uses.items() if n > 0 and word not in no_uses}
    return FileSymbols(
        definitions=_counts(definitions),
        imports=counted_imports(c_text.includes(text)),
        references=_counts(references),
        declarations=_counts(declarations),
        private=tuple(sorted(_decoded(name) for name in outline.private)),
        expansions={
            _decoded(name): tuple(_decoded(word) for word in body if word not in keywords)
            for name, body in sorted(expansions.items())
        },
        calls={
            _decoded(name): tuple(_decoded(call) for call in arguments)
            for name, arguments in sorted(c_text.calls(text).items())
            if name not in keywords
        },
    )


def _counts(names: Mapping[bytes, int]) -> dict[str, int]:
    return {_decoded(name): n for name, n in sorted(names.items())}


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "replace")
