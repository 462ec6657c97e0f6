"""The captures of a tree-sitter query over a source file, within bounds that hold for hostile files.

A query's time grows with the square of the tree's depth and of an error's width (unclosed parentheses, a
long chain of attributes). So matches start at most MAX_DEPTH levels deep, and a file with an error wider
than MAX_ERROR_WIDTH has no captures.
"""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser, Query, QueryCursor

MAX_DEPTH = 256
MAX_ERROR_WIDTH = 4_000

Captures = dict[str, list[Node]]

_RANGE = attrgetter("byte_range")


class Syntax:
    """One grammar with one query; the parser is made for the first file and reused.

    `grammar` is the result of a grammar wheel's `language()`. Not thread-safe.
    """

    def __init__(self, grammar: object, query: str) -> None:
        self._pointer = grammar
        self._source = query

    def captures(self, source: bytes) -> Captures | None:
        """The nodes of each capture, by (start, end); None where the syntax tree is out of bounds.

        Captures come in the order of their first appearance in the query. Nodes are sorted here, because
        tree-sitter's Python binding keeps them in a set of addresses and their order differs between
        processes (tree-sitter/py-tree-sitter#450). Capture `name` stays unsorted: half of all nodes are
        names, which are only counted, and sorting them took a quarter of a query's time.
        """
        root = self._parser.parse(source).root_node
        if root.has_error and _widest_error(root) > MAX_ERROR_WIDTH:
            return None
        cursor = QueryCursor(self._query)
        cursor.set_max_start_depth(MAX_DEPTH)
        captures = cursor.captures(root)
        for capture, nodes in captures.items():
            if capture != "name":
                nodes.sort(key=_RANGE)
        return {capture: captures.get(capture, []) for capture in self.capture_names}

    @cached_property
    def capture_names(self) -> list[str]:
        """The captures of the query in the order of their first appearance."""
        return [self._query.capture_name(number) for number in range(self._query.capture_count)]

    @cached_property
    def _grammar(self) -> Grammar:
        return Grammar(self._pointer)

    @cached_property
    def _parser(self) -> Parser:
        return Parser(self._grammar)

    @cached_property
    def _query(self) -> Query:
        return Query(self._grammar, self._source)


def _widest_error(root: Node) -> int:
    """The largest number of children of an error node."""
    widest, pending = 0, [root]
    while pending:
        node = pending.pop()
        if node.is_error:
            widest = max(widest, node.child_count)
        pending.extend(child for child in node.children if child.has_error)
    return widest
