"""The base of the classes that turn the captures of one file into symbols, and steps in a syntax tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from tree_sitter import Node

from spark_udfs.depsort.model import FileSymbols
from spark_udfs.depsort.syntax import Captures


class CapturedFile(ABC):
    """The captures of one file, turned into symbols."""

    def __init__(self, source: bytes, captures: Captures) -> None:
        self.source = source
        self.captures = captures
        self.text = _reader(source)

    @abstractmethod
    def symbols(self) -> FileSymbols:
        """Everything the file defines, imports and uses."""

    def bytes_of(self, node: Node) -> bytes:
        return self.source[node.start_byte : node.end_byte]


def first_child(node: Node | None) -> Node | None:
    """The first named child, None where there is none."""
    return node.named_children[0] if node is not None and node.named_child_count else None


def last_child(node: Node | None) -> Node | None:
    """The last named child, None where there is none."""
    return node.named_children[-1] if node is not None and node.named_child_count else None


def only_child(node: Node) -> Node | None:
    """The one named child, None where there are more or none."""
    return node.named_children[0] if node.named_child_count == 1 else None


def child_of_type(node: Node | None, *types: str) -> Node | None:
    """The first named child of one of these types, None where there is none."""
    children = node.named_children if node is not None else ()
    return next((child for child in children if child.type in types), None)


def field_of(node: Node | None, name: str) -> Node | None:
    """The child in field `name`, None where there is none."""
    return None if node is None else node.child_by_field_name(name)


def _reader(source: bytes) -> Callable[[Node], str]:
    """A function that returns the text of a node."""
    if source.isascii():
        text = source.decode("ascii")
        return lambda node: text[node.start_byte : node.end_byte]
    return lambda node: source[node.start_byte : node.end_byte].decode("utf-8", "replace")
