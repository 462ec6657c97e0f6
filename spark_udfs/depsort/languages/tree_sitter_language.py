"""A language that is read by one tree-sitter query.

A subclass names the grammar, the query, and the class that turns the captured nodes into symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

from spark_udfs.depsort.captured_file import CapturedFile
from spark_udfs.depsort.model import MAX_SOURCE_BYTES, FileSymbols, Language
from spark_udfs.depsort.syntax import Syntax


class TreeSitterLanguage(Language):
    """A language with one grammar and one query."""

    grammar: ClassVar[Callable[[], object]]  # `language` of the grammar's wheel
    query: str
    file: type[CapturedFile]
    max_bytes: int = MAX_SOURCE_BYTES  # longer files are not parsed

    def extract(self, source: bytes, path: str) -> FileSymbols:
        """The symbols of one file; empty where it or its syntax tree is out of bounds."""
        captures = self._syntax.captures(source) if len(source) <= self.max_bytes else None
        return FileSymbols() if captures is None else self.file(source, captures).symbols()

    @cached_property
    def _syntax(self) -> Syntax:
        return Syntax(type(self).grammar(), self.query)
