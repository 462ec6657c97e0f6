"""A language whose files one tree-sitter query reads: the part that all of them share.

A subclass names the grammar and the query and turns the nodes that the query captures into symbols.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

from spark_udfs.depsort.model import MAX_SOURCE_BYTES, FileSymbols, Language
from spark_udfs.depsort.syntax import Captures, Syntax


class TreeSitterLanguage(Language):
    """One grammar, one query, and what a file's captures say."""

    grammar: ClassVar[Callable[[], object]]  # the function `language` of a grammar's wheel
    query: str
    max_bytes: int = MAX_SOURCE_BYTES  # a longer file is not parsed

    def extract(self, source: bytes, path: str) -> FileSymbols:
        """The symbols of one file; empty where it or its syntax tree is out of bounds."""
        captures = self._syntax.captures(source) if len(source) <= self.max_bytes else None
        return FileSymbols() if captures is None else self.read(source, captures)

    @abstractmethod
    def read(self, source: bytes, captures: Captures) -> FileSymbols:
        """The symbols that the query's captures over one file amount to."""

    @cached_property
    def _syntax(self) -> Syntax:
        return Syntax(type(self).grammar(), self.query)
