"""The chains of Java types and expressions (`spark_udfs.depsort.type_chains`)."""

from __future__ import annotations

import re

from tree_sitter import Node

from spark_udfs.depsort.captured_file import first_child, last_child, only_child
from spark_udfs.depsort.languages.chains import ClassChains, container_chain
from spark_udfs.depsort.languages.data import read_names
from spark_udfs.depsort.type_chains import INSIDE

_CONTAINERS = read_names(__package__, "containers.txt")
_TYPES = ("type_identifier", "scoped_type_identifier", "generic_type", "array_type")
_SAME_VALUE = {"array_access": "array", "ternary_expression": "consequence"}
_ANNOTATIONS = re.compile(r"@[\w.]+(?:\([^()]*\))?|\s+")
_BRACKETS = re.compile(r"([<>])")


class JavaChains(ClassChains):
    """The chains of one Java file."""

    def type_step(self, node: Node) -> Node | str | None:
        """The next node on the way to a type's chain, or the chain."""
        kind = node.type
        if kind == "type_identifier":
            return self.root(self.text(node))
        if kind == "scoped_type_identifier":
            return self.written(self.text(node))
        if kind == "generic_type":
            return self._held(node) or first_child(node)
        if kind == "array_type":
            return node.child_by_field_name("element")
        return last_child(node) if kind == "annotated_type" else None

    def _held(self, node: Node) -> str | None:
        """The chain of a library container's values, marked as contained; None for other types."""
        outer, arguments = node.named_children[0], node.named_children[-1]
        if self.text(outer) not in _CONTAINERS or arguments.type != "type_arguments":
            return None
        inner = last_child(arguments)
        if inner is not None and inner.type == "wildcard":
            inner = last_child(inner)
        return container_chain(self.type_chain(inner))

    def written(self, text: str) -> str:
        """The chain of a dotted name, without type arguments and annotations."""
        first, dot, rest = _without_arguments(_ANNOTATIONS.sub("", text)).partition(".")
        return f"{self.root(first) or first}{dot}{rest}"

    def value_step(self, node: Node, members: list[str]) -> Node | str | None:
        """The expression that `node` takes a value from, or the chain of its type."""
        kind = node.type
        if kind in ("field_access", "method_invocation"):
            name = node.child_by_field_name("field" if kind == "field_access" else "name")
            operand = node.child_by_field_name("object")
            if name is None or name.type == "this":
                return None if name is None else operand
            text = self.text(name)
            if operand is None:  # a method of the surrounding classes
                return f"{self.owner}{INSIDE}{text}" if self.owner else text
            members.append(text)
            return operand
        if kind in _SAME_VALUE:
            return node.child_by_field_name(_SAME_VALUE[kind])
        if kind == "parenthesized_expression":
            return only_child(node)
        if kind == "identifier":
            return self.root(self.text(node))
        if kind in ("this", "super"):
            return self.owner or None
        if kind in ("object_creation_expression", "cast_expression"):
            return self.type_chain(node.child_by_field_name("type"))
        return self.type_chain(node) if kind in _TYPES else None


def _without_arguments(text: str) -> str:
    """The text without angle brackets and their content, at any depth."""
    pieces, depth = [], 0
    for piece in _BRACKETS.split(text):
        if piece == "<":
            depth += 1
        elif piece == ">":
            depth -= 1
        elif depth == 0:
            pieces.append(piece)
    return "".join(pieces)
