"""A language that is read by one tree-sitter query.

A subclass names the grammar and the query, and turns the captured nodes into symbols.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

from spark_udfs.depsort.model import MAX_SOURCE_BYTES, FileSymbols, Language
from spark_udfs.depsort.syntax import Captures, Syntax


class TreeSitterLanguage(Language):
    """A language with one grammar and one query."""

    grammar: ClassVar[Callable[[], object]]  # `language` of the grammar's wheel
    query: str
    max_bytes: int = MAX_SOURCE_BYTES  # longer files are not parsed

    def extract(self, source: bytes, path: str) -> FileSymbols:
        """The symbols of one file; empty where it or its syntax tree is out of bounds."""
        captures = self._syntax.captures(source) if len(source) <= self.max_bytes else None
        return FileSymbols() if captures is None else self.read(source, captures)

    @abstractmethod
    def read(self, source: bytes, captures: Captures) -> FileSymbols:
        """The symbols of one file from the nodes that the query captured."""

    @cached_property
    def _syntax(self) -> Syntax:
        return Syntax(type(self).grammar(), self.query)
